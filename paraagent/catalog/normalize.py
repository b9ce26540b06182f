"""From an operation to a row of the catalog: judged, classified, rendered. Pure; one call an operation."""

from __future__ import annotations

from typing import NamedTuple

from paraagent.catalog.effects import effect
from paraagent.catalog.interface import Effect
from paraagent.catalog.operation import Operation, Rejected
from paraagent.catalog.schemas import ARGUMENT, RESULT, Member, Reader, Shape, fields, render
from paraagent.catalog.text import humanise
from paraagent.config import CatalogConfig

MAX_FIELDS = 40
"""Rows of the table `fields` for one tool."""
FIELD_LEVELS = 3
FIELD_TEXT = 120
FULL_TEXT = 60
"""Characters of a description that says enough."""


class FieldColumns(NamedTuple):
    """Rows of `fields` for one result, as columns: results that many operations share are copied, not rewritten."""

    path: list[str]
    name: list[str]
    type: list[str]
    description: list[str]
    format: list[str | None]


NO_FIELDS = FieldColumns([], [], [], [], [])


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
    deprecated: bool
    licence: str
    quality: float
    arguments: list[tuple[Member, Shape]]
    required: set[str]
    fields: FieldColumns


class Normalizer:
    """Turns operations into rows under one config; keeps the field lists of results that many operations share."""

    def __init__(self, config: CatalogConfig) -> None:
        self._config = config
        self._fields: dict[tuple[int, int], tuple[Shape, FieldColumns]] = {}

    def row(self, reader: Reader, operation: Operation) -> ToolRow | Rejected:
        config = self._config
        arguments = render(reader, operation.arguments, ARGUMENT, config.max_depth, config.max_schema_chars)
        text = operation.description
        if not arguments.members and len(text) < config.min_description:
            detail = f"no parameters and {len(text)} characters of description"
            return Rejected(operation.source_name, operation.provider, operation.service, "undescribed", detail)
        returns: bytes | None = None
        found = NO_FIELDS
        if operation.result is not None and operation.result.says_something:
            result = render(reader, operation.result, RESULT, config.max_depth, config.max_schema_chars)
            returns = result.schema
            found = self._result_fields(reader, operation.result, min(result.depth, FIELD_LEVELS))
        title = operation.title or humanise(operation.words) or operation.source_name
        rows = [(m, reader.shape(m.node)) for m in arguments.members]
        described = sum(1 for m, _ in rows if m.text) / len(rows) if rows else 1.0
        # the view `quality` shows these four parts
        quality = (
            0.4 * min(len(text or title) / FULL_TEXT, 1.0)
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
            title=title,
            description=text or title,
            words=operation.words,
            effect=operation.effect or effect(operation.method, operation.words),
            http_method=operation.method,
            path=operation.path,
            parameters=schema,
            returns=returns,
            deprecated=operation.deprecated,
            licence=operation.licence,
            quality=round(quality, 3),
            arguments=rows,
            required=set(arguments.required),
            fields=found,
        )

    def _result_fields(self, reader: Reader, shape: Shape, depth: int) -> FieldColumns:
        known = self._fields.get((id(shape), depth))
        if known is None:
            listed = fields(reader, shape, depth, MAX_FIELDS)
            columns = FieldColumns(
                [f.path for f in listed],
                [f.name for f in listed],
                [f.type for f in listed],
                [f.description if len(f.description) <= FIELD_TEXT else _short(f.description) for f in listed],
                [f.format for f in listed],
            )
            # The shape is kept beside the columns: its identity is the key.
            known = self._fields[(id(shape), depth)] = (shape, columns)
        return known[1]


def _short(text: str) -> str:
    space = text.rfind(" ", FIELD_TEXT // 2, FIELD_TEXT - 1)
    return text[: space if space > 0 else FIELD_TEXT - 1] + "…"
