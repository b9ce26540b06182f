"""Shapes: what all source formats boil down to, and their one rendering as bounded JSON Schema 2020-12.

A converter turns each schema of its document into a `Shape` once, with children left as opaque nodes that are looked
up on demand, so recursion costs nothing until it is rendered. Rendering writes JSON bytes directly and remembers
them per shape and depth: a shape shared by a hundred operations is written once and copied as bytes, never as trees.

What a rendered schema may contain: `type` (always one string), `description`, `format`, `enum`, `default`,
`examples`, `pattern`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`,
`minItems`, `maxItems`, `properties`, `required`, `items`, `additionalProperties` (a schema) and `anyOf`. No `$ref`,
no null: a value that may be null is described by what else it may be. A result's schema has no `pattern` or
`default`, and leaves out what can only be sent; an argument's leaves out what can only be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

import orjson

Node = Any
"""A schema in the source's own form; only the document it comes from can read it."""
Side = Literal[0, 1]
ARGUMENT: Side = 0
RESULT: Side = 1

MAX_LEVELS = 8
"""The deepest rendering there can be; `CatalogConfig.max_depth` stays below it."""
_UNKNOWN = b"?"


class Member(NamedTuple):
    """One property of an object."""

    name: str
    node: Node
    key: bytes
    """`"name":{`, ready to copy."""
    note: bytes
    """`"description":"…"`, or nothing."""
    text: str
    """The description as clean text."""
    side: Side | None
    """Where it may stand alone: `ARGUMENT` for write-only, `RESULT` for read-only, None for both."""


def member(name: str, node: Node, text: str, side: Side | None = None) -> Member:
    return Member(
        name, node, orjson.dumps(name) + b":{", b'"description":' + orjson.dumps(text) if text else b"", text, side
    )


class Shape:
    """One schema, depth not yet decided."""

    __slots__ = (
        "bodies",
        "branches",
        "choices",
        "facts",
        "format",
        "items",
        "members",
        "required",
        "rules",
        "type",
        "values",
    )

    def __init__(
        self,
        type: str,
        *,
        facts: bytes = b"",
        rules: bytes = b"",
        format: str | None = None,
        choices: list[Any] | None = None,
        members: tuple[Member, ...] = (),
        required: tuple[str, ...] = (),
        items: Node = None,
        values: Node = None,
        branches: tuple[Node, ...] = (),
    ) -> None:
        self.type = type
        """A JSON type, or `any`."""
        self.facts = facts.removeprefix(b",")
        """`"type":…` and further keywords, comma-separated, without braces; no type where it is `any`."""
        self.rules = rules
        """Keywords that only arguments carry."""
        self.format = format
        self.choices = choices
        self.members = members
        self.required = required
        self.items = items
        self.values = values
        self.branches = branches
        self.bodies: list[bytes | None] = [_UNKNOWN] * (2 * MAX_LEVELS + 2)
        """Rendered bodies by depth and side; None where it is too long."""

    @property
    def says_something(self) -> bool:
        """False for a bare object or a value of any type: nothing could be read from such a result."""
        if self.type == "any":
            return bool(self.branches)
        return self.type != "object" or bool(self.members) or self.values is not None


class Reader(Protocol):
    """A document that can read its own nodes."""

    def shape(self, node: Node) -> Shape: ...


class Rendered(NamedTuple):
    schema: bytes
    depth: int
    """Levels of objects kept."""
    members: list[Member]
    """Top-level properties kept."""
    required: list[str]


class Field(NamedTuple):
    """One value inside a result."""

    path: str
    name: str
    type: str
    description: str
    format: str | None


def render(reader: Reader, shape: Shape, side: Side, max_depth: int, max_chars: int) -> Rendered:
    """The schema at the greatest depth at which it is at most `max_chars` bytes long.

    If even its first level is too long, optional properties are left out from the end, then descriptions.
    """
    for depth in range(min(max_depth, MAX_LEVELS), 0, -1):
        body = _body(reader, shape, depth, side, max_chars - 2)
        if body is not None:
            members = [m for m in shape.members if m.side is None or m.side == side]
            return Rendered(b"{" + body + b"}", depth, members, _required(shape, members))
    return _first_level(reader, shape, side, max_chars)


def _body(reader: Reader, shape: Shape, depth: int, side: Side, limit: int) -> bytes | None:
    slot = depth + depth + side
    known = shape.bodies[slot]
    if known is not _UNKNOWN:
        return known
    kind = shape.type
    body: bytes | None = shape.facts
    if side == ARGUMENT and shape.rules:
        body = body + b"," + shape.rules if body else shape.rules
    if kind == "object":
        body = _object(reader, shape, depth, side, limit)
    elif kind == "array":
        if shape.items is not None:
            inner_shape = reader.shape(shape.items)
            # A list of lists … is as recursive as an object in itself: every directly nested list costs a level.
            level = depth - 1 if inner_shape.type == "array" else depth
            if level >= 0:
                inner = _body(reader, inner_shape, level, side, limit)
                body = None if inner is None or body is None else body + b',"items":{' + inner + b"}"
    elif shape.branches and depth > 0:
        body = _branches(reader, shape, depth, side, limit)
    if body is not None and len(body) > limit:
        body = None
    shape.bodies[slot] = body
    return body


