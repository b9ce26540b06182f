"""`paraagent status`: what is built, unfinished or missing for a profile."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def status(
    profile: Annotated[str, typer.Option(help="A built-in profile or a TOML file.")] = "quick",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change one setting: sft.learning_rate=1e-4.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say for every stage whether its artifact is ready, unfinished, outdated, damaged or missing.

    Example: paraagent status --profile smoke
    """
    import orjson

    from flows.server import running_url
    from pipelines.home import Home
    from pipelines.record import read_records
    from pipelines.settings import load_profile
    from pipelines.survey import stage_states

    home = Home.locate()
    settings = load_profile(profile, set_ or [])
    states = stage_states(settings, home)
    runs = [record for record in read_records(home) if record["profile"]["name"] == settings.name]
    last = {key: runs[-1][key] for key in ("run", "state", "started", "finished", "error")} if runs else None
    server = running_url(home)
    if json:
        document = {
            "home": str(home.root),
            "profile": settings.name,
            "stages": [state.summary() for state in states],
            "last_run": last,
            "server": server,
        }
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        return

    from rich.console import Console
    from rich.table import Table

    from pipelines.progress import seconds_text, size_text

    table = Table(title=f"{settings.name} in {home.root}", title_justify="left", box=None, pad_edge=False)
    for column in ("stage", "state", "rows", "size", "built in", "finished (UTC)"):
        table.add_column(column, justify="right" if column in ("size", "built in") else "left")
    for state in states:
        rows = ", ".join(f"{count:,} {name}" for name, count in state.rows.items())
        ready = state.state == "ready"
        table.add_row(
            f"{state.stage}@{state.fingerprint[:6]}",
            state.state,
            rows or state.note,
            size_text(state.size) if state.size else "",
            seconds_text(state.seconds) if ready else "",
            state.finished[:19].replace("T", " "),
        )
    console = Console(highlight=False)
    console.print(table)
    if last:
        console.print(f"last run {last['run']}: {last['state']}" + (f" ({last['error']})" if last["error"] else ""))
    console.print(
        f"Prefect server: {server.removesuffix('/api') if server else 'not running (`paraagent up` starts it)'}"
    )
