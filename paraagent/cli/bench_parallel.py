"""`paraagent bench parallel`: what acting and waiting together is worth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def parallel(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes that wait together.")] = 64,
    tasks: Annotated[int, typer.Option(min=2, help="Tasks on which the paces are compared.")] = 500,
    latency: Annotated[float, typer.Option(min=0.001, help="Seconds of a usual call.")] = 1.0,
    processes: Annotated[int, typer.Option(min=0, help="Processes that make tasks; 0 means one a core.")] = 0,
    profile: Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play episodes whose calls take time, all at once, beside the least that it could take; and the oracle with every
    ready call in one turn, with one action a turn, and with references within a turn.

    Example: paraagent bench parallel --tasks 100
    """
    import orjson
    from rich.console import Console

    from paraagent.catalog.store import Catalog
    from paraagent.cli.current import require_catalog
    from paraagent.cli.run import display
    from paraagent.config import MachineConfig
    from paraagent.evaluation.parallel import bench_parallel
    from paraagent.retrieval.index import ToolIndex
    from pipelines.catalog import processes as cores
    from pipelines.home import Home

    home = Home.locate()
    path = require_catalog(home, profile)
    progress, shown = display()
    with shown, Catalog.open(path) as catalog:
        index = ToolIndex.load(path.parent / "index", catalog)
        workers = processes or cores(MachineConfig())
        measured = bench_parallel(
            catalog, index, _transcriber(home, profile), episodes, tasks, latency, workers, progress
        )
    if json:
        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _show(measured, Console())


def _transcriber(home: Any, profile: str | None) -> Any:
    """Counts tokens as the home's base model does; None where there is none."""
    from paraagent.agents.language_model import load_tokenizer
    from paraagent.agents.transcript import Transcriber
    from paraagent.cli.current import require_artifact
    from paraagent.errors import RunError

    try:
        return Transcriber(load_tokenizer(require_artifact(home, profile, "model") / "model"))
    except RunError:
        return None


def _show(measured: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table("", "all vary", "few slow", title_justify="left", box=None, header_style="bold")
    table.title = (
        f"{measured['episodes']} episodes at once, {measured['calls']} calls of about {measured['usual_seconds']:g} s"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    slow = measured["few_slow"]
    for name, key in (
        ("all of it took", "makespan_seconds"),
        ("critical path", "critical_path_seconds"),
        ("in lockstep", "lockstep_seconds"),
        ("one call after another", "one_by_one_seconds"),
        ("most that an episode lost", "most_delayed_seconds"),
    ):
        table.add_row(name, f"{measured[key]:.2f} s", f"{slow[key]:.2f} s")
    table.add_row("ratio", f"{measured['ratio']:.3f}", f"{slow['ratio']:.3f}")
    console.print(table)
    console.print()
    for name, title, form in (
        ("turns", "turns an episode", "{:.2f}"),
        ("seconds", "seconds of waiting an episode", "{:.2f}"),
        ("tokens_read", "tokens read an episode", "{:,.0f}"),
    ):
        console.print(_paces(measured["paces"], name, title, form))
        console.print()


def _paces(rows: list[dict[str, Any]], name: str, title: str, form: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    table.add_column("shape")
    for column in ("tasks", "layers", "one a turn", "more", "95 % interval", "references", "more"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        single, referring = row["single"][name], row["references"][name]
        low, high = (form.format(end) for end in single["interval"])
        table.add_row(
            row["shape"],
            f"{row['tasks']}",
            form.format(row["layers"][name]["mean"]),
            form.format(single["mean"]),
            form.format(single["more"]),
            f"{low} … {high}",
            form.format(referring["mean"]),
            form.format(referring["more"]),
        )
    return table
