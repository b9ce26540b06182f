"""Example episodes: which ones to show, and how one reads to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import orjson

from paraagent.evaluation import LABELS, Outcome
from paraagent.files import read_lines
from paraagent.task import Task
from paraagent.trace import Call, Episode, Turn

_TITLES = {
    "search": "Search",
    "call": "Call",
    "answer": "Answer",
    "mixed": "Mixed blocks",
    "invalid": "Not readable",
}
_MAX_TEXT = 2_400
_BLANK = "(nothing but white space)"


@dataclass(frozen=True)
class CallView:
    """One call: what was sent and what came back, as indented JSON."""

    name: str
    target: bool
    ok: bool
    arguments: str
    result: str


@dataclass(frozen=True)
class TurnView:
    """One turn. `raw` is set where the turn could not be read, and then says what the model wrote."""

    title: str
    think: str
    plan: str
    searches: list[tuple[str, list[tuple[str, bool]]]]
    """(query, [(tool, is it a target)])."""
    calls: list[CallView]
    problems: tuple[str, ...]
    raw: str


@dataclass(frozen=True)
class EpisodeView:
    """One episode on one task."""

    system: str
    outcome: Outcome
    label: str
    shape: str
    episode: Episode
    task: Task
    turns: list[TurnView]


def choose_examples(evaluate: Path, tasks: Sequence[Task], systems: Sequence[str], limit: int) -> list[EpisodeView]:
    """A few telling episodes: of each system one that worked, its commonest failure, then others; trained ones first.

    Systems take turns, so that all are seen before any is seen twice.
    """
    import polars as pl

    by_id = {task.task_id: task for task in tasks}
    scores = pl.read_parquet(evaluate / "scores.parquet").sort("system", "task_id")
    queues = []
    for system in sorted(systems, key=["rl", "sft", "oracle", "base"].index):
        episodes = {
            row["row"]["task_id"]: Episode.model_validate(row["row"])
            for row in read_lines(evaluate / "episodes" / f"{system}.jsonl")
        }
        ordered = _telling(scores.filter(pl.col("system") == system))
        queues.append([_view(system, outcome, episodes[task_id], by_id[task_id]) for task_id, outcome in ordered])
    rounds = (view for views in zip_longest(*queues) for view in views if view is not None)
    return list(islice(rounds, limit))


def _telling(scores: Any) -> Iterator[tuple[str, Outcome]]:
    """(task id, bin): one episode of each bin, solved first, then by frequency; among them the widest task."""
    bins = scores["failure"].value_counts().sort("count", "failure", descending=[True, False])["failure"].to_list()
    for name in sorted(bins, key=lambda name: name != "solved"):
        part = scores.filter(scores["failure"] == name).sort("width", "task_id", descending=[True, False])
        yield part["task_id"][0], name


def _view(system: str, outcome: Outcome, episode: Episode, task: Task) -> EpisodeView:
    return EpisodeView(
        system=system,
        outcome=outcome,
        label=LABELS[outcome],
        shape=task.label,
        episode=episode,
        task=task,
        turns=[_turn(turn, set(task.targets)) for turn in episode.turns],
    )


def _turn(turn: Turn, targets: set[str]) -> TurnView:
    title = _TITLES[turn.family]
    if len(turn.events) > 1:
        kind = "searches" if turn.family == "search" else "calls"
        title = f"{title}: {len(turn.events)} {kind} sent together"
    return TurnView(
        title=title,
        think=turn.think or "",
        plan="" if turn.plan is None else _json(turn.plan.body) if turn.plan.body is not None else turn.plan.raw,
        searches=[(search.query, [(hit, hit in targets) for hit in search.hits]) for search in turn.searches],
        calls=[_call(call, targets) for call in turn.calls],
        problems=turn.problems,
        raw=(_clip(turn.text.strip()) or _BLANK) if turn.family in ("invalid", "mixed") else "",
    )


def _call(call: Call, targets: set[str]) -> CallView:
    error = None if call.error is None else f"{call.error.type}: {call.error.msg}"
    return CallView(
        name=call.name,
        target=call.name in targets,
        ok=call.ok,
        arguments=_json(call.arguments),
        result=_clip(error if error is not None else _json(call.result)),
    )


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _clip(text: str) -> str:
    left = len(text) - _MAX_TEXT
    return text if left <= 0 else f"{text[:_MAX_TEXT]}\n… {left:,} more characters"
