"""The command line `paraagent`. Commands are imported when they run, so that `--help` answers at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from paraagent.cli.lazy import Entry, LazyGroup

__all__ = ["app"]


class _Commands(LazyGroup):
    entries: ClassVar[dict[str, Entry]] = {
        "run": Entry("paraagent.cli.run", "run", "Run the pipeline, building only what is missing."),
        "status": Entry("paraagent.cli.status", "status", "Say what is built, unfinished or missing."),
        "doctor": Entry("paraagent.cli.doctor", "doctor", "Say what this machine can run, and what is missing."),
        "clean": Entry("paraagent.cli.clean", "clean", "Remove artifacts that nothing current refers to."),
        "catalog": Entry("paraagent.cli.catalog", "app", "Build, search and show the catalog of tools."),
        "sql": Entry("paraagent.cli.sql", "sql", "Query catalog, demos, episodes and scores with SQL."),
        "tasks": Entry("paraagent.cli.tasks", "app", "List and show the synthesised tasks."),
        "act": Entry("paraagent.cli.act", "act", "Let an agent do what you ask for, with simulated or real tools."),
        "trace": Entry("paraagent.cli.trace", "trace", "Show what an agent did: here, or as a page."),
        "env": Entry("paraagent.cli.env", "app", "Play tasks turn by turn."),
        "eval": Entry("paraagent.cli.eval", "evaluate", "Run any model on held-out tasks, under any paradigm."),
        "report": Entry("paraagent.cli.report", "report", "Say where the report is, or build it."),
        "bench": Entry("paraagent.cli.bench", "app", "Measure speed and memory of the parts."),
        "up": Entry("paraagent.cli.server", "up", "Start the Prefect server, pools, deployments and workers here."),
        "down": Entry("paraagent.cli.server", "down", "Stop what `up` started."),
    }


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def root(
    home: Annotated[
        str | None, typer.Option(help="Directory of artifacts and downloads; else $PARAAGENT_HOME, else .paraagent.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """An agent that finds and calls tools among tens of thousands, several at a time, and the pipeline that trains it.

    Start with: paraagent run --profile smoke
    """
    if home is not None:
        from paraagent.errors import UsageError

        if not home.strip():
            raise UsageError("--home names no directory: give a path, or leave the option out to use .paraagent here")
        os.environ["PARAAGENT_HOME"] = str(Path(home).expanduser().absolute())
