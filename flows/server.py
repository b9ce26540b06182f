"""Server: the Prefect server and workers of one home on this machine, started in the background, stopped by their ids.

`server.json` in the home holds what was started. A process counts as ours only while its id and its start time agree
with the note, so a recycled id is never signalled.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import orjson
import psutil

from flows.environment import CPU_POOL, GPU_POOL, settings
from paraagent.errors import RunError
from paraagent.files import write_json
from paraagent.progress import Progress
from pipelines.home import HOME_VARIABLE, Home

HOST = "127.0.0.1"
HEALTHY_SECONDS = 120.0
STOP_SECONDS = 30.0
PROJECT = Path(__file__).resolve().parent.parent


class Started(NamedTuple):
    """One process in the background."""

    name: str
    pid: int
    created: float
    """Seconds since the epoch, as the operating system has it."""

    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.created) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


class ServerState(NamedTuple):
    """What `up` left in the home."""

    url: str
    """Of the API; the UI is the same without `/api`."""
    processes: list[Started]

    @property
    def ui(self) -> str:
        return self.url.removesuffix("/api")


def read_state(home: Home) -> ServerState | None:
    try:
        note = orjson.loads(_note(home).read_bytes())
        return ServerState(note["url"], [Started(**process) for process in note["processes"]])
    except (FileNotFoundError, NotADirectoryError, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def running_url(home: Home) -> str | None:
    """The API of this home's own server where it runs and answers."""
    state = read_state(home)
    return state.url if state and healthy(state.url) else None


def healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=2.0) as answer:
            status: int = answer.status
            return status == 200
    except (URLError, OSError, ValueError):
        return False


def start(home: Home, port: int, progress: Progress) -> ServerState:
    """Bring up what is not up yet: server, pools, deployments, one worker a pool. Safe to repeat.

    Raises:
        RunError: the port is taken, or something did not start (its log is named), or this is not a clone.
    """
    if not (PROJECT / "prefect.yaml").is_file():
        raise RunError(f"There is no prefect.yaml in {PROJECT}: run `paraagent up` in a clone of the repository")
    with home.writable():
        (home.root / "prefect").mkdir(exist_ok=True)
        state = read_state(home) or ServerState(f"http://{HOST}:{port}/api", [])
        alive = [process for process in state.processes if process.alive()]
        if any(process.name == "server" for process in alive):
            if state.url != f"http://{HOST}:{port}/api":
                progress.message(f"the server of this home is up already, at {state.ui}: `paraagent down` stops it")
        else:
            _free_or_fail(port)
            state = ServerState(f"http://{HOST}:{port}/api", alive)
            progress.message(f"starting the Prefect server on {HOST}:{port}")
            alive.append(_spawn(home, state.url, "server", ["server", "start", "--host", HOST, "--port", str(port)]))
            _save(home, state := ServerState(state.url, alive))
        _wait_healthy(home, state)
        progress.message("creating work pools and deployments")
        for pool in (CPU_POOL, GPU_POOL):
            _prefect(home, state.url, ["work-pool", "create", pool, "--type", "process", "--overwrite"])
        _prefect(home, state.url, ["deploy", "--all"])
        for pool in (CPU_POOL, GPU_POOL):
            name = f"worker-{pool}"
            if not any(process.name == name for process in alive):
                progress.message(f"starting a worker for {pool}")
                alive.append(_spawn(home, state.url, name, ["worker", "start", "--pool", pool, "--name", name]))
                _save(home, state := ServerState(state.url, alive))
    return state


def stop(home: Home, progress: Progress) -> list[str]:
    """Stop by SIGTERM what `start` started here, workers first; returns the names of what was stopped.

    Raises:
        RunError: a process is still there after 30 seconds; it stays in the note.
    """
    state = read_state(home)
    if state is None:
        return []
    stopped = []
    for started in sorted(state.processes, key=lambda process: process.name == "server"):
        if not started.alive():
            continue
        progress.message(f"stopping {started.name} (process {started.pid})")
        process = psutil.Process(started.pid)
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired as error:
            raise RunError(
                f"{started.name} (process {started.pid}) did not stop within {STOP_SECONDS:.0f} seconds:"
                f" look at {_log(home, started.name)} and run `paraagent down` again"
            ) from error
        stopped.append(started.name)
    _note(home).unlink(missing_ok=True)
    return stopped


def environment(home: Home, url: str) -> dict[str, str]:
    """For every process of the server and its workers: this home, and nothing that leaves the machine."""
    return {
        **os.environ,
        **settings(home.root, url),
        HOME_VARIABLE: str(home.root),
        "PREFECT_WORKER_QUERY_SECONDS": "1",
    }


def _spawn(home: Home, url: str, name: str, arguments: Sequence[str]) -> Started:
    log = _log(home, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=PROJECT,
            env=environment(home, url),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Started(name, process.pid, psutil.Process(process.pid).create_time())


def _prefect(home: Home, url: str, arguments: Sequence[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        cwd=PROJECT,
        env=environment(home, url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        log = _log(home, "setup")
        log.write_text(done.stdout + done.stderr, "utf-8")
        raise RunError(f"`prefect {' '.join(arguments)}` failed: look at {log} and run `paraagent up` again")


def _wait_healthy(home: Home, state: ServerState) -> None:
    deadline = time.monotonic() + HEALTHY_SECONDS
    server = next(process for process in state.processes if process.name == "server")
    while not healthy(state.url):
        if not server.alive() or time.monotonic() > deadline:
            raise RunError(
                f"The Prefect server did not come up at {state.url}: look at {_log(home, 'server')},"
                " then run `paraagent up` again"
            )
        time.sleep(0.25)


def _free_or_fail(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise RunError(
                f"Port {port} on {HOST} is taken ({error.strerror}): name another with `paraagent up --port {port + 1}`"
            ) from error


def _save(home: Home, state: ServerState) -> None:
    note: dict[str, Any] = {"url": state.url, "processes": [process._asdict() for process in state.processes]}
    write_json(_note(home), note)


def _note(home: Home) -> Path:
    return home.root / "server.json"


def _log(home: Home, name: str) -> Path:
    return home.root / "prefect" / f"{name}.log"
