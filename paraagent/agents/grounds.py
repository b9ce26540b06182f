"""Grounds: whether what is used was seen before, in the request or in an observation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from paraagent.paraact.protocol import compact, fold
from paraagent.trace import Episode

_TELLING = re.compile(r"\S*\d\S*")
_SHORT = 2
"""A text of so few characters stands by chance in any observation; numbers below ten need none."""


def unseen(arguments: Any, seen: Sequence[str]) -> list[str]:
    """Scalars of arguments that none of the texts holds, as JSON. Truth values say nothing that could be seen."""
    texts = [text.casefold() for text in seen]
    return [
        compact(value)
        for value in _scalars(arguments)
        if not any(_stands(form, text) for form in _forms(value) for text in texts)
    ]


def unseen_in(text: str, seen: Sequence[str]) -> list[str]:
    """Words of a text that hold a digit, of three characters and more, and that none of the texts seen holds."""
    texts = [each.casefold() for each in seen]
    said = (word.strip(".,;:!?()\"'") for word in _TELLING.findall(text.casefold()))
    return [word for word in said if len(word) > _SHORT and not any(_stands(word, each) for each in texts)]


def ungrounded(episode: Episode) -> str:
    """What an episode used although nobody had shown it: a tool or a value; empty where everything was seen."""
    seen = [episode.request]
    shown = {fold(name) for search in episode.opening for name in search.hits}
    for turn in episode.turns:
        planned = turn.plan.body.get("available_tools", ()) if turn.plan and turn.plan.body else ()
        for name in (*planned, *(call.name for call in turn.calls)):
            if fold(name) not in shown:
                return f"tool {name}"
        for call in turn.calls:
            if values := unseen(call.arguments, seen):
                return f"value {values[0]}"
        said = f"{turn.think or ''}\n{(episode.answer or '') if turn.family == 'answer' else ''}"
        if episode.calls and (values := unseen_in(said, seen)):
            return f"value {values[0]}"
        shown |= {fold(name) for search in turn.searches if search.visible for name in search.hits}
        seen.append(turn.observation)
    return ""


def _stands(form: str, text: str) -> bool:
    """Whether a text holds a form that no letter or digit continues."""
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        before = start and _continues(text[start - 1]) and _continues(form[0])
        after = end < len(text) and _continues(text[end]) and _continues(form[-1])
        if not before and not after:
            return True
        start = text.find(form, start + 1)
    return False


def _continues(mark: str) -> bool:
    return mark.isalnum() or mark == "_"


def _scalars(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, dict):
        yield from _each(value.values())
    elif isinstance(value, list):
        yield from _each(value)
    elif (isinstance(value, str) and len(value) > _SHORT) or (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 10
    ):
        yield value


def _each(values: Iterable[Any]) -> Iterator[str | int | float]:
    for value in values:
        yield from _scalars(value)


def _forms(value: str | float) -> Iterator[str]:
    """How a value may stand in a text: as it is, and as JSON spells it."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    text = value if isinstance(value, str) else compact(int(value) if whole else value)
    yield text.casefold()
    if isinstance(value, str):
        yield compact(value)[1:-1].casefold()
