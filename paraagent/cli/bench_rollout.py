"""`paraagent bench rollout`: how fast a local model writes the turns of episodes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def rollout(
    episodes: Annotated[int, typer.Option(min=1, help="Episodes that are written.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Episodes at once.")] = 16,
    model: Annotated[Path | None, typer.Option(help="Folder of another model than the base model.")] = None,
    profile: Annotated[str | None, typer.Option(help="This profile's artifacts, not those used last.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Let the model write turns as long as those of the demonstrations, beside plain `generate` at the same batch.

    Example: paraagent bench rollout --episodes 32
    """
    import orjson
    from rich.console import Console
    from rich.table import Table

    from paraagent.cli.current import require_artifact
    from paraagent.cli.run import display
    from paraagent.evaluation.decoding import bench_rollout
    from pipelines.home import Home

    home = Home.locate()
    demos = require_artifact(home, profile, "demos") / "demos.parquet"
    folder = model or require_artifact(home, profile, "model") / "model"
    progress, shown = display()
    with shown:
        measured = bench_rollout(folder, demos, episodes, batch, progress)
    if json:
        sys.stdout.write(orjson.dumps(measured, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    table = Table("", "local policy", "generate", title_justify="left", box=None, header_style="bold")
    table.title = f"{measured['episodes']} episodes, {batch} at once, {measured['tokens_written']:,} tokens written"
    for column in table.columns[1:]:
        column.justify = "right"
    for name, key, form in (("seconds", "seconds", "{:,.1f}"), ("tokens a second", "tokens_per_second", "{:,.0f}")):
        table.add_row(name, form.format(measured[key]), form.format(measured[f"baseline_{key}"]))
    table.add_row("ratio", f"{measured['ratio']:.2f}", "")
    Console().print(table)
