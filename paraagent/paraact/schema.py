"""How a found tool is shown to the model: one compact JSON line, always valid, never over its budget."""

from __future__ import annotations

from typing import Any, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.protocol import compact

_ENUM = 12
"""A longer list of allowed values is left out; the error of a wrong value names them."""


class _Detail(NamedTuple):
    """How much of a schema is shown."""

    description: int
    """Characters of the tool's text."""
    text: int
    """Characters of a parameter's text."""
    depth: int
    """Levels below a parameter."""


_DETAILS = (_Detail(200, 60, 3), _Detail(200, 0, 2), _Detail(120, 0, 1), _Detail(60, 0, 0))
_OPTIONAL = _Detail(0, 0, 1)


def render_schema(tool: ToolInterface, max_chars: int) -> str:
    """`{"name","description","parameters"}` in one line of `max_chars` characters at most (from about 250 up).

    Required parameters come first, in the fullest detail in which all of them fit; what room is left goes to optional
    ones, in their order, without texts. Where not even the required ones fit, the description counts what is missing.
    """
    required = [name for name in tool.properties if name in tool.required]
    for detail in _DETAILS:
        properties = {name: _short(tool.properties[name], detail) for name in required}
        line = _line(tool, detail, properties, required)
        if len(line) <= max_chars:
            break
    else:
        return _cut_required(tool, max_chars, required)
    for name in tool.properties:
        if name not in properties:
            fuller = {**properties, name: _short(tool.properties[name], _OPTIONAL)}
            longer = _line(tool, detail, fuller, required)
            if len(longer) > max_chars:
                break
            properties, line = fuller, longer
    return line


def clip(text: str, limit: int) -> str:
    """The first sentences or words of a text, at most `limit` characters."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    sentence = text[: limit + 1].rfind(". ")
    if sentence >= limit // 3:
        return text[: sentence + 1]
    word = text[:limit].rfind(" ")
    return text[: word if word > limit // 2 else limit - 1].rstrip(" ,;:") + "…"


def _cut_required(tool: ToolInterface, max_chars: int, required: list[str]) -> str:
    line = ""
    for kept in range(len(required) - 1, -1, -1):
        shown = required[:kept]
        missing = f"(and {len(required) - kept} more required parameters)"
        line = _line(tool, _DETAILS[-1], {name: {} for name in shown}, shown, missing)
        if len(line) <= max_chars:
            break
    return line


def _line(tool: ToolInterface, detail: _Detail, properties: dict[str, Any], required: list[str], note: str = "") -> str:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    description = f"{clip(tool.description, detail.description)} {note}".strip()
    return compact({"name": tool.name, "description": description, "parameters": parameters})


def _short(schema: Any, detail: _Detail) -> Any:
    """What a caller needs of a schema: type, format, allowed values, and `detail.depth` levels below it."""
    if not isinstance(schema, dict):
        return schema
    found = {key: schema[key] for key in ("type", "format") if key in schema}
    text = schema.get("description")
    if detail.text and isinstance(text, str) and text:
        found["description"] = clip(text, detail.text)
    if len(schema.get("enum", ())) in range(1, _ENUM + 1):
        found["enum"] = schema["enum"]
    if detail.depth:
        inner = detail._replace(depth=detail.depth - 1)
        if "items" in schema:
            found["items"] = _short(schema["items"], inner)
        if schema.get("properties"):
            found["properties"] = {name: _short(part, inner) for name, part in schema["properties"].items()}
            found |= {"required": schema["required"]} if schema.get("required") else {}
    return found
