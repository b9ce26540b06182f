"""`paraagent bench tasks`: what tasks are worth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def tasks(
    n: Annotated[int, typer.Option("-n", "--limit", min=1, help="Held-out tasks to make.")] = 2_000,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of which the bytes are compared.")] = 500,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0 means one a core.")] = 0,
    profile: Annotated[str | None, typer.Option(help="This profile's catalog, not the one used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Make held-out tasks of every shape; play them as the oracle, as baselines that must fail, and again elsewhere.

    Example: paraagent bench tasks -n 200 --episodes 50
    """
    import orjson
    from rich.console import Console

    from paraagent.catalog.store import Catalog
    from paraagent.cli.current import require_catalog
    from paraagent.cli.run import display
    from paraagent.config import EnvConfig, MachineConfig, TasksConfig
    from paraagent.retrieval.index import ToolIndex
    from paraagent.tasks.bench import bench_tasks
    from pipelines.catalog import processes as cores
    from pipelines.home import Home

    path = require_catalog(Home.locate(), profile)
    config, workers = TasksConfig(train=1, validation=1, test=n), processes or cores(MachineConfig())
    progress, shown = display()
    with shown, Catalog.open(path) as catalog:
        index = ToolIndex.load(path.parent / "index", catalog)
        measured = bench_tasks(catalog, index, config, EnvConfig(), workers, episodes, progress)
    if json:
        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _show(measured, Console())


def _show(measured: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"{measured['test']:,} held-out tasks", title_justify="left", show_header=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    table.add_row("made and verified in", f"{measured['seconds']:.1f} s", f"{measured['processes']} processes")
    table.add_row("different tools", f"{measured['tools']:,}")
    table.add_row("that change something", f"{measured['writing']:,}")
    table.add_row("with equivalent tools", f"{measured['with_equivalents']:,}")
    for title, entries in (("by shape", measured["shapes"]), ("by reach", measured["reaches"])):
        table.add_section()
        table.add_row(title)
        for name, count in entries.items():
            table.add_row(f"  {name}", f"{count:,}")
    table.add_row("solved by")
    for name, rate in measured["solved"].items():
        table.add_row(f"  {name}", f"{rate['solved']:,}", f"of {rate['played']:,}")
    table.add_row("rejected")
    for reason, count in measured["rejected"].items():
        table.add_row(f"  {reason}", f"{count:,}")
    same = measured["episodes"]
    table.add_row("episodes with the same bytes")
    for name, count in (("four", same["same_in_four_processes"]), ("shuffled", same["same_in_shuffled_order"])):
        what = "in four processes" if name == "four" else "in shuffled order"
        table.add_row(f"  {what}", f"{count:,}", f"of {same['played']:,}")
    console.print(table)
