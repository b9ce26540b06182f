"""One tool on a page of the terminal: description, parameters, result, an example call and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.seeds import derive
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.identifiers import words
from paraagent.toolenv.world import World

if TYPE_CHECKING:
    from rich.console import RenderableType

_EXAMPLES = 2
"""Optional parameters that an example call shows where none is required."""
_FIELDS = 40
_CHOICES = 8


def example_arguments(tool: ToolInterface) -> dict[str, Any]:
    """Arguments that a call could have: the required ones, else the first optional ones. The same every time."""
    chosen = tool.required or list(tool.properties)[:_EXAMPLES]
    now = World(0).now
    compiler = Compiler()
    return {
        name: compiler.compile_field(name, tool.properties.get(name, {}), words(tool.service))(
            derive(0, tool.name, name), now, {}
        )
        for name in chosen
    }


def tool_page(
    tool: ToolInterface, fields: Sequence[Mapping[str, str | None]], arguments: dict[str, Any], answer: Any
) -> RenderableType:
    """The page; `fields` are rows of the table `fields`, `answer` is what the simulated world says to `arguments`."""
    call = orjson.dumps({"name": tool.name, "arguments": arguments}, option=orjson.OPT_INDENT_2).decode()
    response = orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    return Group(
        Panel(Text(tool.description), title=Text(tool.name, "bold"), subtitle=Text(_origin(tool)), title_align="left"),
        _facts(tool),
        _heading(f"Parameters ({len(tool.properties)}, {len(tool.required)} required)"),
        _parameters(tool),
        _heading(f"Returns ({len(fields)} fields)" if tool.returns else "Returns (the source does not say)"),
        _fields(fields),
        _heading("Example call"),
        Text(call),
        _heading("What the simulated world answers"),
        Text(response),
    )


def _origin(tool: ToolInterface) -> str:
    return f"{tool.provider} / {tool.service}" + (" / deprecated" if tool.deprecated else "")


def _heading(text: str) -> Text:
    return Text(f"\n{text}", "bold")


def _facts(tool: ToolInterface) -> Table:
    table = Table.grid(padding=(0, 2))
    route = f"{tool.http_method} {tool.path}".strip()
    facts = {
        "title": tool.title,
        "effect": f"{tool.effect} ({route})" if route else tool.effect,
        "category": tool.category,
        "source": f"{tool.source} {tool.source_version}, {tool.source_name}, {tool.licence}",
    }
    for name, value in facts.items():
        if value:
            table.add_row(Text(name, "dim"), Text(value))
    return table


def _parameters(tool: ToolInterface) -> RenderableType:
    if not tool.properties:
        return Text("none")
    table = Table("name", "type", "", "description", box=None, pad_edge=False, header_style="dim")
    required = set(tool.required)
    for name, schema in sorted(tool.properties.items(), key=lambda item: item[0] not in required):
        need = Text("required" if name in required else "", "red")
        table.add_row(Text(name, "cyan"), Text(_type(schema)), need, Text(_described(schema)))
    return table


def _type(schema: Schema) -> str:
    kind = schema.get("type", "any")
    kind = " | ".join(kind) if isinstance(kind, list) else str(kind)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"array of {_type(schema['items'])}"
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _described(schema: Schema) -> str:
    """Description, allowed values and bounds."""
    parts = [str(schema.get("description", ""))]
    choices = schema.get("enum", [])
    if choices:
        more = f", and {len(choices) - _CHOICES} more" if len(choices) > _CHOICES else ""
        parts.append(f"One of {', '.join(map(str, choices[:_CHOICES]))}{more}.")
    bounds = [f"{name} {schema[key]}" for key, name in _BOUNDS.items() if key in schema]
    if bounds:
        parts.append(f"({', '.join(bounds)})")
    return " ".join(part for part in parts if part)


_BOUNDS = {
    "default": "default",
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "elements at least",
    "maxItems": "elements at most",
}


def _fields(fields: Sequence[Mapping[str, str | None]]) -> RenderableType:
    if not fields:
        return Text("nothing that is described")
    table = Table("field", "type", "description", box=None, pad_edge=False, header_style="dim")
    for field in fields[:_FIELDS]:
        kind = f"{field['type']} ({field['format']})" if field["format"] else field["type"] or ""
        table.add_row(Text(field["path"] or "", "cyan"), Text(kind), Text(field["description"] or ""))
    more = len(fields) - _FIELDS
    return Group(table, Text(f"and {more} more: --json shows all", "dim")) if more > 0 else table
