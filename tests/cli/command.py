"""Starts the command line in a process of its own, as the leader of its group, so that a signal can reach all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 240
"""Longest wait for one command."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job would hand that on to the commands
    signal.signal(signal.SIGINT, signal.default_int_handler)

REAL = ("-m", "paraagent")
FAKE = ("tests/cli/fake_cli.py",)
"""The real command line over fake stages."""


def start(home: Path, *arguments: str, program: Sequence[str] = REAL, **variables: str) -> subprocess.Popen[str]:
    """`variables` join the environment, from which everything about Prefect and pip is taken first."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "PIP_"))}
    return subprocess.Popen(
        [sys.executable, *program, "--home", str(home), *arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(home: Path, *arguments: str, program: Sequence[str] = REAL, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = start(home, *arguments, program=program, **variables)
    out, errors = process.communicate(timeout=SECONDS)
    return process.returncode, out, errors
