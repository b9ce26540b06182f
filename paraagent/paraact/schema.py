"""How a found tool is shown to the model: one compact JSON line, always valid, never over its budget.

    {"name":"orders_list","description":"…","parameters":{"customer":"string: who ordered","state?":"open|closed"}}

A parameter's value says what it takes: a type, with its format, the allowed values, or the parts of an object or array;
after a colon stands what its name does not say. `?` marks what may be left out. Whole schemas would be four times as
many tokens, and they are most of what a model reads.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.protocol import compact

_ENUM = 12
"""A longer list of allowed values is left out; the error of a wrong value names them."""


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_EMPTY = frozenset({"a", "an", "for", "in", "is", "of", "the", "this", "to"})


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
        shown = {name: _takes(name, tool.properties[name], detail) for name in required}
        line = _line(tool, detail, shown)
        if len(line) <= max_chars:
            break
    else:
        return _cut_required(tool, max_chars, required)
    for name in tool.properties:
        if name not in shown:
            fuller = {**shown, f"{name}?": _takes(name, tool.properties[name], _OPTIONAL)}
            longer = _line(tool, detail, fuller)
            if len(longer) > max_chars:
                break
            shown, line = fuller, longer
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
        missing = f"(and {len(required) - kept} more required parameters)"
        line = _line(tool, _DETAILS[-1], dict.fromkeys(required[:kept], "any"), missing)
        if len(line) <= max_chars:
            break
    return line


def _line(tool: ToolInterface, detail: _Detail, shown: dict[str, Any], note: str = "") -> str:
    description = f"{clip(tool.description, detail.description)} {note}".strip()
    return compact({"name": tool.name, "description": description, "parameters": shown})


def _takes(name: str, schema: Any, detail: _Detail) -> Any:
    """What a caller needs of a schema: its type or allowed values, and `detail.depth` levels below it."""
    if not isinstance(schema, dict):
        return "any"
    inner = detail._replace(depth=detail.depth - 1)
    parts = schema.get("properties")
    if detail.depth and parts:
        required = schema.get("required", ())
        return {part + "?" * (part not in required): _takes(part, parts[part], inner) for part in parts}
    if detail.depth and schema.get("items"):
        return [_takes(name, schema["items"], inner)]
    text = schema.get("description")
    if detail.text and isinstance(text, str) and _words(text) - _words(name) - _EMPTY:
        return f"{_kind(schema)}: {clip(text, detail.text)}"
    return _kind(schema)


def _kind(schema: dict[str, Any]) -> str:
    choices = schema.get("enum", ())
    if len(choices) in range(1, _ENUM + 1):
        return "|".join(choice if isinstance(choice, str) else compact(choice) for choice in choices)
    kinds = schema.get("type", "any")
    kind = "|".join(kinds) if isinstance(kinds, list) else str(kinds)
    return f"{kind} {schema['format']}" if isinstance(schema.get("format"), str) else kind


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
