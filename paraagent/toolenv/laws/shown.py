"""The things of one kind in the results of one tool, and whether two results say the same of a thing.

Which fields identify a thing is read from the interface by the catalog's typing, never from the world.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from paraagent.catalog.entities import Entity
from paraagent.catalog.interface import Schema
from paraagent.toolenv.compiled import CompiledTool
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.meaning import Meaning
from paraagent.toolenv.shapes import kind_of, merged

_DEEPEST = 4
_NOTES = frozenset({"description", "title", "default", "example", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that allow and forbid nothing."""


class Shown(NamedTuple):
    """A thing as a result shows it."""

    value: Any
    """What identifies it."""
    thing: Mapping[str, Any]
    schema: Schema


def own_paths(compiled: CompiledTool, entity: Entity | None) -> tuple[tuple[str, ...], ...]:
    """Where results show what identifies a thing of the tool's own kind; `[]` steps into an array."""
    return tuple(_own_paths(compiled.meaning, compiled.returns, entity, (), "")) if entity else ()


def shown(result: Any, schema: Schema, paths: tuple[tuple[str, ...], ...]) -> list[Shown]:
    """The things at these paths of a result."""
    return [
        Shown(holder[path[-1]], holder, inner)
        for path in paths
        for holder, inner in _at(result, schema, path[:-1])
        if isinstance(holder, dict) and path[-1] in holder
    ]


def apart(first: Any, second: Any, one: Any, other: Any, echoed: frozenset[str], path: str = "") -> Iterator[str]:
    """Where two readings of a thing differ although both schemas ask for the same; fields called `echoed` aside."""
    one, other = (merged(schema) if isinstance(schema, dict) else {} for schema in (one, other))
    if isinstance(first, dict) and isinstance(second, dict):
        for name in first.keys() & second.keys():
            if path or folded(name) not in echoed:
                left, right = (
                    schema.get("properties", {}).get(name, schema.get("additionalProperties"))
                    for schema in (one, other)
                )
                yield from apart(first[name], second[name], left, right, echoed, f"{path}.{name}")
    elif _bare(one) == _bare(other):
        if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
            for left, right in zip(first, second, strict=True):
                yield from apart(left, right, one.get("items", {}), other.get("items", {}), echoed, f"{path}[]")
        elif first != second:
            yield f"{path}: {first!r} and {second!r}"


def _own_paths(
    meaning: Meaning, schema: Any, entity: Entity, path: tuple[str, ...], holder: str
) -> Iterator[tuple[str, ...]]:
    schema = merged(schema) if isinstance(schema, dict) else {}
    if kind_of(schema) == "array" and len(path) < 2 * _DEEPEST:
        yield from _own_paths(meaning, schema.get("items"), entity, (*path, "[]"), holder)
    elif kind_of(schema) == "object" and len(path) < 2 * _DEEPEST:
        for name, field in schema.get("properties", {}).items():
            if not isinstance(field, dict):
                continue
            typed = None if field.keys() & {"enum", "const"} else meaning.field(_dotted((*path, name)), field)
            if typed and typed.is_own and typed.entity == entity and meaning.is_about(holder):
                yield (*path, name)
            yield from _own_paths(meaning, field, entity, (*path, name), name)


def _dotted(path: tuple[str, ...]) -> str:
    """As in the catalog's table `fields`."""
    return ".".join(path).replace(".[]", "[]")


def _at(value: Any, schema: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, Schema]]:
    schema = merged(schema) if isinstance(schema, dict) else {}
    if not path:
        yield value, schema
    elif path[0] == "[]" and isinstance(value, list):
        for each in value:
            yield from _at(each, schema.get("items"), path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], schema.get("properties", {}).get(path[0]), path[1:])


def _bare(schema: Any) -> Any:
    """The schema without what says nothing of values."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _bare(part) for key, part in schema.items() if key not in _NOTES or not isinstance(part, str | bool)}
    if isinstance(found.get("required"), list):
        found["required"] = sorted(found["required"])
    return found
