"""`paraagent run`: plan first, and start Prefect only where something must be built."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paraagent.errors import InterruptedRunError

if TYPE_CHECKING:
    from paraagent.progress import Progress
    from pipelines.runner import Outcome, Runner


def run(
    context: typer.Context,
    profile: Annotated[str, typer.Option(help="A built-in profile or a TOML file.")] = "quick",
    stage: Annotated[list[str] | None, typer.Option(help="Run this stage alone; may be repeated.")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="Run this stage and all after it.")] = None,
    force: Annotated[list[str] | None, typer.Option(help="Build this stage again, and what depends on it.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change one setting: sft.learning_rate=1e-4.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as one JSON document.")] = False,
) -> None:
    """Run the pipeline, building only what is missing, unfinished or out of date.

    Example: paraagent run --profile smoke --set sft.epochs=2
    """
    from pipelines.home import Home
    from pipelines.plan import Request
    from pipelines.runner import Runner
    from pipelines.settings import load_profile, profile_file

    started, debug = time.monotonic(), bool(context.find_root().params.get("debug"))
    settings = load_profile(profile, set_ or [])
    request = Request(settings, tuple(stage or ()), from_, tuple(force or ()), profile_file(profile))
    home = Home.locate()
    progress, shown = display()
    with shown:
        runner = Runner(request, home, progress)
        try:
            with terminated_is_interrupted() as heard:
                outcomes = runner.run() if runner.nothing_to_do else _in_prefect(runner, profile, set_ or [], debug)
        except (KeyboardInterrupt, Exception) as error:
            if not (heard or isinstance(error, KeyboardInterrupt)):
                raise
            # Libraries pass the interrupt on to this thread while they close; it has been heard.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            where = f" in {runner.now.stage.name}" if runner.now else ""
            raise InterruptedRunError(
                f"Interrupted{where}: what is finished is kept, and the same command goes on where it stopped"
            ) from error
    if json:
        _print_json(runner.record.run, outcomes, time.monotonic() - started)
    else:
        _print_end(outcomes, time.monotonic() - started)


def _in_prefect(runner: Runner, profile: str, overrides: list[str], debug: bool) -> list[Outcome]:
    """Run as a flow: on the server of $PREFECT_API_URL or of `paraagent up`, else on one that ends with this run."""
    from flows.environment import prepare
    from flows.server import running_url

    runner.planner.check_inputs()
    with runner.home.writable():
        runner.home.check_room()
        prepare(runner.home.root, running_url(runner.home), debug=debug)
    from flows.local import run_flow

    return run_flow(runner, profile, overrides)


@contextmanager
def terminated_is_interrupted() -> Iterator[list[int]]:
    """Treat SIGTERM as Ctrl-C, so that a stopped job leaves its run in order too.

    Gives the list of what was heard: where the whole process group is stopped, workers and the run's own Prefect server
    go as well, and what fails without them is part of the interrupt, whichever of the two is noticed first.
    """
    heard: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, interrupt)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored on purpose
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def display() -> tuple[Progress, AbstractContextManager[Any]]:
    """Bars on a terminal, plain lines elsewhere."""
    from pipelines.progress import Bar, Lines, to_stderr

    if sys.stderr.isatty():
        bar = Bar()
        return bar, bar
    return Lines(to_stderr), nullcontext()


def _print_json(run_id: str, outcomes: list[Outcome], seconds: float) -> None:
    import orjson

    document = {"run": run_id, "seconds": round(seconds, 3), "stages": [outcome.summary() for outcome in outcomes]}
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def _print_end(outcomes: list[Outcome], seconds: float) -> None:
    """Counts, and where to look."""
    from pipelines.progress import seconds_text

    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.action] = counts.get(outcome.action, 0) + 1
    done = ", ".join(f"{count} {action}" for action, count in counts.items())
    evaluation = next((outcome.path for outcome in outcomes if outcome.step.stage.name == "evaluate"), None)
    if evaluation:
        _print_success(evaluation)
    last = outcomes[-1]
    page = last.path / "report.html"
    where = f"open {page}" if page.exists() else f"the artifact of {last.step.stage.name} is {last.path}"
    print(f"Done in {seconds_text(seconds)}: {done}; {where}", file=sys.stderr)


def _print_success(evaluation: Path) -> None:
    import orjson
    from rich.console import Console

    from paraagent.report import summary_table

    console = Console(stderr=True)
    console.print()
    console.print(summary_table(orjson.loads((evaluation / "summary.json").read_bytes())))
    console.print()
