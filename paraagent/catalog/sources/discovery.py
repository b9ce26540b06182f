"""Google discovery documents: `googleapiclient/discovery_cache/documents/<api>.<version>.json`.

One API has several versions that share method ids, so the versions of an API are one unit: the most stable, highest
version gives each id. Bounds are strings, `any` is a type, `repeated` makes a parameter a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from paraagent.catalog import keywords
from paraagent.catalog.operation import TITLE_TEXT, TOOL_TEXT, VALUE_TEXT, Operation, Rejected
from paraagent.catalog.schemas import RESULT, Member, Reader, Shape, Side, member
from paraagent.catalog.text import clean, humanise

PROVIDER = "googleapis.com"
LICENCE = "Apache-2.0"
_MEMBER = re.compile(r"(?:^|/)discovery_cache/documents/([^/.]+)\.([^/]+)\.json$")
_FORMATS = {"google-datetime": "date-time", "google-duration": "duration", "google-fieldmask": "field-mask"}
_REQUIRED = re.compile(r"^\s*(?:\[?required\]?[.:]|output only\. required)", re.IGNORECASE)
_OUTPUT_ONLY = re.compile(r"^\s*\[?output[ -]only\]?", re.IGNORECASE)
_PLAIN_KEYS = frozenset({"type", "format", "description", "readOnly", "deprecated", "location", "required"})
_NOTHING: dict[str, Any] = {}
_NEVER_SENT = frozenset({"kind", "etag", "selfLink"})
"""Members that every resource carries and no caller writes."""


def units(names: Sequence[str]) -> list[list[str]]:
    """One unit an API, its versions from the one to prefer to the one to fall back to."""
    apis: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(names):
        if match := _MEMBER.search(name):
            apis.setdefault(match[1], []).append((match[2], name))
    return [[name for _, name in sorted(apis[api], key=lambda pair: _preference(pair[0]))] for api in sorted(apis)]


def _preference(version: str) -> tuple[Any, ...]:
    stage = 2 if "alpha" in version or "preview" in version else 1 if re.search(r"beta|p\d", version) else 0
    return stage, [-int(n) for n in re.findall(r"\d+", version)], version


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    """Every method id of an API once."""
    seen: dict[str, str] = {}
    for _, document in unit:
        service, version = str(document.get("name", "")), str(document.get("version", ""))
        reader = _Document(document)
        for raw in _methods(document):
            method_id = str(raw.get("id", ""))
            if not method_id:
                continue
            if method_id in seen:
                yield Rejected(
                    method_id, PROVIDER, service, "superseded", f"version {version}, also in {seen[method_id]}"
                )
                continue
            seen[method_id] = version
            tail = method_id.split(".", 1)[-1]
            response = raw.get("response")
            yield (
                reader,
                Operation(
                    source_name=method_id,
                    provider=PROVIDER,
                    service=service,
                    category="cloud" if "cloud" in str(document.get("documentationLink", "")) else "google",
                    title=humanise(tail)[:TITLE_TEXT],
                    description=clean(raw.get("description"), TOOL_TEXT),
                    words=tail,
                    method=str(raw.get("httpMethod", "POST")),
                    path=str(raw.get("flatPath") or raw.get("path") or "/"),
                    deprecated=bool(raw.get("deprecated")),
                    licence=LICENCE,
                    arguments=reader.arguments(raw),
                    result=reader.shape(response) if response else None,
                ),
            )


def _methods(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from node.get("methods", {}).values()
    for resource in node.get("resources", {}).values():
        yield from _methods(resource)


class _Document:
    """A `Reader` whose nodes are discovery schemas: dicts with `type`, `properties`, `$ref`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document  # nodes are remembered by identity, so they must stay alive
        self._schemas: dict[str, Any] = document.get("schemas", {})
        self._shapes: dict[int, Shape] = {}
        self._made: list[Any] = []

    def shape(self, node: dict[str, Any]) -> Shape:
        found = self._shapes.get(id(node))
        return found if found is not None else self._find(node)

    def _find(self, node: dict[str, Any]) -> Shape:
        target = self._target(node)
        found = self._shapes.get(id(target))
        if found is None:
            found = self._shapes[id(target)] = self._read(target)
        self._shapes[id(node)] = found
        return found

    def arguments(self, raw: dict[str, Any]) -> Shape:
        """Path and query parameters, then what can be written of the request's resource, in one flat object.

        A property of the resource that has the name of a parameter is left out: its value is in the URL already.
        """
        members: dict[str, Member] = {}
        required = []
        for name, parameter in raw.get("parameters", {}).items():
            node = parameter
            if parameter.get("repeated"):
                node = {
                    "type": "array",
                    "items": {k: v for k, v in parameter.items() if k not in ("repeated", "description")},
                }
                self._made.append(node)
            members[name] = member(name, node, clean(parameter.get("description"), VALUE_TEXT))
            if parameter.get("required"):
                required.append(name)
        if request := raw.get("request"):
            resource = self._target(request)
            body = self.shape(resource)
            if body.members:
                mandatory = self._mandatory(resource, str(raw.get("id")))
                for m in body.members:
                    if m.side != RESULT and m.name not in members and m.name not in _NEVER_SENT:
                        members[m.name] = m
                        if m.name in mandatory:
                            required.append(m.name)
            elif body.says_something and "body" not in members:
                members["body"] = member("body", resource, clean(resource.get("description"), VALUE_TEXT))
                required.append("body")
        facts = keywords.TYPE_FACT["object"]
        return Shape("object", facts=facts, members=tuple(members.values()), required=tuple(required))

    def _target(self, node: dict[str, Any]) -> dict[str, Any]:
        for _ in range(16):
            link = node.get("$ref")
            if link is None:
                return node
            node = self._schemas.get(link) or _NOTHING
        return _NOTHING

    def _mandatory(self, resource: dict[str, Any], method_id: str) -> set[str]:
        return {
            name
            for name, node in resource.get("properties", {}).items()
            if method_id in (node.get("annotations") or {}).get("required", ())
            or _REQUIRED.match(node.get("description") or "")
        }

    def _read(self, raw: dict[str, Any]) -> Shape:
        if _PLAIN_KEYS.issuperset(raw) and "type" in raw:
            format = raw.get("format") or ""
            if (shape := keywords.plain(str(raw["type"]), _FORMATS.get(format, format))) is not None:
                return shape
        type = keywords.TYPES.get(str(raw.get("type")), "any")
        if type == "any" and "properties" in raw:
            type = "object"
        facts = keywords.TYPE_FACT[type]
        if type == "object":
            members = []
            for name, node in raw.get("properties", {}).items():
                if (
                    name == "$ref"
                ):  # a field that describes schemas; nothing in a schema of ours may look like a reference
                    continue
                text = node.get("description")
                if not text and "$ref" in node:
                    text = self._target(node).get("description")
                side: Side | None = RESULT if node.get("readOnly") or _OUTPUT_ONLY.match(text or "") else None
                members.append(member(name, node, clean(text, VALUE_TEXT), side))
            return Shape(type, facts=facts, members=tuple(members), values=raw.get("additionalProperties"))
        if type == "array":
            return Shape(type, facts=facts + keywords.bounds(raw, type), items=raw.get("items"))
        choices = keywords.enumeration(raw.get("enum"), type)
        rules = keywords.default(raw.get("default"), type)
        if choices:
            return Shape(type, facts=facts + b',"enum":' + orjson.dumps(choices), rules=rules, choices=choices)
        format = raw.get("format")
        if format:
            format = str(_FORMATS.get(format, format))
            facts += b',"format":' + orjson.dumps(format)
        if type != "string":
            facts += keywords.bounds(raw, type)
        rules = b",".join(filter(None, (keywords.pattern(raw.get("pattern")), rules)))
        return Shape(type, facts=facts, rules=rules, format=format)
