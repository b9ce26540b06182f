"""Stage `tasks`: verified requests over the catalog, for training, validation and test.

Artifact: `tasks.jsonl` (one `Task` a line, sorted by split and id), `rejected.json` (drafts not taken, by reason).
"""

from __future__ import annotations

from collections import Counter

from paraagent.errors import RunError
from paraagent.files import write_json, write_lines
from pipelines import frames
from pipelines.catalog import processes
from pipelines.environment import recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Synthesise the tasks of every split.

    Raises:
        RunError: the catalog holds no tool that a task can be made of.
    """
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.tasks.synthesis import synthesise

    profile, source = context.profile, context.inputs["catalog"]
    with Catalog.open(source / "catalog.duckdb") as catalog:
        index = ToolIndex.load(source / "index", catalog)
        seed, workers = context.seed("tasks"), processes(profile.machine)
        made = synthesise(catalog, index, profile.tasks, profile.env, seed, context.progress, workers)
    if not made.tasks:
        raise RunError("no task could be made of this catalog: add a source with tools that read and describe results")
    write_json(context.out / "rejected.json", made.rejected)
    rows = write_lines(context.out / "tasks.jsonl", (task.model_dump(mode="json") for task in made.tasks))
    splits = Counter(task.split for task in made.tasks)
    shapes = Counter(task.label for task in made.tasks)
    reaches = Counter(task.reach for task in made.tasks)
    return StageResult(
        rows={"tasks": rows, **dict(sorted(splits.items()))},
        metrics={
            "shapes": dict(sorted(shapes.items())),
            "reaches": dict(sorted(reaches.items())),
            "writing": sum(bool(task.state) for task in made.tasks),
            "tools": len({tool for task in made.tasks for tool in task.targets}),
            "rejected": sum(made.rejected.values()),
        },
    )


STAGE = Stage(
    name="tasks",
    version=4,
    title="Synthesise and verify tasks",
    build=build,
    inputs=("catalog",),
    sections=("tasks", "env"),
    contracts=(Contract("tasks", frames.tasks),),
    external=recordings,
)
