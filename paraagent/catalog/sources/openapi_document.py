"""One OpenAPI 3.0 or 3.1 document as a `Reader`: JSON pointers, and schemas with `allOf`, `oneOf`, `anyOf` folded into
shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from paraagent.catalog import keywords
from paraagent.catalog.operation import VALUE_TEXT
from paraagent.catalog.schemas import ARGUMENT, RESULT, Member, Shape, Side, member
from paraagent.catalog.text import clean

NOTHING: dict[str, Any] = {}
MAX_BRANCHES = 4
"""Alternatives of a value kept side by side."""
_JSON = re.compile(r"[/+]json\b|\*/\*", re.IGNORECASE)
_FORM = re.compile(r"form", re.IGNORECASE)
_COMBINED = ("allOf", "oneOf", "anyOf")
_COMBINED_KEYS = frozenset(_COMBINED)
_PLAIN_KEYS = frozenset({"type", "format", "description", "title", "readOnly", "writeOnly", "nullable"})
_ANY = Shape("any")


class Parameter(NamedTuple):
    """One entry of a list `parameters`."""

    place: str
    """path, query, header or cookie."""
    member: Member
    required: bool


class Document:
    """Nodes are schemas as they stand in the document, with or without `$ref`; shapes are remembered by the node's
    identity."""

    def __init__(self, raw: dict[str, Any], parts: Mapping[str, Any] = NOTHING) -> None:
        self.raw = raw
        self._parts = parts
        """Other files that references lead to, by name: `part.yaml#/Cup`."""
        self._shapes: dict[int, Shape] = {}
        self._targets: dict[str, Any] = {}
        self._parameters: dict[int, Parameter | None] = {}

    def pointer(self, link: Any) -> Any:
        """What a `$ref` into the document or one of its parts points to (RFC 6901, percent-decoded); `NOTHING` for
        anything else."""
        if not isinstance(link, str):
            return NOTHING
        found = self._targets.get(link)
        if found is None:
            found = self._targets[link] = self._resolve(link)
        return found

    def _resolve(self, link: str) -> Any:
        name, _, path = link.partition("#")
        node: Any = self._parts.get(name, NOTHING) if name else self.raw
        if path and not path.startswith("/"):
            return NOTHING
        for part in path.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = node.get(key, NOTHING)
            elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            else:
                return NOTHING
        return node

    def follow(self, node: Any) -> dict[str, Any]:
        """The mapping at the end of a chain of `$ref`; `NOTHING` where there is none or it goes in circles."""
        for _ in range(16):
            if not isinstance(node, dict):
                return NOTHING
            link = node.get("$ref")
            if link is None or isinstance(link, dict):
                return node
            node = self.pointer(link)
        return NOTHING

    @staticmethod
    def mapping(node: Any) -> dict[str, Any]:
        return node if isinstance(node, dict) else NOTHING

    def media(self, content: Any) -> dict[str, Any] | None:
        """The schema of a body: JSON first, then a form, then whatever has a schema."""
        if not isinstance(content, dict):
            return None
        for wanted in (_JSON, _FORM, None):
            for media_type, entry in content.items():
                if wanted is None or wanted.search(media_type):
                    schema = self.follow(entry).get("schema")
                    if isinstance(schema, dict) and schema:
                        return schema
        return None

    def parameter(self, node: Any) -> Parameter | None:
        """A parameter, read once however many operations refer to it; None where it has no name or place."""
        raw = self.follow(node)
        if id(raw) not in self._parameters:
            self._parameters[id(raw)] = self._read_parameter(raw)
        return self._parameters[id(raw)]

    def _read_parameter(self, raw: dict[str, Any]) -> Parameter | None:
        place, name = raw.get("in"), raw.get("name")
        if not (isinstance(place, str) and isinstance(name, str) and name):
            return None
        node = raw.get("schema")
        if node is None:
            node = self.media(raw.get("content"))
        if not isinstance(node, dict):
            node = raw if "type" in raw else NOTHING
        text = raw.get("description") or self.text(node)
        return Parameter(
            place, member(name, node, clean(text, VALUE_TEXT)), place == "path" or raw.get("required") is True
        )

    def text(self, node: Any) -> Any:
        """The description of a schema or of what it refers to."""
        if not isinstance(node, dict):
            return None
        return node.get("description") or self.follow(node).get("description") or node.get("title")

    def shape(self, node: Any) -> Shape:
        found = self._shapes.get(id(node))
        return found if found is not None else self._find(node)

    def _find(self, node: Any) -> Shape:
        target = node if isinstance(node, dict) and "$ref" not in node else self.follow(node)
        found = self._shapes.get(id(target))
        if found is None:
            self._shapes[id(target)] = _ANY  # what an alternative that is its own parent is taken for
            found = self._shapes[id(target)] = self._read(target)
        self._shapes[id(node)] = found
        return found

    def _read(self, raw: dict[str, Any]) -> Shape:
        if not raw:
            return _ANY
        if len(raw) <= 3 and _PLAIN_KEYS.issuperset(raw):
            type, format = raw.get("type"), raw.get("format")
            if isinstance(type, str) and (format is None or isinstance(format, str)):
                shape = keywords.plain(type, format)
                if shape is not None:
                    return shape
        if not _COMBINED_KEYS.isdisjoint(raw):
            return self._combined(raw)
        return self._simple(raw)

    def _combined(self, raw: dict[str, Any]) -> Shape:
        """`allOf` is merged. Alternatives that are all objects become one object with all their properties, of which
        only those that every alternative requires are required; others stay alternatives."""
        merged: dict[str, Any] = {}
        alternatives: list[dict[str, Any]] = []
        self._merge(raw, merged, alternatives, set())
        if alternatives:
            kept = [a for a in alternatives if a and a.get("type") != "null"]
            shapes = [self.shape(a) for a in kept]
            if not merged.get("properties") and len(shapes) == 1:
                return shapes[0]
            objects = [s for s in shapes if s.type == "object"]
            if shapes and len(objects) == len(shapes):
                return self._union(merged, objects)
            if not merged.get("properties") and "type" not in merged and shapes:
                return Shape("any", branches=tuple(kept[:MAX_BRANCHES]))
        return self._simple(merged)

    def _merge(
        self, raw: dict[str, Any], into: dict[str, Any], alternatives: list[dict[str, Any]], seen: set[int]
    ) -> None:
        if id(raw) in seen or len(seen) > 64:
            return
        seen.add(id(raw))
        parts = raw.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            self._merge(self.follow(part), into, alternatives, seen)
        for word in ("oneOf", "anyOf"):
            options = raw.get(word)
            if isinstance(options, list) and not alternatives:
                alternatives.extend(option for option in options if isinstance(option, dict))
        for key, value in raw.items():
            if key in _COMBINED:
                continue
            if key == "properties" and isinstance(value, dict):
                into["properties"] = {**into.get("properties", {}), **value}
            elif key == "required" and isinstance(value, list):
                into["required"] = [*into.get("required", []), *value]
            else:
                into[key] = value

    def _union(self, merged: dict[str, Any], objects: list[Shape]) -> Shape:
        base = self._simple({**merged, "type": "object"})
        members: dict[str, Member] = {m.name: m for m in base.members}
        for shape in objects:
            for m in shape.members:
                members.setdefault(m.name, m)
        shared = [name for name in objects[0].required if all(name in shape.required for shape in objects)]
        required = tuple(dict.fromkeys([*base.required, *shared]))
        values = next((shape.values for shape in objects if shape.values is not None), None)
        return Shape("object", facts=base.facts, members=tuple(members.values()), required=required, values=values)

    def _simple(self, raw: dict[str, Any]) -> Shape:
        given = raw.get("type")
        type = given if isinstance(given, str) and given in keywords.TYPE_FACT else self._type(raw)
        facts = keywords.TYPE_FACT[type]
        if type == "object":
            required = raw.get("required")
            names = (
                tuple(dict.fromkeys(n for n in required if isinstance(n, str))) if isinstance(required, list) else ()
            )
            values = raw.get("additionalProperties")
            values = values if isinstance(values, dict) and values else None
            return Shape(type, facts=facts, members=self._members(raw), required=names, values=values)
        if type == "array":
            items = raw.get("items")
            facts += keywords.bounds(raw, type)
            return Shape(type, facts=facts, items=items if isinstance(items, dict) and items else None)
        if type == "any":
            return _ANY
        choices = keywords.enumeration(raw["enum"], type) if "enum" in raw else None
        if choices is None and "const" in raw:
            choices = keywords.enumeration([raw["const"]], type)
        rules = keywords.default(raw["default"], type) if "default" in raw else b""
        if choices:
            return Shape(type, facts=facts + b',"enum":' + orjson.dumps(choices), rules=rules, choices=choices)
        format = raw.get("format")
        format = format if isinstance(format, str) and 0 < len(format) <= keywords.MAX_FORMAT else None
        if format:
            facts += b',"format":' + orjson.dumps(format)
        facts += keywords.bounds(raw, type)
        if "example" in raw:
            facts += keywords.example(raw["example"], type)
        elif isinstance(raw.get("examples"), list):
            facts += keywords.example(next(iter(raw["examples"]), None), type)
        if isinstance(raw.get("pattern"), str) and (pattern := keywords.pattern(raw["pattern"])):
            rules = pattern + b"," + rules if rules else pattern
        return Shape(type, facts=facts, rules=rules, format=format)

    @staticmethod
    def _type(raw: dict[str, Any]) -> str:
        given = raw.get("type")
        if isinstance(given, list):
            options = [t for t in given if t != "null"]
            given = "string" if "string" in options else options[0] if options else None
        if isinstance(given, str):
            known = keywords.TYPES.get(given.lower())
            if known:
                return known
        if isinstance(raw.get("properties"), dict) or isinstance(raw.get("additionalProperties"), dict):
            return "object"
        if isinstance(raw.get("items"), dict):
            return "array"
        values = raw.get("enum")
        if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
            return "string"
        return "any"

    def _members(self, raw: dict[str, Any]) -> tuple[Member, ...]:
        properties = raw.get("properties")
        if not isinstance(properties, dict):
            return ()
        found = []
        for name, node in properties.items():
            if (
                name == "$ref"
            ):  # misplaced, or a field that describes schemas: nothing of ours may look like a reference
                continue
            if not isinstance(node, dict):
                node = NOTHING
            side: Side | None = None
            text = node.get("description")
            if node.get("readOnly") is True:
                side = RESULT
            elif node.get("writeOnly") is True:
                side = ARGUMENT
            if not text and node:
                text = self.text(node)
            found.append(member(name, node, clean(text, VALUE_TEXT), side))
        return tuple(found)
