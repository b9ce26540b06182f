"""Arrays of results: the things that a tool lists, the one that it wrote, and plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraagent.files import canonical_json
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.leaves import MASK, mix
from paraagent.toolenv.lists import ListPlan, matches
from paraagent.toolenv.node import SHIFT, Node
from paraagent.toolenv.scene import Scene
from paraagent.toolenv.session import Record
from paraagent.toolenv.things import Thing

MANY = 1 << 20
"""Elements of an array whose schema names no most."""
_MEMBERS = (2, 5)
"""Fewest and most things in a list."""
_STEP = 0x9E3779B97F4A7C15


def members(item: Node, lists: ListPlan, least: int, most: int) -> Node:
    """The things that a tool lists: what is there, what was made, in the window that the call asks for.

    Args:
        item: of one element.
        least, most: elements that the schema allows.
    """
    thing = item.make if isinstance(item.make, Thing) else None
    low, high = (min(max(bound, least), most) for bound in _MEMBERS)
    span = high - low + 1

    def listed(key: int, now: int, scene: Scene) -> list[Any]:
        count = low + mix(key) % span
        places = [mix((key + position * _STEP) & MASK) for position in range(1, count + 1)]
        if thing is None:
            return _window(lists, scene, least, most, [item(each, now, scene) for each in places])
        records: dict[int, Record] = {}
        if scene.only is not None:
            records = {id(record): record for record in scene.only if not record.deleted}
        else:
            for record in scene.members:
                records[id(record)] = record
            for each in places:
                record = thing.record(each, now, scene, scene.place)
                if not record.deleted:
                    _settle(record, scene)
                    records.setdefault(id(record), record)
        rows: list[Any] = list(records.values())
        if scene.wanted:
            shown = [thing.show(record, now, scene, place=scene.place) for record in rows]
            rows = [record for record, each in zip(rows, shown, strict=True) if _chosen(each, scene)]
        chosen = _window(lists, scene, least, most, rows)
        found = [thing.show(record, now, scene, place=scene.place) for record in chosen]
        for each in range(least - len(found)):  # the schema wants more than there is
            found.append(thing.show(Record(mix(key + each)), now, scene))
        return found

    return Node(listed)


def written(thing: Thing, several: Node) -> Node:
    """The one thing that a call wrote; `several` where it wrote none."""

    def alone(key: int, now: int, scene: Scene) -> Any:
        if scene.target is None:
            return several(key, now, scene)
        return [thing.show(scene.target, now, scene, scene.given, scene.place)]

    return Node(alone)


def array(first: Sequence[Node], item: Node, salt: int, low: int, high: int, *, unique: bool) -> Node:
    """An array of `low` to `high` elements: those at the front have nodes of their own, all others `item`."""
    make, inner = item
    span = high - low + 1

    def several(key: int, now: int, scene: Scene) -> list[Any]:
        size = low + (key * salt >> SHIFT) % span
        found: list[Any] = [node(key, now, scene) for node in first[: size or len(first)]]
        seen = {canonical_json(value) for value in found} if unique else set()
        position = 0
        while len(found) < size and position < 8 * size:
            position += 1
            own = mix((key + position * _STEP) & MASK)
            value = make(own * inner >> SHIFT & MASK, now) if inner else make(own, now, scene)
            if unique:
                text = canonical_json(value)
                if text in seen:
                    continue
                seen.add(text)
            found.append(value)
        return found

    return Node(several)


def _window(lists: ListPlan, scene: Scene, least: int, most: int, rows: list[Any]) -> list[Any]:
    window = lists.window(scene.page, len(rows), least, scene.token)
    scene.window = window
    return rows[window.offset : window.offset + min(window.size, most)]


def _settle(record: Record, scene: Scene) -> None:
    """Note where an element of a list lies, so that it says the same when it is read alone."""
    if scene.links:
        record.link(scene.links)
    if scene.context:
        record.fields = {**scene.context, **record.fields}


def _chosen(shown: dict[str, Any], scene: Scene) -> bool:
    return matches({folded(name): value for name, value in shown.items()}, scene.wanted)
