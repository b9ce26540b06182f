"""Stage `rl`: reinforcement learning from the fine-tuned model, on training tasks.

Artifact: `model/` (a transformers folder), `log.jsonl` (one row an update: each reward channel, groups without a
spread, loss), `episodes.jsonl` (every episode that was played, by update).
"""

from __future__ import annotations

from functools import partial

from paraagent.files import read_lines
from paraagent.task import Task
from pipelines import frames
from pipelines.environment import open_backends, recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Play, score and update, from the last checkpoint where there is one."""
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.env import ToolEnv
    from paraagent.training.rl import reinforce

    profile, source = context.profile, context.inputs["catalog"]
    rows = (Task.model_validate(row) for row in read_lines(context.inputs["tasks"] / "tasks.jsonl"))
    with Catalog.open(source / "catalog.duckdb") as catalog:
        index, backends = ToolIndex.load(source / "index", catalog), open_backends(context, catalog)
        report = reinforce(
            [task for task in rows if task.split == "train"],
            partial(ToolEnv, catalog, index, profile.env, backends=backends),
            context.inputs["sft"] / "model",
            context.out,
            profile.rl,
            profile.env,
            profile.rewards,
            context.seed("rl"),
            context.progress,
        )
    return StageResult(
        rows={"episodes": report.episodes, "updates": report.updates},
        metrics={
            "skipped": report.skipped,
            "sampled_tokens": report.sampled_tokens,
            "solved_first": report.solved_first,
            "solved_last": report.solved_last,
        },
    )


STAGE = Stage(
    name="rl",
    version=5,
    title="Reinforce on episodes of its own",
    build=build,
    inputs=("catalog", "tasks", "sft"),
    sections=("rl", "env", "rewards"),
    contracts=(Contract("episodes", frames.episodes),),
    external=recordings,
    gpu=True,
)
