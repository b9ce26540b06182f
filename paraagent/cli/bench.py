"""`paraagent bench`: speed and memory of the parts, each beside the floor or baseline that it is to be judged by."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paraagent.cli.bench_parallel import parallel
from paraagent.cli.bench_rollout import rollout
from paraagent.cli.bench_tasks import tasks

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


@app.command()
def search(
    data: Annotated[str, typer.Option(help="Folder of ToolBench query files, G1_category.json and so on.")],
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many requests of each file.")] = None,
    profile: Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how well requests find the tools that people marked for them, beside bm25s out of the box.

    The files are in solvable_queries/test_instruction of the repository THUNLP-MT/StableToolBench.

    Example: paraagent bench search --data StableToolBench/solvable_queries/test_instruction
    """
    from rich.console import Console

    from paraagent.cli.current import require_catalog
    from paraagent.evaluation.bench import bench_search
    from paraagent.files import write_json
    from pipelines.home import Home

    home = Home.locate()
    catalog = require_catalog(home, profile)
    measured = bench_search(catalog, Path(data).expanduser(), limit, home.root, 0, _Lines(Console(stderr=True)))
    kept = home.root / "bench" / "search.json"
    with home.writable():
        kept.parent.mkdir(exist_ok=True)
        write_json(kept, measured)
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    console = Console()
    _show_search(measured, console)
    console.print(f"\n{kept}", soft_wrap=True, highlight=False, markup=False)


@app.command()
def env(
    tools: Annotated[int, typer.Option(min=1, help="Tools drawn from the catalog.")] = 1_000,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes kept in memory at once.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Decides which tools are drawn and what they answer.")] = 0,
    profile: Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how fast calls are answered, beside merely validating and encoding the same, and what episodes cost.

    Example: paraagent bench env --json
    """
    from rich.console import Console

    from paraagent.cli.current import require_catalog
    from paraagent.toolenv.bench import bench_env
    from pipelines.home import Home

    path = require_catalog(Home.locate(), profile)
    measured = bench_env(path, path.parent / "index", tools, episodes, seed, _Lines(Console(stderr=True)))
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    _show_env(measured, Console())


@app.command()
def laws(
    tools: Annotated[int, typer.Option(min=0, help="Tools drawn from the catalog; 0 means all of them.")] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="Worlds in which each of them is played.")] = 3,
    seed: Annotated[int, typer.Option(help="Decides which tools and which worlds.")] = 0,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0 means one a core.")] = 0,
    profile: Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check the eight laws of the simulated world on tools of the catalog; fails where one is broken.

    Tools are drawn with those of the same service that are about the same kind of thing. docs/world.md says what the
    laws are.

    Example: paraagent bench laws --tools 500
    """
    import os

    from rich.console import Console

    from paraagent.cli.current import require_catalog
    from paraagent.cli.run import display
    from paraagent.toolenv.laws.census import take_census
    from pipelines.home import Home

    path = require_catalog(Home.locate(), profile)
    progress, shown = display()
    with shown:
        taken = take_census(path, tools, seeds, seed, processes or os.cpu_count() or 1, progress)
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(taken, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _show_laws(taken, Console())
    if any(law["violations"] for law in taken["laws"].values()):
        raise typer.Exit(1)


_SHOWN = 5
"""Violations of each law that are printed."""


app.command()(tasks)
app.command()(parallel)
app.command()(rollout)


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


def _show_env(measured: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"ToolEnv, {measured['tools']:,} tools, one core", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    rows = [
        ("warm calls a second", f"{measured['calls_per_second']:,}"),
        ("validating and encoding alone", f"{measured['floor_calls_per_second']:,}"),
        ("ratio", f"{measured['ratio']:.2f}"),
        ("a warm call, median", f"{measured['p50_ms']:.3f} ms"),
        ("a warm call, 99th percentile", f"{measured['p99_ms']:.2f} ms"),
        ("first call of a tool, median", f"{measured['cold_p50_ms']:.2f} ms"),
        ("first call of a tool, 99th percentile", f"{measured['cold_p99_ms']:.1f} ms"),
        (f"memory of {measured['episodes']:,} episodes at once", f"{measured['episodes_rss_bytes'] / 1e6:.0f} MB"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)


def _show_laws(taken: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(
        title=f"{taken['tools']:,} tools in {taken['families']:,} families, {taken['seeds']} worlds each",
        title_justify="left",
        box=None,
    )
    for column in ("law", "", "tools", "checks", "violations"):
        table.add_column(column, justify="left" if column in ("law", "") else "right", no_wrap=True)
    for number, law in taken["laws"].items():
        table.add_row(number, law["law"], f"{law['tools']:,}", f"{law['checks']:,}", f"{len(law['violations']):,}")
    console.print(table)
    for reason, count in taken["outside"].items():
        console.print(f"{count:,} tools: {reason}", highlight=False)
    for number, law in taken["laws"].items():
        for each in law["violations"][:_SHOWN]:
            console.print(
                f"law {number}, {each['tool']}: {each['seen']}", soft_wrap=True, highlight=False, markup=False
            )


def _show_search(measured: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    for title, part in (("the whole catalog", measured), ("the benchmark's APIs alone", measured["alone"])):
        table = Table(
            title=f"{part['queries']} requests, {part['tools']:,} tools: {title}", title_justify="left", box=None
        )
        for column in ("", "search", "95 % interval", "bm25s", "difference", "95 % interval"):
            table.add_column(column, justify="left" if not column else "right", no_wrap=True)
        for metric, (mean, low, high) in part["intervals"].items():
            more, least, most = part["difference"][metric]
            row = (f"{mean:.3f}", f"{low:.3f} – {high:.3f}", f"{part['baseline'][metric]:.3f}")
            table.add_row(metric, *row, f"{more:+.3f}", f"{least:+.3f} … {most:+.3f}")
        table.add_row()
        table.add_row("recall@5 by file")
        for group, row in part["groups"].items():
            gain = row["recall@5"] - row["baseline"]
            table.add_row(f"  {group}", f"{row['recall@5']:.3f}", "", f"{row['baseline']:.3f}", f"{gain:+.3f}")
        console.print(table)
        console.print()
    table = Table("slots in one call", "p50", "p99", title="Speed on one core", title_justify="left", box=None)
    for width, p50 in measured["p50_ms"].items():
        table.add_row(width, f"{p50:.1f} ms", f"{measured['p99_ms'][width]:.1f} ms")
    console.print(table)
    console.print(
        f"loads in {measured['load_seconds']:.2f} s, {measured['slots_per_second']:,.0f} slots a second,"
        f" {measured['rss_bytes'] / 1e6:.0f} MB resident, of which further processes share"
        f" {measured['shared_bytes'] / 1e6:.0f} MB",
        highlight=False,
    )


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
