"""The tools of a live MCP server, from a snapshot of its list: schemas of input and output, titles, annotations.

The list is taken when the source is first read and kept in the downloads; `catalog add` takes it again.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from paraagent.catalog.effects import effect
from paraagent.catalog.interface import Effect
from paraagent.catalog.operation import TITLE_TEXT, TOOL_TEXT, Operation, Rejected
from paraagent.catalog.schemas import Reader
from paraagent.catalog.sources.inline import Inline
from paraagent.catalog.sources.openapi_files import is_url
from paraagent.catalog.text import clean

_NAME = re.compile(r"[^\x00-\x20\x7f]{1,128}$")


def label(name: str) -> str:
    """Host and path of an address, else the command's program and its first word: arguments may hold secrets."""
    if is_url(name):
        parts = urlsplit(name)
        return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    try:
        words = shlex.split(name)
    except ValueError:
        words = name.split()
    first = next(
        (
            Path(word).name if "/" in word and word[0] in "/.~" else word
            for word in words[1:]
            if word[0:1] not in ("-", "")
        ),
        "",
    )
    return " ".join(filter(None, (Path(words[0]).name if words else "", first)))


def located(name: str, downloads: Path, refresh: bool) -> Path:
    """The snapshot of the server's list, taken where there is none."""
    path = downloads / f"mcp-{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    if refresh or not path.is_file():
        from paraagent.catalog.mcp_client import list_tools
        from paraagent.files import canonical_json, write_atomic

        write_atomic(path, canonical_json(list_tools(name)))
    return path


def read(path: Path) -> Iterator[list[tuple[str, bytes]]]:
    yield [("tools/list", path.read_bytes())]


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    """Every tool once; provider and service are the server's name."""
    for _, listed in unit:
        server = str(listed["server"].get("name") or "mcp")[:80]
        seen: set[str] = set()
        for tool in listed["tools"]:
            name = str(tool.get("name"))
            if not _NAME.match(name):
                yield Rejected(name[:128], server, server, "malformed", "a name that nobody can call")
            elif name in seen:
                yield Rejected(name, server, server, "duplicate", "the server lists a tool of this name before it")
            else:
                seen.add(name)
                yield _operation(server, name, tool)


def _operation(server: str, name: str, tool: dict[str, Any]) -> tuple[Reader, Operation]:
    reader = Inline(tool.get("inputSchema"), tool.get("outputSchema"))
    notes = tool.get("annotations") or {}
    return reader, Operation(
        source_name=name,
        provider=server,
        service=server,
        category="mcp",
        title=clean(tool.get("title") or notes.get("title"), TITLE_TEXT),
        description=clean(tool.get("description"), TOOL_TEXT),
        words=name,
        method="",
        path="",
        deprecated=False,
        licence="unstated",
        arguments=reader.arguments,
        result=reader.result,
        effect=_effect(name, notes),
    )


def _effect(name: str, notes: dict[str, Any]) -> Effect:
    """What the annotations say, in the words of the name where they leave it open."""
    said = effect("", name)
    if notes.get("readOnlyHint") is True:
        return "read"
    if notes.get("destructiveHint") is True:
        return said if said in ("update", "delete") else "update"
    if notes.get("readOnlyHint") is False and said == "read":
        return "other"
    return said
