"""Rows of one chunk as Arrow files: what workers write and the loader reads."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from paraagent.catalog.names import candidate
from paraagent.catalog.normalize import ToolRow
from paraagent.catalog.operation import Rejected

MAX_CHOICES = 400
"""Characters of the column `choices`; a longer list is left to the schema."""

TOOLS = pa.schema(
    [
        ("source_name", pa.string()),
        ("provider", pa.string()),
        ("service", pa.string()),
        ("category", pa.string()),
        ("title", pa.string()),
        ("description", pa.string()),
        ("candidate", pa.string()),
        ("effect", pa.string()),
        ("http_method", pa.string()),
        ("path", pa.string()),
        ("parameters", pa.string()),
        ("returns", pa.string()),
        ("n_parameters", pa.int32()),
        ("n_required", pa.int32()),
        ("deprecated", pa.bool_()),
        ("licence", pa.string()),
        ("quality", pa.float64()),
        ("digest", pa.binary(8)),
    ]
)
PARAMETERS = pa.schema(
    [
        ("tool", pa.int32()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("required", pa.bool_()),
        ("description", pa.string()),
        ("format", pa.string()),
        ("choices", pa.string()),
    ]
)
FIELDS = pa.schema(
    [
        ("tool", pa.int32()),
        ("path", pa.string()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("description", pa.string()),
        ("format", pa.string()),
    ]
)
QUARANTINE = pa.schema([(name, pa.string()) for name in ("source_name", "provider", "service", "reason", "detail")])
SCHEMAS = {"tools": TOOLS, "parameters": PARAMETERS, "fields": FIELDS, "quarantine": QUARANTINE}
"""What a chunk's files hold; `tool` is a row number of the same chunk's tools."""


def shard(folder: Path, table: str, index: int) -> Path:
    """Where a chunk's rows of one table are."""
    return folder / f"{table}-{index:05d}.arrow"


class ChunkRows:
    """Columns that grow row by row, in the order of `SCHEMAS`."""

    def __init__(self) -> None:
        self._columns: dict[str, list[list[Any]]] = {name: [[] for _ in schema] for name, schema in SCHEMAS.items()}
        self._count = 0

    def add(self, row: ToolRow) -> None:
        values = (
            row.source_name,
            row.provider,
            row.service,
            row.category,
            row.title,
            row.description,
            candidate(row.provider, row.service, row.words),
            row.effect,
            row.http_method,
            row.path,
            row.parameters,
            row.returns,
            len(row.arguments),
            len(row.required),
            row.deprecated,
            row.licence,
            row.quality,
            digest_of(row.parameters),
        )
        for column, value in zip(self._columns["tools"], values, strict=True):
            column.append(value)
        owner, names, types, required, descriptions, formats, choices = self._columns["parameters"]
        for m, shape in row.arguments:
            owner.append(self._count)
            names.append(m.name)
            types.append(shape.type)
            required.append(m.name in row.required)
            descriptions.append(m.text)
            formats.append(shape.format)
            choices.append(_choices(shape.choices) if shape.choices else None)
        if row.fields.path:
            rows: list[list[Any]] = [[self._count] * len(row.fields.path), *row.fields]
            for column, more in zip(self._columns["fields"], rows, strict=True):
                column.extend(more)
        self._count += 1

    def reject(self, row: Rejected) -> None:
        for column, value in zip(self._columns["quarantine"], row, strict=True):
            column.append(value)

    def write(self, folder: Path, index: int) -> None:
        for table, schema in SCHEMAS.items():
            arrays = [
                pa.array(column, type=field.type) for column, field in zip(self._columns[table], schema, strict=True)
            ]
            with pa.OSFile(str(shard(folder, table, index)), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                writer.write_batch(pa.record_batch(arrays, schema=schema))


def digest_of(parameters: bytes) -> bytes:
    """What tells the schemas of two tools apart."""
    return blake2b(parameters, digest_size=8).digest()


def _choices(values: list[Any]) -> str | None:
    text = orjson.dumps(values).decode()
    return text if len(text) <= MAX_CHOICES else None