def _object(reader: Reader, shape: Shape, depth: int, side: Side, limit: int) -> bytes | None:
    body = shape.facts
    if depth == 0:
        return body
    if shape.members:
        inside = []
        size = 0
        for m in shape.members:
            if m.side is not None and m.side != side:
                continue
            inner = _body(reader, reader.shape(m.node), depth - 1, side, limit)
            if inner is None:
                return None
            text = m.key + m.note + (b"," if m.note and inner else b"") + inner + b"}"
            size += len(text)
            if size > limit:
                return None
            inside.append(text)
        if inside:
            body += b',"properties":{' + b",".join(inside) + b"}"
            if shape.required:
                kept = _required(shape, [m for m in shape.members if m.side is None or m.side == side])
                if kept:
                    body += b',"required":' + orjson.dumps(kept)
    if shape.values is not None:
        inner = _body(reader, reader.shape(shape.values), depth - 1, side, limit)
        if inner is None:
            return None
        if inner:
            body += b',"additionalProperties":{' + inner + b"}"
    return body


def _branches(reader: Reader, shape: Shape, depth: int, side: Side, limit: int) -> bytes | None:
    seen: dict[bytes, None] = {}
    for node in shape.branches:
        inner = _body(reader, reader.shape(node), depth - 1, side, limit)
        if inner is None:
            return None
        if not inner:
            return shape.facts
        seen[b"{" + inner + b"}"] = None
    if len(seen) == 1 and not shape.facts:
        return next(iter(seen))[1:-1]
    return shape.facts + (b"," if shape.facts else b"") + b'"anyOf":[' + b",".join(seen) + b"]"


def _required(shape: Shape, members: list[Member]) -> list[str]:
    if not shape.required:
        return []
    names = {m.name for m in members}
    return [name for name in shape.required if name in names]


def _first_level(reader: Reader, shape: Shape, side: Side, max_chars: int) -> Rendered:
    """As many properties as fit, required ones first, each without inner structure; descriptions only where all fit
    without."""
    if not shape.members:
        return Rendered(b"{" + shape.facts + b"}" if len(shape.facts) < max_chars else b"{}", 0, [], [])
    members = [m for m in shape.members if m.side is None or m.side == side]
    required = set(_required(shape, members))
    order = [m for m in members if m.name in required] + [m for m in members if m.name not in required]
    left = max_chars - len(shape.facts) - 40
    bodies: dict[str, bytes] = {}
    for m in order:
        body = _body(reader, reader.shape(m.node), 0, side, max_chars) or b""
        if len(body) > left // 4:
            body = b""
        cost = len(m.key) + len(body) + 2 + (len(m.name) * 2 + 3 if m.name in required else 0)
        if cost > left:
            continue
        left -= cost
        bodies[m.name] = body
    inside = []
    kept = [m for m in members if m.name in bodies]
    for m in kept:
        body = bodies[m.name]
        note = m.note if len(m.note) < left else b""
        left -= len(note) + 1
        inside.append(m.key + note + (b"," if note and body else b"") + body + b"}")
    names = [m.name for m in kept if m.name in required]
    schema = b"{" + shape.facts + b',"properties":{' + b",".join(inside) + b"}"
    schema += b',"required":' + orjson.dumps(names) + b"}" if names else b"}"
    return Rendered(schema, 1, kept, names)


def fields(reader: Reader, shape: Shape, depth: int, limit: int) -> list[Field]:
    """The values inside a result, level by level, at most `limit`; `[]` in a path stands for the elements of a list."""
    return list(_fields(reader, shape, depth, limit))


def _fields(reader: Reader, shape: Shape, depth: int, limit: int) -> Iterator[Field]:
    level = [("", shape)]
    for _ in range(depth):
        deeper: list[tuple[str, Shape]] = []
        for prefix, parent in level:
            hops = 0
            while parent.type == "array" and parent.items is not None and hops < MAX_LEVELS:
                prefix += "[]"
                parent = reader.shape(parent.items)
                hops += 1
            if prefix and not parent.members:
                continue
            start = prefix + "." if prefix else ""
            for m in parent.members:
                if m.side == ARGUMENT:
                    continue
                child = reader.shape(m.node)
                path = start + m.name
                yield Field(path, m.name, child.type, m.text, child.format)
                limit -= 1
                if not limit:
                    return
                if child.members or child.items is not None:
                    deeper.append((path, child))
        level = deeper
