"""Behaviour: how far an episode got before it failed, as a funnel of steps that every solution must take.

Each episode falls into exactly one bin: the first step that is missing. So the bins of a system add up to its episodes,
and a difference between two systems says *what* one of them learned.
"""

from __future__ import annotations

from typing import Literal, get_args

from paraagent.files import canonical_json
from paraagent.task import Task
from paraagent.trace import Episode

Outcome = Literal[
    "solved", "wrong_answer", "limit", "wrong_arguments", "wrong_tool", "not_found", "no_search", "format", "error"
]
"""Where an episode ended, best first."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

LABELS: dict[Outcome, str] = {
    "solved": "Solved",
    "wrong_answer": "Wrong answer",
    "limit": "Out of turns or tokens",
    "wrong_arguments": "Wrong arguments",
    "wrong_tool": "Tool found, not called",
    "not_found": "Tool not found",
    "no_search": "Never searched",
    "format": "Unreadable",
    "error": "Error",
}
"""Two or three words for a person."""

MEANINGS: dict[Outcome, str] = {
    "solved": "every fact that the request asks for is in the answer",
    "wrong_answer": "made every call right, then answered wrongly or in part",
    "limit": "made every call right, then ran out of turns or tokens before an answer",
    "wrong_arguments": "called every tool that is needed, at least one with wrong arguments",
    "wrong_tool": "found every tool that is needed, and did not call all of them",
    "not_found": "searched, but at least one tool that is needed was in no result",
    "no_search": "answered or called without a search",
    "format": "at the step that was due it wrote nothing that the protocol can read",
    "error": "broke off",
}
"""What puts an episode into a bin."""


def classify(task: Task, episode: Episode, *, solved: bool) -> Outcome:
    """The bin of one episode: solved, or the first step of search -> find -> call -> arguments -> answer that is
    missing.

    `format` means that the step was tried in words that the protocol cannot read.
    """
    if solved:
        return "solved"
    if episode.end == "error":
        return "error"
    if not any(turn.events for turn in episode.turns) and episode.answer is None:
        return "format"
    found = {hit for search in episode.searches if search.visible for hit in search.hits}
    called = {call.name for call in episode.calls}
    succeeded = {_identity(call.name, call.arguments) for call in episode.calls if call.ok}
    if not episode.searches:
        return "no_search"
    if not found.issuperset(task.targets):
        return "not_found"
    if not called.issuperset(task.targets):
        return "format" if "" in called else "wrong_tool"
    if any(_identity(call.tool, call.arguments) not in succeeded for call in task.calls):
        return "wrong_arguments"
    if episode.answer is not None:
        return "wrong_answer"
    return "format" if episode.turns[-1].family in ("invalid", "mixed") else "limit"


def _identity(name: str, arguments: object) -> bytes:
    return name.encode() + b"\0" + canonical_json(arguments)
