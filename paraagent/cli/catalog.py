"""`paraagent catalog`: build the catalog of tools, look at it, search it."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paraagent.cli import catalog_sources
from paraagent.task import Split

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import Filter, ToolIndex

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Build, search and show the catalog of tools.")

app.command()(catalog_sources.add)
app.command()(catalog_sources.remove)
app.command()(catalog_sources.sources)

ProfileOption = Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_PLAIN_WIDTH = 140
"""Characters of a line that goes to a file or a pipe."""
_ANSWER_CHARS = 1_500
_NEAREST = 3
_FEW = 12
"""Values of a column that a sentence may list."""


@app.command()
def build(
    context: typer.Context,
    profile: Annotated[str, typer.Option(help="A built-in profile or a TOML file.")] = "quick",
    force: Annotated[bool, typer.Option("--force", help="Build it again, even if it is complete.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change one setting: catalog.max_depth=3.")] = None,
    json: JsonOption = False,
) -> None:
    """Fetch the sources and build the catalog and its search index; nothing is done where they are complete.

    Example: paraagent catalog build --profile quick
    """
    from paraagent.cli.run import run

    run(context, profile=profile, stage=["catalog"], force=["catalog"] if force else None, set_=set_, json=json)


@app.command()
def info(profile: ProfileOption = None, json: JsonOption = False) -> None:
    """Count what the catalog holds, and say what it was made of.

    Example: paraagent catalog info --json
    """
    with _open(profile) as catalog:
        document = _counts(catalog)
    if json:
        _print_json(document)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in document.items():
        table.add_row(name, *([f"{value:,}"] if isinstance(value, int) else [_lines(value)]))
    _print(table)


@app.command()
def search(
    slots: Annotated[list[str], typer.Argument(help="What a tool must do, one or more in quotes.", metavar="SLOT...")],
    k: Annotated[int, typer.Option("-k", min=1, help="Tools for each slot.")] = 5,
    split: Annotated[Split | None, typer.Option(help="Only services of this split.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only tools of this provider.")] = None,
    service: Annotated[str | None, typer.Option(help="Only tools of this service.")] = None,
    effect: Annotated[str | None, typer.Option(help="Only tools that read, create, update, delete, other.")] = None,
    source: Annotated[str | None, typer.Option(help="Only tools of this source, as in `catalog info`.")] = None,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """Find the tools for each slot, all slots in one call. A slot may be a whole request of several sentences.

    Example: paraagent catalog search "create a calendar event" "current weather in a city" -k 3

    Example: paraagent catalog search "list the instances" --provider amazonaws.com --effect read
    """
    from paraagent.errors import UsageError
    from paraagent.retrieval.index import Filter, ToolIndex

    if not all(slot.strip() for slot in slots):
        raise UsageError('A slot is empty: say what a tool must do, for example "create a calendar event"')
    with _open(profile) as catalog:
        index = ToolIndex.load(catalog.path.parent / "index", catalog)
        where = Filter(provider, service, effect, source)
        _check(where, index)
        found = index.search(slots, k, split=split, where=where)
        tools = catalog.get_many(hit.name for hits in found for hit in hits)
    if json:
        results = [
            {"slot": slot, "hits": [_hit(tools[hit.name], hit.score) for hit in hits]}
            for slot, hits in zip(slots, found, strict=True)
        ]
        _print_json({"results": results})
        return
    from rich.table import Table
    from rich.text import Text

    for slot, hits in zip(slots, found, strict=True):
        table = Table(title=Text(slot, "bold"), title_justify="left", box=None, pad_edge=False, header_style="dim")
        table.add_column("score", justify="right", no_wrap=True)
        table.add_column("tool", no_wrap=True)
        table.add_column("service", overflow="fold")
        table.add_column("description")
        for hit in hits:
            tool = tools[hit.name]
            about = textwrap.shorten(tool.description, 120, placeholder="…")
            row = (f"{hit.score:.1f}", hit.name, f"{tool.provider}/{tool.service}", about)
            table.add_row(*map(Text, row))
        _print(table if hits else Text(f"{slot}\nno tool shares a word with this slot\n"))


@app.command()
def show(name: str, profile: ProfileOption = None, json: JsonOption = False) -> None:
    """Show one tool in full: what it takes, what it returns, an example call and an answer of the simulated world.

    Example: paraagent catalog show ec2_describe_instances
    """
    from dataclasses import asdict

    from paraagent.cli.tool_page import example_arguments, tool_page
    from paraagent.errors import UsageError
    from paraagent.toolenv.limits import fit_json
    from paraagent.toolenv.world import World

    with _open(profile) as catalog:
        tool = catalog.get(name)
        if tool is None:
            near = ", ".join(catalog.nearest(name, _NEAREST))
            raise UsageError(f"There is no tool {name}: did you mean one of {near}?")
        fields = _fields(catalog, tool)
    arguments = example_arguments(tool)
    answer = fit_json(World(0).respond(tool, arguments), _ANSWER_CHARS)
    if json:
        call = {"name": tool.name, "arguments": arguments}
        _print_json({**asdict(tool), "fields": fields, "example": {"call": call, "response": answer}})
        return
    _print(tool_page(tool, fields, arguments, answer))


def _check(where: Filter, index: ToolIndex) -> None:
    """Raises `UsageError` where a filter names what no tool has."""
    from difflib import get_close_matches

    from paraagent.errors import UsageError

    for column, value in where._asdict().items():
        known = index.values[column]
        if value is not None and value not in known:
            near = get_close_matches(value, known, n=1)
            few = f"there are {', '.join(known)}" if len(known) <= _FEW else f"there are {len(known)} others"
            hint = f"did you mean {near[0]}?" if near else few
            raise UsageError(f"No tool has the {column} {value}: {hint}")


def _open(profile: str | None) -> Catalog:
    from paraagent.catalog.store import Catalog
    from paraagent.cli.current import require_catalog
    from pipelines.home import Home

    return Catalog.open(require_catalog(Home.locate(), profile))


def _counts(catalog: Catalog) -> dict[str, Any]:
    [row] = catalog.relation(
        "SELECT count(*), count(DISTINCT (provider, service)), count(DISTINCT provider), count(returns),"
        " count(*) FILTER (deprecated), (SELECT count(*) FROM parameters), (SELECT count(*) FROM fields),"
        " (SELECT count(*) FROM quarantine) FROM tools"
    ).fetchall()
    names = ("tools", "services", "providers", "with_returns", "deprecated", "parameters", "fields", "quarantine")
    grouped = "SELECT {0}, count(*) FROM tools GROUP BY {0} ORDER BY 2 DESC, 1"
    return {
        "path": str(catalog.path),
        **dict(zip(names, row, strict=True)),
        "effects": dict(catalog.relation(grouped.format("effect")).fetchall()),
        "sources": dict(catalog.relation(grouped.format("source || ' ' || source_version")).fetchall()),
        "build": catalog.info(),
    }


def _fields(catalog: Catalog, tool: ToolInterface) -> list[dict[str, str | None]]:
    columns = ("path", "type", "format", "description")
    tool_id = tool.tool_id.replace("'", "''")
    rows = catalog.relation(f"SELECT {', '.join(columns)} FROM fields WHERE tool_id = '{tool_id}'").fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _hit(tool: ToolInterface, score: float) -> dict[str, Any]:
    return {
        "name": tool.name,
        "score": round(score, 4),
        "provider": tool.provider,
        "service": tool.service,
        "effect": tool.effect,
        "description": tool.description,
    }


def _lines(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return "\n".join(f"{name}: {f'{entry:,}' if isinstance(entry, int) else entry}" for name, entry in value.items())


def _print(content: RenderableType) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    Console(markup=False, highlight=False, width=width).print(content)


def _print_json(document: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
