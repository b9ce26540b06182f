"""`paraagent status`: what is built, unfinished or missing for a profile."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pipelines.survey import StageState


def status(
    profile: Annotated[
        str | None, typer.Option(help="A built-in profile or a TOML file, not the one used last.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change one setting: sft.learning_rate=1e-4.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say for every stage whether its artifact is ready, unfinished, outdated, damaged or missing.

    Example: paraagent status --profile smoke
    """
    import orjson

    from flows.server import running_url
    from paraagent.cli.current import usual_profile
    from pipelines.home import Home
    from pipelines.record import read_records
    from pipelines.settings import load_profile
    from pipelines.survey import stage_states

    home = Home.locate()
    settings = load_profile(profile or usual_profile(home), set_ or [])
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
        table.add_column(
            column, justify="right" if column in ("size", "built in") else "left", no_wrap=column != "rows"
        )
    notes: dict[str, list[str]] = {}
    for state in states:
        table.add_row(
            f"{state.stage}@{state.fingerprint[:6]}",
            state.state,
            _rows(state),
            size_text(state.size) if state.size else "",
            seconds_text(state.seconds) if state.state == "ready" else "",
            state.finished[:16].replace("T", " "),
        )
        if state.note:
            notes.setdefault(state.note, []).append(state.stage)
    console = Console(highlight=False)
    console.print(table)
    for note, stages in notes.items():
        console.print(f"{', '.join(stages)}: {note}")
    if last:
        console.print(f"last run {last['run']}: {last['state']}" + (f" ({last['error']})" if last["error"] else ""))
    console.print(
        f"Prefect server: {server.removesuffix('/api') if server else 'not running (`paraagent up` starts it)'}"
    )


def _rows(state: StageState) -> str:
    """What the stage is for, counted: the data set that its first contract is about, else all that it counts."""
    from pipelines.registry import STAGES

    contracts = STAGES[state.stage].contracts
    main = contracts[0].suite if contracts else ""
    shown = {main: state.rows[main]} if main in state.rows else state.rows
    return ", ".join(f"{count:,} {name}" for name, count in shown.items())
