"""What the values of one tool identify, by the typing of the catalog's graph (`paraagent.catalog.entities`).

The graph says which field of one tool can feed which parameter of another; the world takes the same typing, so that an
id that one tool shows is the id of the thing that another one reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from paraagent.catalog.effects import is_verb
from paraagent.catalog.entities import WORLD, Entity, Typed, may_type, type_of_field, type_of_parameter
from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.catalog.normalize import FIELD_TEXT
from paraagent.catalog.nouns import container, join
from paraagent.catalog.subject import Subject
from paraagent.catalog.text import clean
from paraagent.toolenv.echo import KEYS
from paraagent.toolenv.identifiers import folded, words
from paraagent.toolenv.words import FUNCTION_WORDS

Kind = tuple[str, str]
"""(scope, noun): the kind of thing that entities of several attributes identify."""

WEAK = frozenset({"name", "code", "number", "key", "slug"})
"""Attributes that tell things apart only within what they lie in: issue 7 of one repository is not that of another."""
_RANK = ("id", "resource", "arn", "uuid", "sid", "gid", "number", "key", "slug", "code", "name")
STANDING = frozenset({"me", "self", "@me", "-", "_", "*", "all", "primary", "default", "current", "latest", "root"})
"""Words that services take in place of an id."""

_BODIES = frozenset({"body", "data", "requestbody", "resource", "payload"})


class Taken(NamedTuple):
    """A parameter that takes what identifies something."""

    name: str
    entity: Entity
    own: bool
    placed: bool
    """It stands in the path."""
    role: bool
    """It says what part the other thing plays, as a source or a parent: there may be several of one kind."""


class Meaning:
    """The typing of one tool, worked out once."""

    def __init__(self, tool: ToolInterface) -> None:
        subject = Subject.of(tool)
        if not subject.noun and not subject.chain:
            subject = replace(subject, noun=_noun(tool.source_name))
        self._subject = subject
        self.taken = tuple(_taken(tool, subject))
        """Parameters whose values must be known."""
        self.own = min((each for each in self.taken if each.own), key=lambda each: _standing(each, tool), default=None)
        """The parameter that says which thing the call is about."""
        self.naming = _naming(tool, subject)
        """Parameters of a creating tool that say what the new thing is to be called."""
        scope = f"{tool.provider}/{tool.service}"
        noun = subject.chain or subject.kind or tool.tool_id
        self.noun = subject.noun
        """What the tool is about, in one word; empty where nothing tells."""
        self.kind: Kind = self.own.entity[:2] if self.own else (scope, noun)
        typed = {each.name for each in self.taken}
        self.untyped = tuple(name for name in subject.segments if name in tool.properties and name not in typed)
        """Parameters of the path that identify nothing that the graph knows."""
        others = {each.name for each in self.taken if not each.own} | set(self.untyped) - {subject.last}
        self.foreign = frozenset(name for name in others if folded(name) in KEYS)
        """Parameters whose names say nothing of what they are of: the `id` in `/teams/{id}/members` is no member's."""

    def field(self, path: str, schema: Mapping[str, Any]) -> Typed | None:
        """What a field of the result identifies; its path as in the catalog's table `fields`."""
        name = path.rpartition(".")[2]
        if not may_type(name):
            return None
        kind, text, format = _facts(schema)
        return _of_things(type_of_field(self._subject, path, kind, clean(text, FIELD_TEXT), format, locally=True))

    def is_named(self, holder: str) -> bool:
        """Whether a field of this name is called like what the tool is about."""
        return self._subject.names(holder)

    def is_about(self, holder: str) -> bool:
        """Whether a field of this name holds what the tool is about, or says nothing of what it holds."""
        return not container(holder) or self._subject.names(holder)


def rank(entity: Entity) -> int:
    """Lower identifies better."""
    return _RANK.index(entity.attribute) if entity.attribute in _RANK else len(_RANK)


def scalar_type(schema: Mapping[str, Any]) -> str:
    """The first type that is not null; `any` where the schema leaves it open."""
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        kind = next((entry for entry in kind if entry != "null"), "any")
    return str(kind)


def _facts(schema: Mapping[str, Any]) -> tuple[str, str, str | None]:
    text, format = schema.get("description"), schema.get("format")
    return (
        scalar_type(schema),
        text if isinstance(text, str) else "",
        format if isinstance(format, str) else None,
    )


def _type(subject: Subject, name: str, schema: Schema, required: bool) -> Typed | None:
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return None
    kind, text, format = _facts(schema)
    found = type_of_parameter(subject, name, kind, text, format, required, locally=True)
    return _of_things(found, placed=name in subject.segments)


def _of_things(found: Typed | None, *, placed: bool = False) -> Typed | None:
    """What identifies a thing of this service; one that plays a part, such as a parent, is another than the own."""
    if found is None or found.entity.scope == WORLD:
        return None
    return found._replace(is_own=found.is_own and (placed or found.rule != "role"))


def _taken(tool: ToolInterface, subject: Subject) -> Iterator[Taken]:
    required = set(tool.required)
    for name, schema in tool.properties.items():
        found = _type(subject, name, schema, name in required)
        if found is not None:
            placed = name in subject.segments or found.rule == "resource"
            yield Taken(name, found.entity, found.is_own, placed, found.rule == "role" and not placed)


def _naming(tool: ToolInterface, subject: Subject) -> dict[str, Entity]:
    if subject.effect != "create":
        return {}
    as_read = replace(subject, effect="read", http_method="GET")
    found = {name: _type(as_read, name, schema, True) for name, schema in tool.properties.items()}
    asked = {name for name, schema in tool.properties.items() if _type(subject, name, schema, name in tool.required)}
    return {name: typed.entity for name, typed in found.items() if typed and typed.is_own and name not in asked}


def _standing(taken: Taken, tool: ToolInterface) -> tuple[bool, bool, int]:
    return not taken.placed, taken.name not in tool.required, rank(taken.entity)


def _noun(source_name: str) -> str:
    """What a tool without a telling path is about, by its name."""
    parts = [*words(source_name.rpartition("/")[2])]
    while len(parts) > 1 and (is_verb(parts[-1]) or parts[-1] in FUNCTION_WORDS):
        parts.pop()
    while len(parts) > 1 and (is_verb(parts[0]) or parts[0] in FUNCTION_WORDS):
        parts.pop(0)
    return join(parts)


def fold_given(arguments: Mapping[str, Any], meaning: Meaning) -> dict[str, Any]:
    """What the arguments say of the thing, by folded name, and what a body or an argument called like it holds."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in meaning.foreign:
            continue
        key = folded(name)
        if isinstance(value, dict) and (key in _BODIES or key == meaning.noun):
            for inner, part in sorted(value.items()):
                found.setdefault(folded(inner), part)
        found[key] = value
    return found
