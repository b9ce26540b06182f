"""AWS service models as botocore packs them: `botocore/data/<service>/<date>/service-2.json.gz`.

Shapes are named and may contain themselves; documentation is HTML and stands at the member that refers to a shape
rather than at the shape. Arguments are botocore's own: the members of the input shape, wherever they travel in the
request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from paraagent.catalog import keywords
from paraagent.catalog.operation import TITLE_TEXT, TOOL_TEXT, VALUE_TEXT, Operation, Rejected
from paraagent.catalog.schemas import Reader, Shape, member
from paraagent.catalog.text import clean, humanise

PROVIDER = "amazonaws.com"
LICENCE = "Apache-2.0"
_MEMBER = re.compile(r"^botocore/data/([^/]+)/(\d{4}-\d{2}-\d{2})/service-2\.json(?:\.gz)?$")
_TYPES = {
    "structure": ("object", None),
    "map": ("object", None),
    "list": ("array", None),
    "string": ("string", None),
    "character": ("string", None),
    "boolean": ("boolean", None),
    "integer": ("integer", None),
    "long": ("integer", "int64"),
    "short": ("integer", None),
    "byte": ("integer", None),
    "biginteger": ("integer", None),
    "float": ("number", None),
    "double": ("number", None),
    "bigdecimal": ("number", None),
    "timestamp": ("string", "date-time"),
    "blob": ("string", "byte"),
}
_EMPTY = Shape("object", facts=keywords.TYPE_FACT["object"])


def units(names: Sequence[str]) -> list[list[str]]:
    """One unit a service: the file with the latest date."""
    latest: dict[str, tuple[str, str]] = {}
    for name in names:
        if match := _MEMBER.match(name):
            latest[match[1]] = max(latest.get(match[1], ("", "")), (match[2], name))
    return [[latest[service][1]] for service in sorted(latest)]


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    """Every operation of a service model. The service is the folder's name, as in `boto3.client(...)`."""
    for name, document in unit:
        match = _MEMBER.match(name)
        service = match[1] if match else name
        reader = _Model(document.get("shapes", {}))
        for source_name, raw in document.get("operations", {}).items():
            http = raw.get("http", {})
            result = raw.get("output")
            yield (
                reader,
                Operation(
                    source_name=source_name,
                    provider=PROVIDER,
                    service=service,
                    category="cloud",
                    title=humanise(source_name)[:TITLE_TEXT],
                    description=clean(raw.get("documentation"), TOOL_TEXT),
                    words=source_name,
                    method=str(http.get("method", "POST")),
                    path=str(http.get("requestUri", "/")),
                    deprecated=bool(raw.get("deprecated")),
                    licence=LICENCE,
                    arguments=reader.shape(raw["input"]["shape"]) if raw.get("input") else _EMPTY,
                    result=reader.shape(result["shape"]) if result else None,
                ),
            )


class _Model:
    """A `Reader` whose nodes are shape names."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw
        self._shapes: dict[str, Shape] = {}

    def shape(self, node: str) -> Shape:
        found = self._shapes.get(node)
        if found is None:
            found = self._shapes[node] = self._read(self._raw.get(node) or {})
        return found

    def _read(self, raw: dict[str, Any]) -> Shape:
        if raw.get("document"):
            return Shape("any")
        kind = raw.get("type", "")
        type, format = _TYPES.get(kind, ("any", None))
        facts = keywords.TYPE_FACT[type]
        if kind == "structure":
            return Shape(type, facts=facts, members=self._members(raw), required=tuple(raw.get("required", ())))
        if kind == "map":
            return Shape(type, facts=facts, values=raw["value"]["shape"])
        low, high = raw.get("min"), raw.get("max")
        if kind == "list":
            facts += keywords.bounds({"minItems": low, "maxItems": high}, type)
            return Shape(type, facts=facts, items=raw["member"]["shape"])
        if format:
            facts += b',"format":' + orjson.dumps(format)
        if kind == "string":
            choices = keywords.enumeration(raw.get("enum"), type)
            if choices:
                return Shape(type, facts=facts + b',"enum":' + orjson.dumps(choices), choices=choices)
            facts += keywords.bounds({"minLength": low, "maxLength": high}, type)
            return Shape(type, facts=facts, rules=keywords.pattern(raw.get("pattern")))
        facts += keywords.bounds({"minimum": low, "maximum": high}, type)
        return Shape(type, facts=facts, format=format)

    def _members(self, raw: dict[str, Any]) -> tuple[Any, ...]:
        found = []
        for name, link in raw.get("members", {}).items():
            target = link["shape"]
            text = link.get("documentation") or self._raw.get(target, {}).get("documentation")
            found.append(member(name, target, clean(text, VALUE_TEXT)))
        return tuple(found)
