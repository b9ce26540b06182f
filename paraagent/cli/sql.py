"""`paraagent sql`: one SELECT, or a saved query, over the catalog and the artifacts of the home."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from paraagent.catalog.query import Answer

Format = Literal["table", "csv", "json"]

_TABLE_ROWS = 1_000
_PLAIN_WIDTH = 160
"""Characters of a table that goes to a file or a pipe."""


class _SqlCommand(TyperCommand):
    """Lets `--query` stand without a value, which lists the saved queries."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[str] = []
        for position, word in enumerate(args):
            given.append(word)
            following = args[position + 1] if position + 1 < len(args) else "--"
            if word == "--query" and following.startswith("--"):
                given.append("")
        return super().parse_args(ctx, given)


sql = typer.Typer(add_completion=False)


@sql.command("sql", cls=_SqlCommand)
def sql_command(
    select: Annotated[str | None, typer.Argument(help="One SELECT.", metavar="SELECT")] = None,
    query: Annotated[str | None, typer.Option(help="A saved query by name; without a name, list them.")] = None,
    param: Annotated[list[str] | None, typer.Option(help="Value of a $name in the query: name=value.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How rows are printed.")] = "table",
    profile: Annotated[str | None, typer.Option(help="Look at this profile's artifacts, not the last run's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Ask the catalog, tasks, demos, episodes and scores in SQL; nothing is ever written.

    Example: paraagent sql "SELECT provider, count(*) FROM tools GROUP BY ALL ORDER BY 2 DESC LIMIT 5"

    Example: paraagent sql --query who_returns --param field=eventId --format csv
    """
    from paraagent.catalog.query import QuerySession
    from paraagent.catalog.saved import saved_query
    from paraagent.cli.current import artifact_files, current_catalog
    from paraagent.errors import RunError, UsageError
    from pipelines.home import Home

    shape: Format = "json" if json else format_
    if (select is None) == (query is None):
        raise UsageError('Give one SELECT in quotes, or --query NAME: for example `paraagent sql "FROM tools LIMIT 5"`')
    if query == "":
        _print(_listing(), shape)
        return
    values: dict[str, str] = {}
    for name, value in map(_pair, param or []):
        if name in values:
            raise UsageError(f"--param {name} is given twice: {values[name]} and {value}")
        values[name] = value
    if query is not None:
        saved = saved_query(query)
        select, values = saved.sql, saved.values(values)
    home = Home.locate()
    catalog, files = current_catalog(home, profile), artifact_files(home, profile)
    if catalog is None and not any(files.values()):
        raise RunError(f"There is nothing to ask in {home.root}: run `paraagent catalog build` or `paraagent run`")
    with QuerySession.open(home.root, catalog, files) as session:
        assert select is not None
        _print(session.run(select, values), shape)


def _pair(text: str) -> tuple[str, str]:
    from paraagent.errors import UsageError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--param takes name=value, for example field=eventId, not {text}")
    return name, value


def _listing() -> Answer:
    """The saved queries as a table of their own."""
    from paraagent.catalog.query import Answer
    from paraagent.catalog.saved import saved_queries

    rows = [
        (
            saved.name,
            saved.answers,
            ", ".join(f"{p.name}={p.default}" if p.default is not None else f"{p.name}=…" for p in saved.parameters),
        )
        for saved in saved_queries()
    ]
    return Answer(("query", "answers", "parameters"), frozenset(), iter(rows))


def _print(answer: Answer, shape: Format) -> None:
    """Write the rows as they come; a reader that goes away, such as `head`, is no error."""
    try:
        {"table": _table, "csv": _csv, "json": _json}[shape](answer)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _table(answer: Answer) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = list(islice(answer.rows, _TABLE_ROWS))
    table = Table(*answer.columns, box=None, header_style="bold", pad_edge=False)
    for row in shown:
        table.add_row(*("" if value is None else str(value) for value in row))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    console.print(table)
    left = sum(1 for _ in answer.rows)
    cut = f", the first {_TABLE_ROWS:,} shown: --format csv prints all" if left else ""
    print(f"{len(shown) + left:,} rows{cut}", file=sys.stderr)


def _csv(answer: Answer) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)


def _json(answer: Answer) -> None:
    """An array of objects, one a line; JSON columns are embedded, dates are ISO 8601."""
    lines = [_line(row) for row in _objects(answer)]
    sys.stdout.write("[" + ",".join(f"\n{line}" for line in lines) + "\n]\n")


def _line(row: dict[str, Any]) -> str:
    import orjson

    try:
        return orjson.dumps(row, default=_text, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # whole numbers beyond 64 bits: as text, so that no reader rounds them
        wide = {name: str(value) if isinstance(value, int) else value for name, value in row.items()}
        return orjson.dumps(wide, default=_text, option=orjson.OPT_NON_STR_KEYS).decode()


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _objects(answer: Answer) -> Iterator[dict[str, Any]]:
    import orjson

    names = [
        name if name not in answer.columns[:position] else f"{name}_{position + 1}"
        for position, name in enumerate(answer.columns)
    ]
    for row in answer.rows:
        yield {
            name: orjson.Fragment(value) if column in answer.json_columns and value is not None else value
            for name, column, value in zip(names, answer.columns, row, strict=True)
        }
