"""Which of the converted rows make the catalog, under which identity and name, in which order. Depends on content
alone.

Precedence: the order of the sources in the config, then provider, service (a newer version before an older one) and
name. In that order the first of several duplicates stays and the first tool that wants a name gets it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from paraagent.catalog.names import assign

_VERSION = re.compile(r"[-_.]?v?(\d+(?:[-_.]\d+)*)$")
Key = tuple[str | bytes, ...]
_COLUMNS = ["source_name", "provider", "service", "candidate", "http_method", "path", "digest"]


class Selection(NamedTuple):
    rows: list[int]
    """Row numbers among all converted tools, sorted by final name."""
    tool_ids: list[str]
    names: list[str]
    duplicates: list[tuple[int, str]]
    """Row number of each rejected copy and the tool_id of what it repeats."""


class Prior(NamedTuple):
    """What a finished catalog holds already, and what is added to it must give way to."""

    names: frozenset[str]
    """In lower case."""
    ids: frozenset[str]
    seen: Mapping[Key, str]
    """Identity under which a copy is recognised -> tool_id; at least of the providers that are added to."""


def key(kind: str, provider: str, service: str, source_name: str, method: str, path: str, digest: bytes) -> Key:
    """What two copies of one tool share. `digest` is of the parameters."""
    if kind == "openapi" and (match := _VERSION.search(service)):
        # Documents for several versions of one service repeat each other with small changes: the newest counts.
        return provider, service[: match.start()], method, path, source_name
    return provider, service, method, path, source_name, digest


def select(tools: pa.Table, sources: list[int], kinds: list[str], prior: Prior) -> Selection:
    """`sources` and `kinds` say for each row the position of its source and which converter made it."""
    columns = [tools.column(name).to_pylist() for name in _COLUMNS]
    records = list(zip(*columns, strict=True))
    order = sorted(range(len(records)), key=lambda i: (sources[i], *_precedence(records[i])))
    kept: list[int] = []
    ids: list[str] = []
    duplicates: list[tuple[int, str]] = []
    seen = dict(prior.seen)
    taken = set(prior.ids)
    for i in order:
        source_name, provider, service, _, method, path, digest = records[i]
        identity = key(kinds[i], provider, service, source_name, method, path, digest)
        if (original := seen.get(identity)) is not None:
            duplicates.append((i, original))
            continue
        tool_id = f"{provider}/{service}/{source_name}"
        if tool_id in taken:
            tool_id = f"{tool_id} {method} {path}"
            base, n = tool_id, 2
            while tool_id in taken:
                tool_id, n = f"{base} {n}", n + 1
        taken.add(tool_id)
        seen[identity] = tool_id
        kept.append(i)
        ids.append(tool_id)
    names = assign(((tool_id, records[i][3]) for i, tool_id in zip(kept, ids, strict=True)), prior.names)
    by_name = sorted(range(len(kept)), key=names.__getitem__)
    return Selection([kept[k] for k in by_name], [ids[k] for k in by_name], [names[k] for k in by_name], duplicates)


def _precedence(record: tuple[str, ...]) -> tuple[object, ...]:
    source_name, provider, service, _, method, path, digest = record
    match = _VERSION.search(service)
    family = service[: match.start()] if match else service
    version = [-int(n) for n in re.findall(r"\d+", match[1])] if match else []
    return provider, family, version, service, source_name, method, path, digest
