"""The tools of API-Bank, level 3: every schema that a call of `ToolSearcher` returned, once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paraagent.catalog import keywords
from paraagent.catalog.operation import TOOL_TEXT, VALUE_TEXT, Operation, Rejected
from paraagent.catalog.schemas import Reader
from paraagent.catalog.sources.inline import Inline
from paraagent.catalog.text import clean
from paraagent.errors import UsageError

PROVIDER = "api-bank"
_LIST = re.compile(r"list[\[(](\w+)[\])]$")


def label(name: str) -> str:
    return Path(name).name


def located(name: str, downloads: Path, refresh: bool) -> Path:
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"The catalog source apibank:{path} does not exist: name the file level-3.json of API-Bank's"
            " api-bank/test-data/"
        )
    return path


def read(path: Path) -> Iterator[list[tuple[str, bytes]]]:
    yield [(path.name, path.read_bytes())]


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    for file, tasks in unit:
        seen: set[str] = set()
        for tool in _tools(tasks):
            name = tool.get("name")
            if not isinstance(name, str) or not name:
                yield Rejected(file, PROVIDER, PROVIDER, "malformed", "a tool without a name")
            elif name not in seen:
                seen.add(name)
                yield _operation(name, tool)


def _tools(tasks: Any) -> Iterator[dict[str, Any]]:
    for task in tasks if isinstance(tasks, list) else ():
        calls = task.get("apis") if isinstance(task, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("api_name") == "ToolSearcher":
                answer = call.get("output")
                found = answer.get("output") if isinstance(answer, dict) else None
                for tool in found if isinstance(found, list) else [found]:
                    if isinstance(tool, dict):
                        yield tool


def _operation(name: str, tool: dict[str, Any]) -> tuple[Reader, Operation]:
    returned = tool.get("output_parameters")
    reader = Inline(
        _object(tool.get("input_parameters"), required=True), _object(returned, required=False) if returned else None
    )
    return reader, Operation(
        source_name=name,
        provider=PROVIDER,
        service=PROVIDER,
        category="uncategorised",
        title="",
        description=clean(tool.get("description"), TOOL_TEXT),
        words=name,
        method="",
        path="",
        deprecated=False,
        licence="Apache-2.0",
        arguments=reader.arguments,
        result=reader.result,
    )


def _object(values: Any, *, required: bool) -> dict[str, Any]:
    """API-Bank says nowhere that a parameter may be left out."""
    known = {name: _value(raw) for name, raw in values.items()} if isinstance(values, dict) else {}
    return {"type": "object", "properties": known, "required": list(known) if required else []}


def _value(raw: Any) -> dict[str, Any]:
    raw = raw if isinstance(raw, dict) else {}
    said = str(raw.get("type") or "").lower()
    found: dict[str, Any] = {"description": clean(raw.get("description"), VALUE_TEXT)}
    if match := _LIST.match(said):
        inner = keywords.TYPES.get(match[1])
        return {**found, "type": "array", "items": {"type": inner} if inner else {}}
    return {**found, "type": keywords.TYPES[said]} if said in keywords.TYPES else found
