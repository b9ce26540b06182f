"""What Prefect needs to know before it is imported: its database, its server, and that nothing leaves this machine.

Set only where the user has not decided otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path

CPU_POOL = "paraagent-cpu"
GPU_POOL = "paraagent-gpu"


def settings(home: Path, api_url: str | None = None) -> dict[str, str]:
    """Environment variables for every Prefect process of this home."""
    variables = {
        "PREFECT_HOME": str(home / "prefect"),
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }
    return {**variables, "PREFECT_API_URL": api_url} if api_url else variables


def prepare(home: Path, api_url: str | None = None, *, debug: bool = False) -> None:
    """Set up this process for a run from the command line; call before the first import of Prefect, which wants the
    directory of its database to be there.

    Prefect's own log lines and tracebacks stay off the screen, where the run's lines are; they still reach the server.
    """
    (home / "prefect").mkdir(parents=True, exist_ok=True)
    for name, value in settings(home, api_url).items():
        os.environ.setdefault(name, value)
    if not debug:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
