"""`paraagent up` and `paraagent down`: Prefect on this machine, from nothing to a UI with deployments, and back."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def up(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the server on 127.0.0.1.")] = 4200,
    json: Annotated[bool, typer.Option("--json", help="Print addresses and processes as one JSON document.")] = False,
) -> None:
    """Start the Prefect server, the work pools, the deployments and a worker for each pool; safe to repeat.

    Example: paraagent up && prefect deployment run paraagent/full-pipeline --watch
    """
    import orjson

    from flows.server import start
    from pipelines.home import Home
    from pipelines.progress import Lines, to_stderr

    home = Home.locate()
    state = start(home, port, Lines(to_stderr))
    if json:
        processes = {process.name: process.pid for process in state.processes}
        sys.stdout.write(orjson.dumps({"ui": state.ui, "api": state.url, "processes": processes}).decode() + "\n")
        return
    print(f"Prefect is up: {state.ui}")
    print(f"  export PREFECT_API_URL={state.url}")
    print("  prefect deployment run paraagent/full-pipeline --watch")
    print("  paraagent down")


def down(
    json: Annotated[bool, typer.Option("--json", help="Print what was stopped as one JSON document.")] = False,
) -> None:
    """Stop the server and the workers that `up` started for this home, and nothing else.

    Example: paraagent down
    """
    import orjson

    from flows.server import stop
    from pipelines.home import Home
    from pipelines.progress import Lines, to_stderr

    stopped = stop(Home.locate(), Lines(to_stderr))
    if json:
        sys.stdout.write(orjson.dumps({"stopped": stopped}).decode() + "\n")
    else:
        print(f"Stopped {', '.join(stopped)}" if stopped else "Nothing of this home was running")
