"""Recoveries: where an episode went wrong and found back, read from its trace alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from paraagent.paraact.executor import RETRYABLE
from paraagent.paraact.protocol import call_identity, fold
from paraagent.task import Task
from paraagent.trace import Episode, Turn

Recovery = Literal["search again", "other tool", "corrected call", "fault retried", "plan revised", "plan restarted"]


def recoveries(episode: Episode, task: Task) -> list[Recovery]:
    """The kinds of recovery of an episode, in the order above, each once."""
    found: set[Recovery] = {*_searches(episode), *_calls(episode, task), *_plans(episode)}
    order: tuple[Recovery, ...] = (
        "search again",
        "other tool",
        "corrected call",
        "fault retried",
        "plan revised",
        "plan restarted",
    )
    return [kind for kind in order if kind in found]


def mistakes(episode: Episode) -> list[int]:
    """Places in the conversation of turns that an agent should not learn: a script went wrong there on purpose."""
    return [2 + 2 * number for number, turn in enumerate(episode.turns) if _slips(turn, episode.turns[number + 1 :])]


def _slips(turn: Turn, later: Sequence[Turn]) -> bool:
    """Whether a turn carries a slip; a search that was vague and found what was needed all the same is none."""
    slips = {note.text for note in turn.notes if note.role == "slip"}
    slots = {fold(search.slot) for search in turn.searches}
    again = any(fold(search.slot) in slots for each in later for search in each.searches)
    return bool(slips - {"vague"}) or ("vague" in slips and again)


def _searches(episode: Episode) -> Iterator[Recovery]:
    """A need that was searched again, or one that the first plan lacked; and then a call."""
    asked: set[str] = set()
    again = planned = False
    for turn in episode.turns:
        slots = {fold(search.slot) for search in turn.searches}
        again |= bool(slots & asked) or (
            planned and turn.plan is not None and turn.plan.kind == "revise" and bool(slots)
        )
        planned |= bool(slots)
        asked |= slots
        if again and turn.calls:
            yield "search again"
            return


def _calls(episode: Episode, task: Task) -> Iterator[Recovery]:
    targets = {fold(name) for slot in task.slots for name in (slot.tool, *slot.equivalents)}
    strayed = False
    failed: dict[tuple[str, bytes], str] = {}
    for turn in episode.turns:
        for call in turn.calls:
            identity = call_identity(call.name, call.arguments)
            if call.ok and failed.get(identity) in RETRYABLE:
                yield "fault retried"
            if call.ok and any(
                other[0] == identity[0] and other != identity and kind == "InvalidRequestError"
                for other, kind in failed.items()
            ):
                yield "corrected call"
            if call.ok and identity[0] in targets and strayed:
                yield "other tool"
        for call in turn.calls:
            strayed |= fold(call.name) not in targets
            if call.error is not None:
                failed[call_identity(call.name, call.arguments)] = call.error.type


def _plans(episode: Episode) -> Iterator[Recovery]:
    for turn in episode.turns:
        if turn.plan and turn.plan.kind == "revise":
            yield "plan revised"
        elif turn.plan and turn.plan.kind == "restart":
            yield "plan restarted"
