"""Stage `sft`: fine-tune the base model on the demonstrations, and play validation tasks along the way.

Artifact: `model/` (a transformers folder with its card; with LoRA also `model/adapter/`), `log.jsonl` (one row a step:
loss, token accuracy, learning rate, tokens), `validation.jsonl` (one row a playing: how many tasks it solved).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraagent.files import read_lines
from paraagent.task import Task
from pipelines.environment import open_backends, recordings
from pipelines.stage import Stage, StageContext, StageResult

if TYPE_CHECKING:
    from paraagent.toolenv.env import ToolEnv


_TOLD = 10
"""Validation tasks after which it is said how many were played."""


def build(context: StageContext) -> StageResult:
    """Tune on the demonstrations, from the last checkpoint where there is one."""
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.env import ToolEnv
    from paraagent.training.card import write_card
    from paraagent.training.sft import tune

    profile, source = context.profile, context.inputs["catalog"]
    rows = (Task.model_validate(row) for row in read_lines(context.inputs["tasks"] / "tasks.jsonl"))
    tasks = [task for task in rows if task.split == "validation"][: profile.sft.validation_tasks]
    with Catalog.open(source / "catalog.duckdb") as catalog:
        index, backends = ToolIndex.load(source / "index", catalog), open_backends(context, catalog)
        env = partial(ToolEnv, catalog, index, profile.env, backends=backends)
        report = tune(
            context.inputs["demos"] / "demos.parquet",
            context.inputs["model"] / "model",
            context.out,
            profile.sft,
            context.seed("sft"),
            context.progress,
            partial(play, tasks, env, context) if tasks else None,
            profile.machine.training_processes,
        )
    write_card(context.out / "model", report, profile, {name: path.name for name, path in context.inputs.items()})
    return StageResult(
        rows={"demos": report.demos, "steps": report.steps},
        metrics={
            "tokens": report.tokens,
            "loss_first": report.loss_first,
            "loss_last": report.loss_last,
            "left_out": report.left_out,
            "best_step": report.best_step,
            "validation": report.validation,
        },
    )


def play(tasks: Sequence[Task], env: partial[ToolEnv], context: StageContext, model: Path) -> Mapping[str, Any]:
    """Play the validation tasks with the model in a folder, greedily.

    Returns `solved` and `tasks`, and of the tools that were needed (`targets`) how many searches
    found and calls used right.
    """
    from paraagent.agents.local import LocalPolicy
    from paraagent.evaluation import plan_units, score_frame, score_row
    from paraagent.evaluation.runner import run_unit
    from paraagent.rewards.score import score

    profile = context.profile
    seed = context.seed("validation")
    policy = LocalPolicy(model, profile.env, name="sft", group=profile.sft.validation_batch, seed=seed)
    [unit] = plan_units(tasks, len(tasks), seed)

    def ended(number: int) -> None:
        if number % _TOLD == 0 and number < len(tasks):
            context.progress.message(f"{number} of {len(tasks)} validation tasks played")

    episodes = asyncio.run(run_unit(unit, policy, env, profile.rewards, ended))
    frame = score_frame(
        score_row("sft", task, episode, score(task, episode, profile.rewards))
        for task, episode in zip(tasks, episodes, strict=True)
    )
    return {
        "solved": int(frame["solved"].sum()),
        "tasks": frame.height,
        "targets": int(frame["targets"].sum()),
        "found": int(frame["targets_found"].sum()),
        "called": int(frame["targets_called"].sum()),
    }


STAGE = Stage(
    name="sft",
    version=3,
    title="Fine-tune on the demonstrations",
    build=build,
    inputs=("catalog", "tasks", "demos", "model"),
    sections=("sft", "env", "rewards"),
    external=recordings,
    gpu=True,
)
