"""Stage `demos`: demonstrations from the oracle's episodes on training tasks.

Artifact: `demos.parquet` (a Hugging Face data set), `episodes.jsonl` (the episodes behind it), `rejected.json`
(episodes left out, by reason).
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from paraagent.errors import RunError
from paraagent.files import read_lines, write_json, write_lines
from paraagent.task import Task
from pipelines import frames
from pipelines.environment import open_backends, recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Play the training tasks and write what is worth learning from.

    Raises:
        RunError: no episode qualifies.
    """
    from paraagent.agents.language_model import load_tokenizer
    from paraagent.agents.transcript import Transcriber
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.env import ToolEnv
    from paraagent.training.demos import demonstrate, write_demos

    profile, source = context.profile, context.inputs["catalog"]
    rows = (Task.model_validate(row) for row in read_lines(context.inputs["tasks"] / "tasks.jsonl"))
    tasks = [task for task in rows if task.split == "train"]
    transcriber = Transcriber(load_tokenizer(context.inputs["model"] / "model"))
    with Catalog.open(source / "catalog.duckdb") as catalog:
        index, backends = ToolIndex.load(source / "index", catalog), open_backends(context, catalog)
        env = partial(ToolEnv, catalog, index, profile.env, split="train", backends=backends)
        made = demonstrate(
            tasks, env, transcriber, profile.demos, profile.rewards, context.seed("demos"), context.progress
        )
    write_json(context.out / "rejected.json", made.rejected)
    if not made.rows:
        raise RunError(
            f"none of {len(tasks)} training tasks gave a demonstration ({made.rejected}): "
            "raise demos.max_tokens or tasks.train"
        )
    write_demos(made.rows, context.out / "demos.parquet")
    write_lines(context.out / "episodes.jsonl", (episode.model_dump(mode="json") for episode in made.episodes))
    tokens = sorted(row["n_tokens"] for row in made.rows)
    widths = Counter(f"width {row['width']}" for row in made.rows)
    return StageResult(
        rows={"demos": len(made.rows)},
        metrics={
            "rejected": made.rejected,
            "widths": dict(sorted(widths.items())),
            "tokens_median": tokens[len(tokens) // 2],
            "tokens": sum(tokens),
            "model_tokens": sum(row["n_model_tokens"] for row in made.rows),
        },
    )


STAGE = Stage(
    name="demos",
    version=4,
    title="Play training tasks with the oracle",
    build=build,
    inputs=("catalog", "tasks", "model"),
    sections=("demos", "env", "rewards"),
    contracts=(Contract("demos", frames.demos), Contract("episodes", frames.episodes)),
    external=recordings,
)
