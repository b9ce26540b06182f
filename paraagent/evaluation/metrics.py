"""Metrics: one row an episode, and what a set of rows says about each system and each pair of systems.

Everything here is a pure function of a task, an episode and its rewards, or of a polars frame of such rows, so figures
can be recomputed from `scores.parquet` at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from paraagent.evaluation.behaviour import OUTCOMES, classify
from paraagent.evaluation.intervals import paired_bootstrap, wilson
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.trace import Episode

if TYPE_CHECKING:
    from paraagent.rewards.score import Rewards

SCHEMA: dict[str, Any] = {
    "system": pl.String,
    "task_id": pl.String,
    "shape": pl.String,
    "width": pl.Int32,
    "reach": pl.String,
    "seed": pl.Int64,
    "solved": pl.Boolean,
    "outcome": pl.Float64,
    "step": pl.Float64,
    "phase": pl.Float64,
    "format": pl.Float64,
    "penalty": pl.Float64,
    "trajectory": pl.Float64,
    "turns": pl.Int32,
    "searches": pl.Int32,
    "calls": pl.Int32,
    "completion_tokens": pl.Int32,
    "end": pl.String,
    "targets": pl.Int32,
    "targets_found": pl.Int32,
    "targets_called": pl.Int32,
    "calls_ok": pl.Int32,
    "call_turns": pl.Int32,
    "failure": pl.String,
}
"""Columns of `scores.parquet`. `failure` is the bin of `behaviour.classify`; `targets*` count distinct tools."""

REWARDS = ("outcome", "step", "phase", "format", "penalty", "trajectory")
COMPARISONS = (("sft", "base"), ("rl", "sft"))
"""Which differences are reported: what demonstrations add, and what reinforcement adds to them."""


def score_row(system: str, task: Task, episode: Episode, rewards: Rewards) -> dict[str, Any]:
    """One row of `scores.parquet`."""
    targets = set(task.targets)
    found = {hit for search in episode.searches if search.visible for hit in search.hits}
    return {
        "system": system,
        "task_id": task.task_id,
        "shape": task.shape,
        "width": task.width,
        "reach": task.reach,
        "seed": episode.seed,
        "solved": rewards.solved,
        **{name: float(getattr(rewards, name)) for name in REWARDS},
        "turns": len(episode.turns),
        "searches": len(episode.searches),
        "calls": len(episode.calls),
        "completion_tokens": sum(turn.completion_tokens for turn in episode.turns),
        "end": episode.end,
        "targets": len(targets),
        "targets_found": len(targets & found),
        "targets_called": len(targets & {call.name for call in episode.calls if call.ok}),
        "calls_ok": sum(call.ok for call in episode.calls),
        "call_turns": sum(bool(turn.calls) for turn in episode.turns),
        "failure": classify(task, episode, solved=rewards.solved),
    }


def score_frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """The frame behind `scores.parquet`, typed also where there are no rows."""
    return pl.DataFrame(list(rows), schema=SCHEMA)


def summarise(scores: pl.DataFrame, systems: Sequence[str], confidence: float, seed: int) -> dict[str, Any]:
    """What `summary.json` holds: success with intervals, differences of pairs, means, and failure bins, by system."""
    parts = {system: scores.filter(pl.col("system") == system) for system in systems}
    return {
        "benchmark": "toolenv",
        "tasks": scores["task_id"].n_unique(),
        "confidence": confidence,
        "systems": list(systems),
        "success": {system: success(part, confidence) for system, part in parts.items()},
        "by_shape": {
            system: {label: success(rows, confidence) for label, rows in _by_shape(part)}
            for system, part in parts.items()
        },
        "differences": [
            difference(parts[first], parts[second], first, second, confidence, seed)
            for first, second in COMPARISONS
            if first in parts and second in parts
        ],
        "means": {system: means(part) for system, part in parts.items()},
        "failures": {system: failures(part) for system, part in parts.items()},
    }


def success(scores: pl.DataFrame, confidence: float) -> dict[str, Any]:
    """Solved episodes of one system and Wilson's interval of their share."""
    solved = int(scores["solved"].sum())
    rate, low, high = wilson(solved, scores.height, confidence)
    return {"n": scores.height, "solved": solved, "rate": rate, "low": low, "high": high}


def difference(
    first: pl.DataFrame, second: pl.DataFrame, name: str, other: str, confidence: float, seed: int
) -> dict[str, Any]:
    """Success of `name` minus success of `other` on the tasks both ran, with a bootstrap interval over tasks.

    `gained` and `lost` count the tasks that only `name` solved, and only `other`.
    """
    pairs = first.join(second, on="task_id", suffix="_other").sort("task_id")
    own, others = pairs["solved"].cast(pl.Float64).to_list(), pairs["solved_other"].cast(pl.Float64).to_list()
    value, low, high = paired_bootstrap(own, others, confidence, derive(seed, "bootstrap", name, other))
    return {
        "system": name,
        "baseline": other,
        "n": pairs.height,
        "difference": value,
        "low": low,
        "high": high,
        "gained": sum(a > b for a, b in zip(own, others, strict=True)),
        "lost": sum(a < b for a, b in zip(own, others, strict=True)),
    }


def means(scores: pl.DataFrame) -> dict[str, float | None]:
    """Means over the episodes of one system; None where there is nothing to divide by.

    `calls_per_turn` is calls per turn that calls at all (1 means one at a time), `tool_hit_rate` the mean share of a
    task's tools that its searches returned, `call_success` the share of all calls that succeeded.
    """
    plain = [*REWARDS, "turns", "searches", "calls", "completion_tokens"]
    row = scores.select(
        *[pl.col(name).mean() for name in plain],
        (pl.col("calls").sum() / pl.col("call_turns").sum()).alias("calls_per_turn"),
        (pl.col("targets_found") / pl.col("targets")).fill_nan(None).mean().alias("tool_hit_rate"),
        (pl.col("calls_ok").sum() / pl.col("calls").sum()).alias("call_success"),
    ).fill_nan(None)
    return {name: None if value is None else float(value) for name, value in row.row(0, named=True).items()}


def failures(scores: pl.DataFrame) -> dict[str, int]:
    """Episodes of one system by bin; every bin is listed and the counts add up to the episodes."""
    counts = dict(scores["failure"].value_counts().iter_rows())
    return {name: int(counts.get(name, 0)) for name in OUTCOMES}


def _by_shape(scores: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    label = pl.when(pl.col("width") <= 1).then(pl.col("shape")).otherwise(pl.format("{}-{}", "shape", "width"))
    labelled = scores.with_columns(label.alias("label")).sort("width", "label", "task_id")
    return [(str(key[0]), part) for key, part in labelled.group_by("label", maintain_order=True)]
