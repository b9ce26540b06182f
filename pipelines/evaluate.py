"""Stage `evaluate`: oracle, base, sft and rl on the same held-out tasks, unit by unit, resumable after any.

Artifact: `episodes/<system>.jsonl` (one episode a line), `scores.parquet` (one row an episode), `summary.json`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paraagent.errors import RunError
from paraagent.files import read_lines, write_json
from paraagent.progress import Progress
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.trace import Episode
from pipelines import frames
from pipelines.environment import open_backends, recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult, UnitLog

if TYPE_CHECKING:
    from paraagent.agents.policy import Policy
    from paraagent.evaluation import Unit

RunUnits = Callable[["Sequence[Unit]", "Policy", Any, Any, Any], Coroutine[Any, Any, "list[Unit]"]]
"""`run_units` once environment and rewards are settled."""
_NAMED = 5
"""Failed units that are named."""


def build(context: StageContext) -> StageResult:
    """Run every system on the held-out tasks, whose searches see the whole catalog.

    Raises:
        RunError: there is no held-out task, or a unit failed every attempt (its errors are in the sidecar).
    """
    from paraagent.catalog.store import Catalog
    from paraagent.evaluation import plan_units, run_units, score_frame, score_row, summarise
    from paraagent.evaluation.benchmarks.toolenv import held_out
    from paraagent.evaluation.runner import BATCHES
    from paraagent.retrieval.index import ToolIndex
    from paraagent.rewards.score import score
    from paraagent.toolenv.env import ToolEnv

    profile, config, seed = context.profile, context.profile.evaluate, context.seed("evaluate")
    rows = (Task.model_validate(row) for row in read_lines(context.inputs["tasks"] / "tasks.jsonl"))
    tasks = held_out(rows, config.limit, seed)
    if not tasks:
        raise RunError("there is no test task to evaluate on: raise `tasks.test`, or add a source with more services")
    units = plan_units(tasks, BATCHES * config.batch, seed)
    scores = []
    context.progress.start(len(tasks) * len(config.systems), "episodes")
    with Catalog.open(context.inputs["catalog"] / "catalog.duckdb") as catalog:
        index = ToolIndex.load(context.inputs["catalog"] / "index", catalog)
        env = partial(ToolEnv, catalog, index, profile.env, backends=open_backends(context, catalog))

        def run(owed: Sequence[Unit], policy: Policy, *told: Any) -> Coroutine[Any, Any, list[Unit]]:
            return run_units(owed, policy, env, profile.rewards, *told)

        for system in config.systems:
            log = UnitLog(context.out / "episodes", system)
            run_owed(system, units, log, run, partial(make_policy, system, context), context.progress)
            episodes = [Episode.model_validate(row) for row in log.close(task.task_id for task in tasks)]
            for task, episode in zip(tasks, episodes, strict=True):
                scores.append(score_row(system, task, episode, score(task, episode, profile.rewards)))
    frame = score_frame(scores)
    frame.write_parquet(context.out / "scores.parquet")
    summary = summarise(frame, config.systems, config.confidence, seed)
    write_json(context.out / "summary.json", summary)
    return StageResult(rows={"tasks": len(tasks), "episodes": frame.height}, metrics={"success": summary["success"]})


def run_owed(
    name: str, units: Sequence[Unit], log: UnitLog, run: RunUnits, policy: Callable[[], Policy], progress: Progress
) -> None:
    """Run the units that are not finished; the policy is opened only if there is one.

    Raises:
        RunError: units failed every attempt; the others are finished and kept.
    """
    from paraagent.evaluation.runner import ATTEMPTS

    done = log.finished()
    owed = [unit for unit in units if any(task.task_id not in done for task in unit.tasks)]
    if len(owed) < len(units):
        progress.message(f"{name}: {len(units) - len(owed)} of {len(units)} units were done before")
    progress.advance(sum(len(unit.tasks) for unit in units if unit not in owed))
    if not owed:
        return

    def finished(unit: Unit, episodes: list[Episode]) -> None:
        log.add((episode.task_id, episode.model_dump(mode="json")) for episode in episodes)

    def broke(unit: Unit, error: str) -> None:
        log.fail(unit.key, error)

    shown: Counter[str] = Counter()

    def ended(unit: Unit, number: int) -> None:
        if number > shown[unit.key]:  # an attempt after a failed one shows only what goes beyond it
            shown[unit.key] = number
            progress.advance()

    if failed := asyncio.run(run(owed, policy(), finished, broke, ended)):
        keys = ", ".join(unit.key for unit in failed[:_NAMED]) + (", …" if len(failed) > _NAMED else "")
        raise RunError(
            f"{len(failed)} of {len(units)} units of {name} failed {ATTEMPTS} times ({keys}): "
            f"read {log.failed_path}, then run the same command again; finished units are kept"
        )


def make_policy(system: str, context: StageContext) -> Policy:
    """Who writes the turns of a system: the oracle, or the model of the stage that the system is named after."""
    if system == "oracle":
        from paraagent.agents.oracle import OraclePolicy

        return OraclePolicy()
    from paraagent.agents.local import LocalPolicy

    stage = "model" if system == "base" else system
    return LocalPolicy(
        context.inputs[stage] / "model",
        context.profile.env,
        name=system,
        temperature=0.0,
        group=context.profile.evaluate.batch,
        seed=derive(context.seed("evaluate"), system),
    )


STAGE = Stage(
    name="evaluate",
    version=6,
    title="Run oracle, base, sft and rl on held-out tasks",
    build=build,
    inputs=("catalog", "tasks", "model", "sft", "rl"),
    sections=("env", "rewards", "evaluate"),
    contracts=(Contract("episodes", frames.episodes), Contract("scores", frames.scores)),
    external=recordings,
    gpu=True,
)
