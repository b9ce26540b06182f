"""Running the flow from the command line, in this process, with a runner that has already planned."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import TerminationSignal

from flows.paraagent import PREPARED
from flows.paraagent import paraagent as flow_run
from paraagent.errors import RunError
from pipelines.runner import Outcome, Runner


def run_flow(runner: Runner, profile: str, overrides: list[str]) -> list[Outcome]:
    """Run what `runner` planned as a Prefect flow and return what became of each stage.

    Raises:
        ParaAgentError: the sentence of the stage that failed.
    """
    request = runner.request
    _reach_server(runner)
    token = PREPARED.set(runner)
    try:
        flow_run(
            profile=str(Path(profile).absolute()) if profile.endswith(".toml") else profile,
            stages=list(request.stages) or None,
            from_stage=request.from_stage,
            force=list(request.force) or None,
            overrides=dict(text.split("=", 1) for text in overrides) or None,
            home=str(runner.home.root),
        )
    except TerminationSignal as error:
        raise KeyboardInterrupt from error
    except httpx.TransportError as error:
        raise RunError(
            f"The Prefect server of this run stopped answering ({type(error).__name__}): what is finished is kept, and"
            " the same command goes on where it stopped"
        ) from error
    finally:
        PREPARED.reset(token)
    return runner.outcomes


def _reach_server(runner: Runner) -> None:
    """Start the ephemeral server, or ask the named one, before the first stage.

    Ctrl-C reaches every process of the terminal. The server is started from a thread that has the signal blocked and
    inherits that, so that it outlives the run by the moment that it takes to note how the run ended; it is stopped
    with this process, which hears Ctrl-C all the while.
    """
    url = os.environ.get("PREFECT_API_URL")
    runner.progress.message(f"Prefect server: {url or 'starting one for this run'}")
    deaf = ThreadPoolExecutor(1, initializer=signal.pthread_sigmask, initargs=(signal.SIG_BLOCK, {signal.SIGINT}))
    try:
        problem = deaf.submit(copy_context().run, _healthcheck).result()
    finally:
        deaf.shutdown(wait=False)
    if problem is not None:
        raise RunError(
            f"The Prefect server {url or 'for this run'} does not answer ({problem}): start it with `paraagent up`,"
            " or unset PREFECT_API_URL to use one for this run alone"
        )


def _healthcheck() -> Exception | None:
    try:
        with get_client(sync_client=True) as client:
            return client.api_healthcheck()
    except RuntimeError as error:
        return error
