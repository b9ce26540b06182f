"""`paraagent bench`: speed and memory of the parts, each beside the floor or baseline that it is to be judged by."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Measure speed and memory of the parts.")


@app.callback()
def root() -> None:
    """Measure speed and memory of the parts."""


@app.command()
def catalog(
    profile: Annotated[str, typer.Option(help="The profile whose catalog is built.")] = "quick",
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0 means one a core.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Build the catalog into a throw-away folder and compare with merely reading the same documents.

    Example: paraagent bench catalog --json
    """
    from rich.console import Console

    from paraagent.catalog.bench import bench_catalog
    from pipelines.catalog import processes as cores
    from pipelines.home import Home
    from pipelines.settings import load_profile

    settings = load_profile(profile)
    home = Home.locate()
    workers = processes or cores(settings.machine)
    note = Console(stderr=True)
    measured = bench_catalog(settings.catalog, home.downloads, home.root, workers, _Lines(note))
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    _show(measured, Console())


class _Lines:
    """A `Progress` of plain lines on stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def message(self, text: str) -> None:
        self._console.print(text, highlight=False)

    def start(self, total: int | None, unit: str) -> None:
        pass

    def advance(self, n: int = 1) -> None:
        pass


def _show(measured: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"Catalog build, {measured['processes']} processes", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    rows = [
        ("build", f"{measured['build_seconds']:.1f} s"),
        ("reading alone", f"{measured['parse_floor_seconds']:.1f} s"),
        ("ratio", f"{measured['ratio']:.2f}"),
        ("peak memory, all processes", f"{measured['peak_rss_bytes'] / 1e9:.2f} GB"),
        ("documents", f"{measured['documents']:,}"),
        ("catalog file", f"{measured['catalog_bytes'] / 1e6:.0f} MB"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    for title, entries, form in (
        ("seconds by phase", measured["seconds"], "{:.2f} s"),
        ("rows", measured["rows"], "{:,}"),
        ("quarantine by reason", measured["quarantine"], "{:,}"),
    ):
        table.add_section()
        table.add_row(title, "")
        for name, value in entries.items():
            table.add_row(f"  {name}", form.format(value))
    console.print(table)
