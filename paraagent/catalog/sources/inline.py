"""One tool with JSON Schemas of its own, for what it takes and what it returns: each with its own `$defs`."""

from __future__ import annotations

from functools import partial
from typing import Any

from paraagent.catalog import keywords
from paraagent.catalog.schemas import RESULT, Node, Shape
from paraagent.catalog.sources.openapi_document import Document
from paraagent.catalog.sources.references import rewrite


class Inline:
    """A reader of both schemas, which it owns: their references are changed in place."""

    def __init__(self, takes: Any, returns: Any = None) -> None:
        raw = {}
        for place, schema in (("takes", takes), ("returns", returns)):
            if isinstance(schema, dict):
                rewrite(schema, partial(_inside, place))
                raw[place] = schema
        self._document = Document(raw)
        shape = self.shape(raw.get("takes"))
        self.arguments = Shape(
            "object",
            facts=keywords.TYPE_FACT["object"],
            members=tuple(m for m in shape.members if m.side != RESULT),
            required=shape.required,
        )
        self.result = self.shape(raw["returns"]) if raw.get("returns") else None

    def shape(self, node: Node) -> Shape:
        return self._document.shape(node)


def _inside(place: str, link: str) -> str:
    return f"#/{place}{link[1:]}" if link.startswith("#") else "#!"
