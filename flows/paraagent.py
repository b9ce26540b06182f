"""The flow `paraagent`: the stages as Prefect tasks. Thin: what a stage is and when it is built stands in `pipelines`.

Every deployment in `prefect.yaml` is this flow with other parameters. Rerunning one from the UI builds what is missing,
unfinished or changed and reuses the rest; to build a stage again although nothing changed, name it in `force`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment

from flows.artifacts import FlowProgress, publish, publish_contracts
from paraagent.errors import NetworkError, RunError
from pipelines.home import Home
from pipelines.plan import Request, Step
from pipelines.runner import Execute, Outcome, Runner
from pipelines.settings import load_profile

PREPARED: ContextVar[Runner | None] = ContextVar("prepared", default=None)
"""The runner of `paraagent run`, which has planned and shows progress; None in a worker."""

RETRIES = 2
RETRY_SECONDS = [2.0, 10.0]


@flow(name="paraagent", description=__doc__, persist_result=False)
def paraagent(
    profile: str = "quick",
    stages: list[str] | None = None,
    from_stage: str | None = None,
    force: list[str] | None = None,
    overrides: dict[str, Any] | None = None,
    home: str | None = None,
) -> list[dict[str, Any]]:
    """Run the pipeline, building only what is missing, unfinished or out of date.

    Args:
        profile: a built-in profile or the path of a TOML file.
        stages: run these alone; nothing for all.
        from_stage: run this stage and all after it.
        force: build these again, and what depends on them.
        overrides: settings to change, `{"sft.learning_rate": 1e-4}`.
        home: directory of artifacts and downloads; nothing for the worker's `$PARAAGENT_HOME`, else `.paraagent`.
    """
    runner = PREPARED.get()
    screen = runner.progress if runner else None
    settings = runner.request.profile if runner else load_profile(profile, overrides or {})
    progress = FlowProgress(settings.name, get_run_logger(), screen)
    if runner is None:
        request = Request(settings, tuple(stages or ()), from_stage, tuple(force or ()))
        runner = Runner(request, Home.locate(home), progress)
    runner.progress = progress
    return [outcome.summary() for outcome in runner.run(_execute(runner, progress, profile, overrides or {}))]


def _execute(runner: Runner, progress: FlowProgress, profile: str, overrides: dict[str, Any]) -> Execute:
    """Each stage as a task; GPU stages go to their own deployment where the profile says so."""
    settings = runner.request.profile
    to_workers = settings.machine.dispatch == "workers"

    def execute(step: Step, build: Callable[[], Outcome]) -> Outcome:
        progress.begin(step)
        own_deployment = deployment.get_name() == step.stage.name
        away = to_workers and step.stage.gpu and step.action != "reuse" and not own_deployment
        work = partial(dispatch, runner, step, profile, overrides) if away else build
        return run_as_task(step, work, settings.name, runner.home)

    return execute


def run_as_task(step: Step, work: Callable[[], Outcome], profile: str, home: Home) -> Outcome:
    """A task named `sft@3f2a1c` that does the work and publishes its artifacts."""

    @task(
        name=step.label,
        task_run_name=step.label,
        tags=["paraagent", step.stage.name, profile, "gpu" if step.stage.gpu else "cpu"],
        retries=RETRIES if step.stage.network else 0,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=_network_failed,
        cache_policy=NO_CACHE,
        persist_result=False,
    )
    def stage() -> Outcome:
        directory = home.artifact(step.stage.name, step.fingerprint)
        try:
            outcome = work()
        except RunError:
            publish_contracts(profile, step.stage.name, directory)
            raise
        publish(profile, outcome)
        publish_contracts(profile, step.stage.name, outcome.path)
        return outcome

    return stage()


def dispatch(runner: Runner, step: Step, profile: str, overrides: dict[str, Any]) -> Outcome:
    """Run one stage through its own deployment, on the pool of that deployment, and wait for it.

    Raises:
        RunError: the other run did not complete; its message is passed on.
    """
    from prefect.deployments import run_deployment

    name = step.stage.name
    run: Any = run_deployment(
        f"paraagent/{name}",
        parameters={
            "profile": profile,
            "stages": [name],
            "force": [name] if step.action == "rebuild" else [],
            "overrides": overrides,
            "home": str(runner.home.root),
        },
    )
    if run.state is None or not run.state.is_completed():
        raise RunError(f"The stage {name} failed on its worker: {run.state.message if run.state else 'no state'}")
    return runner.built_elsewhere(step)


def _network_failed(_task: Any, _run: Any, state: Any) -> bool:
    """Only a network that did not answer is worth another try."""
    try:
        state.result()
    except NetworkError:
        return True
    except Exception:
        return False
    return False
