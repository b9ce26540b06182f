"""From an operation to a row of the catalog: judged, classified, rendered. Pure; one call an operation."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from paraagent.catalog.interface import Effect
from paraagent.catalog.operation import Operation, Rejected
from paraagent.catalog.schemas import ARGUMENT, RESULT, Field, Reader, fields, render
from paraagent.catalog.text import humanise, words
from paraagent.config import CatalogConfig

MAX_FIELDS = 40
"""Rows of the table `fields` for one tool."""
FIELD_LEVELS = 3
FIELD_TEXT = 120
MAX_CHOICES = 400
"""Characters of the column `choices`; a longer list is left to the schema."""

_VERBS: dict[str, Effect] = {
    **dict.fromkeys(
        "get list describe search query find fetch read lookup retrieve show view check count download export preview verify validate "
        "estimate calculate compute simulate test detect analyze analyse compare suggest recommend predict head exists is has select scan "
        "resolve translate lint render autocomplete discover aggregate report inspect batchget browse match classify".split(),
        "read",
    ),
    **dict.fromkeys(
        "create add insert new register post upload import generate publish issue book submit clone copy provision allocate open "
        "duplicate enroll invite launch request schedule send subscribe build".split(),
        "create",
    ),
    **dict.fromkeys(
        "update modify set put patch edit change replace rename move enable disable activate deactivate assign unassign attach detach "
        "associate disassociate configure tag untag reset restore approve reject merge upsert save promote rotate renew extend "
        "increment decrement resize lock unlock mark pause resume suspend accept decline confirm complete close reopen append".split(),
        "update",
    ),
    **dict.fromkeys(
        "delete remove destroy terminate cancel revoke deregister purge drop erase clear unsubscribe release trash unregister "
        "uninstall batchdelete".split(),
        "delete",
    ),
}


class ParameterRow(NamedTuple):
    name: str
    type: str
    required: bool
    description: str
    format: str | None
    choices: str | None


class ToolRow(NamedTuple):
    """A row of `tools` without its identity and name, which depend on the other rows."""

    source_name: str
    provider: str
    service: str
    category: str
    title: str
    description: str
    words: str
    effect: Effect
    http_method: str
    path: str
    parameters: bytes
    returns: bytes | None
    n_required: int
    deprecated: bool
    licence: str
    quality: float
    arguments: list[ParameterRow]
    fields: list[Field]


class Normalizer:
    """Turns operations into rows under one config; keeps the field lists of results that many operations share."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._fields: dict[tuple[int, int], tuple[object, list[Field]]] = {}

    def row(self, reader: Reader, operation: Operation) -> ToolRow | Rejected:
        config = self._config
        arguments = render(reader, operation.arguments, ARGUMENT, config.max_depth, config.max_schema_chars)
        text = operation.description
        if not arguments.members and len(text) < config.min_description:
            detail = f"no parameters and {len(text)} characters of description"
            return Rejected(operation.source_name, operation.provider, operation.service, "undescribed", detail)
        returns: bytes | None = None
        found: list[Field] = []
        if operation.result is not None and operation.result.says_something:
            result = render(reader, operation.result, RESULT, config.max_depth, config.max_schema_chars)
            returns = result.schema
            found = self._result_fields(reader, operation, min(result.depth, FIELD_LEVELS))
        required = set(arguments.required)
        rows = []
        for m in arguments.members:
            shape = reader.shape(m.node)
            choices = orjson.dumps(shape.choices).decode() if shape.choices else None
            if choices and len(choices) > MAX_CHOICES:
                choices = None
            rows.append(ParameterRow(m.name, shape.type, m.name in required, m.text, shape.format, choices))
        described = sum(1 for row in rows if row.description) / len(rows) if rows else 1.0
        quality = (
            0.4 * min(len(text) / 60, 1.0)
            + 0.3 * described
            + 0.2 * (returns is not None)
            + 0.1 * (not operation.deprecated)
        )
        schema = arguments.schema
        if not arguments.members:
            schema = b'{"type":"object","properties":{}}'
        return ToolRow(
            source_name=operation.source_name,
            provider=operation.provider,
            service=operation.service,
            category=operation.category,
            title=operation.title or humanise(operation.words) or operation.source_name,
            description=text or operation.title or humanise(operation.words) or operation.source_name,
            words=operation.words,
            effect=effect(operation.method, operation.words),
            http_method=operation.method,
            path=operation.path,
            parameters=schema,
            returns=returns,
            n_required=len(required),
            deprecated=operation.deprecated,
            licence=operation.licence,
            quality=round(quality, 3),
            arguments=rows,
            fields=found,
        )

    def _result_fields(self, reader: Reader, operation: Operation, depth: int) -> list[Field]:
        shape = operation.result
        assert shape is not None
        known = self._fields.get((id(shape), depth))
        if known is None:
            listed = [
                f if len(f.description) <= FIELD_TEXT else f._replace(description=_short(f.description))
                for f in fields(reader, shape, depth, MAX_FIELDS)
            ]
            # The shape is kept beside the list: its identity is the key.
            known = self._fields[(id(shape), depth)] = (shape, listed)
        return known[1]


def _short(text: str) -> str:
    space = text.rfind(" ", FIELD_TEXT // 2, FIELD_TEXT - 1)
    return text[: space if space > 0 else FIELD_TEXT - 1] + "…"


def effect(method: str, name: str) -> Effect:
    """What a call does: by its HTTP method where that decides, else by the first verb in its name."""
    if method == "DELETE":
        return "delete"
    if method in ("GET", "HEAD", "OPTIONS", "TRACE"):
        return "read"
    found = words(name)
    for word in [*found[:1], *found[-2:]]:
        if word in _VERBS:
            return _VERBS[word]
    if method in ("PUT", "PATCH"):
        return "update"
    return next((_VERBS[word] for word in found if word in _VERBS), "other")
