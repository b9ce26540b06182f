"""The APIs of ToolBench, out of the query files of StableToolBench: every API that any query lists, once.

A benchmark finds an API again by `service` and `source_name`, which are `tool_name` and `api_name` to the letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from paraagent.catalog import keywords
from paraagent.catalog.operation import TITLE_TEXT, TOOL_TEXT, VALUE_TEXT, Operation, Rejected
from paraagent.catalog.schemas import Reader
from paraagent.catalog.sources.inline import Inline
from paraagent.catalog.text import clean
from paraagent.errors import UsageError

PROVIDER = "rapidapi.com"
_LISTED = "list of "


def label(name: str) -> str:
    return Path(name).name


def located(name: str, downloads: Path, refresh: bool) -> Path:
    path = Path(name)
    if not any(path.glob("*.json")):
        raise UsageError(
            f"The catalog source toolbench:{path} holds no .json file: name the folder of StableToolBench's queries,"
            " solvable_queries/test_instruction/"
        )
    return path


def read(path: Path) -> Iterator[list[tuple[str, bytes]]]:
    """All files together: they share their APIs."""
    yield [(file.name, file.read_bytes()) for file in sorted(path.glob("*.json"))]


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    seen: set[tuple[str, str, str]] = set()
    for name, rows in unit:
        if not isinstance(rows, list):
            yield Rejected(name, PROVIDER, "", "unreadable", "not a list of queries")
            continue
        for row in rows:
            apis = row.get("api_list") if isinstance(row, dict) else None
            for api in apis if isinstance(apis, list) else ():
                key = tuple(str(api.get(part) or "") for part in ("category_name", "tool_name", "api_name"))
                category, tool, own = key
                if not (tool and own):
                    yield Rejected(
                        own or name, PROVIDER, tool, "malformed", "an API without its tool's or its own name"
                    )
                elif (category, tool, own) not in seen:
                    seen.add((category, tool, own))
                    yield _operation(category, tool, own, api)


def _operation(category: str, tool: str, name: str, api: dict[str, Any]) -> tuple[Reader, Operation]:
    reader = Inline(_takes(api), _returns(api.get("template_response")))
    return reader, Operation(
        source_name=name,
        provider=PROVIDER,
        service=tool,
        category=category or "uncategorised",
        title=clean(name, TITLE_TEXT),
        description=clean(api.get("api_description"), TOOL_TEXT),
        words=name,
        method=str(api.get("method") or "GET").upper(),
        path="",
        deprecated=False,
        licence="unstated",
        arguments=reader.arguments,
        result=reader.result,
    )


def _takes(api: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for place in ("required_parameters", "optional_parameters"):
        listed = api.get(place)
        for raw in listed if isinstance(listed, list) else ():
            name = raw.get("name") if isinstance(raw, dict) else None
            if isinstance(name, str) and name and name not in properties:
                properties[name] = _value(raw)
                if place == "required_parameters":
                    required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _value(raw: dict[str, Any]) -> dict[str, Any]:
    """`STRING`, `NUMBER`, `BOOLEAN`, `ENUM`, `ARRAY`, `OBJECT`, `DATE (YYYY-MM-DD)`, `TIME (24-hour HH:MM)`, …"""
    said = str(raw.get("type") or "")
    word = said.partition(" ")[0].lower()
    type = keywords.TYPES.get(word, "string")
    found: dict[str, Any] = {"type": type, "description": clean(raw.get("description"), VALUE_TEXT)}
    if word == "date":
        found["format"] = "date"
    if raw.get("default") not in (None, ""):
        found["default"] = raw["default"]
    return found


def _returns(example: Any) -> dict[str, Any] | None:
    """A schema of `{"id": "int", "genre": ["list of str with length 3"]}`; None where no object is given."""
    if isinstance(example, str):
        try:
            example = orjson.loads(example)
        except orjson.JSONDecodeError:
            return None
    return _schema(example, 0) if isinstance(example, dict | list) and example else None


def _schema(value: Any, depth: int) -> dict[str, Any]:
    if isinstance(value, dict) and depth < 16:
        return {
            "type": "object",
            "properties": {k: _schema(v, depth + 1) for k, v in value.items() if k[:1] != "_" or k == "_id"},
        }
    if isinstance(value, list):
        first = value[0] if value else None
        if isinstance(first, str) and first.startswith(_LISTED):
            first = first.removeprefix(_LISTED).partition(" ")[0]
        return {"type": "array", "items": _schema(first, depth + 1)} if value and depth < 16 else {"type": "array"}
    if isinstance(value, str):
        return {"type": keywords.TYPES.get(value, "string")}
    names = {bool: "boolean", int: "integer", float: "number"}
    return {"type": names[value.__class__]} if value.__class__ in names else {}
