"""Stage `tasks`: verified requests over the catalog, for training, validation and test.

Artifact: `tasks.jsonl` (one `Task` a line, sorted by split and id), `rejected.json` (drafts not taken, by reason) and,
where a model is named to rewrite requests, `rewritten.jsonl` (each request before and after, or why it stayed).
"""

from __future__ import annotations

from collections import Counter

from paraagent.errors import RunError
from paraagent.files import write_json, write_lines
from pipelines import frames
from pipelines.catalog import processes
from pipelines.environment import LLM_CACHE, recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Synthesise the tasks of every split.

    Raises:
        RunError: the catalog holds no tool that a task can be made of, or nobody answers where requests are rewritten.
    """
    from paraagent.catalog.store import Catalog
    from paraagent.llm import LlmClient
    from paraagent.retrieval.index import ToolIndex
    from paraagent.tasks.rewriting import outcomes, rewrite
    from paraagent.tasks.synthesis import synthesise

    profile, source = context.profile, context.inputs["catalog"]
    with Catalog.open(source / "catalog.duckdb") as catalog:
        index = ToolIndex.load(source / "index", catalog)
        seed, workers = context.seed("tasks"), processes(profile.machine)
        made = synthesise(catalog, index, profile.tasks, profile.env, seed, context.progress, workers)
    if not made.tasks:
        raise RunError("no task could be made of this catalog: add a source with tools that read and describe results")
    write_json(context.out / "rejected.json", made.rejected)
    tasks, rewriting = made.tasks, {}
    if profile.tasks.rewriter.model:
        client = LlmClient(profile.tasks.rewriter, context.home / LLM_CACHE)
        tasks, attempts = rewrite(tasks, client, seed, context.progress)
        write_lines(context.out / "rewritten.jsonl", (attempt._asdict() for attempt in attempts))
        rewriting = {"rewriting": outcomes(attempts)}
    rows = write_lines(context.out / "tasks.jsonl", (task.model_dump(mode="json") for task in tasks))
    splits = Counter(task.split for task in tasks)
    shapes = Counter(task.label for task in tasks)
    reaches = Counter(task.reach for task in tasks)
    return StageResult(
        rows={"tasks": rows, **dict(sorted(splits.items()))},
        metrics={
            "shapes": dict(sorted(shapes.items())),
            "reaches": dict(sorted(reaches.items())),
            "writing": sum(bool(task.state) for task in tasks),
            "tools": len({tool for task in tasks for tool in task.targets}),
            "rejected": sum(made.rejected.values()),
            **rewriting,
        },
    )


STAGE = Stage(
    name="tasks",
    version=7,
    title="Synthesise and verify tasks",
    build=build,
    inputs=("catalog",),
    sections=("tasks", "env"),
    contracts=(Contract("tasks", frames.tasks),),
    external=recordings,
)
