"""References within a turn: a call takes an argument from the result of another call that is sent with it.

    {"name": "orders_get", "arguments": {"id": {"$ref": "orders_list#1.items.0.id"}}}

`name#i` is the i-th call of that tool in the turn, the plain name the only one; the rest is a dotted path into its
result. A turn of such calls runs as a graph: what needs nothing starts at once, the rest when what it needs is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paraagent.paraact.protocol import fold

_FORM = re.compile(r"([^#.\s]+)(?:#([1-9]\d{0,3}))?(?:\.(.+))?", re.DOTALL)
_POSITION = re.compile(r"[0-9]{1,9}")
_MISSING = object()


class Reference(NamedTuple):
    """Where a value comes from."""

    call: int
    """Position in the turn."""
    path: str
    """Into its result; empty for all of it."""


class DanglingReferenceError(ValueError):
    """Why a reference leads nowhere, in words for the model."""


def written(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Dotted path of each argument that is a reference, and what stands there; all of them together are none."""
    return {place: text for name, part in arguments.items() for place, text in _walk(part, name)}


def locate(text: str, names: Sequence[str]) -> Reference:
    """The call and the path that a reference means, among the calls of these names.

    Raises:
        DanglingReferenceError: it names no call of this turn, or leaves open which.
    """
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise DanglingReferenceError(f"the reference {text[:80]} is not name#1.path")
    name, number, path = form[1], form[2], form[3] or ""
    places = [place for place, other in enumerate(names) if fold(other) == fold(name)]
    if not places:
        raise DanglingReferenceError(f"the reference {text[:80]} names a tool that this turn does not call")
    if number is None and len(places) > 1:
        raise DanglingReferenceError(
            f"the turn calls {name[:64]} {len(places)} times: say which, as in {name[:64]}#1.{path[:20]}"
        )
    index = int(number or 1) - 1
    if index >= len(places):
        raise DanglingReferenceError(f"the turn calls {name[:64]} only {len(places)} times, not {number}")
    return Reference(places[index], path)


def needs(calls: Sequence[tuple[str, Mapping[str, str]]]) -> list[set[int]]:
    """The calls that each (name, references) of a turn needs first; what cannot be located is left out."""
    names = [name for name, _ in calls]
    found: list[set[int]] = []
    for _, references in calls:
        places = set()
        for text in references.values():
            try:
                places.add(locate(text, names).call)
            except DanglingReferenceError:
                continue
        found.append(places)
    return found


def levels(before: Sequence[set[int]]) -> list[int | None]:
    """How many calls in a row must end before each; None where it waits for itself."""
    level: list[int | None] = [None] * len(before)
    for _ in before:
        for place, needed in enumerate(before):
            known = [level[other] for other in needed]
            if level[place] is None and None not in known:
                level[place] = 1 + max((each for each in known if each is not None), default=-1)
    return level


def ancestors(before: Sequence[set[int]]) -> list[set[int]]:
    """All calls that must end before each."""
    found: list[set[int]] = []
    for needed in before:
        reached, left = set[int](), list(needed)
        while left:
            place = left.pop()
            if place not in reached:
                reached.add(place)
                left += before[place]
        found.append(reached)
    return found


def look_up(result: Any, path: str) -> Any:
    """The value at a dotted path; list positions as numbers.

    Raises:
        DanglingReferenceError: there is none.
    """
    value = result
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part, _MISSING)
        elif isinstance(value, list) and _POSITION.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            value = _MISSING
        if value is _MISSING:
            raise DanglingReferenceError(f"there is no {path[:80]} in its result")
    return value


def filled(arguments: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with values, by dotted path, in the place of references."""
    return {name: _filled(part, values, name) for name, part in arguments.items()}


def _filled(value: Any, values: Mapping[str, Any], place: str) -> Any:
    if _is_reference(value):
        return values.get(place, value)
    if isinstance(value, dict):
        return {name: _filled(part, values, f"{place}.{name}") for name, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, values, f"{place}.{number}") for number, part in enumerate(value)]
    return value


def _walk(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if _is_reference(value):
        yield place, value["$ref"]
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _walk(part, f"{place}.{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _walk(part, f"{place}.{number}")


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"$ref"} and isinstance(value["$ref"], str)
