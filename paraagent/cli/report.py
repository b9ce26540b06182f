"""`paraagent report`: where the current report is, and the evaluation at a glance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pipelines.home import Home


def report(
    profile: Annotated[str, typer.Option(help="The profile whose report is meant.")] = "quick",
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser of this machine.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print path and figures as one JSON document.")] = False,
) -> None:
    """Print the evaluation and the path of the report that the profile's last run wrote.

    Example: paraagent report --profile smoke --open
    """
    import orjson

    from paraagent.errors import RunError
    from pipelines.home import Home

    home = Home.locate()
    page = _artifact(home, profile, "report") / "report.html"
    summary = _summary(_artifact(home, profile, "evaluate") / "summary.json", profile)
    if not page.is_file():
        raise RunError(f"{page} is gone: run `paraagent run --profile {profile}`, which builds it again")
    if json:
        document = {"report": str(page), "profile": profile, **summary}
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        from rich.console import Console

        from paraagent.report import summary_table

        console = Console()
        console.print(summary_table(summary))
        console.print(f"\n{page}", soft_wrap=True, highlight=False, markup=False)
    if open_:
        import webbrowser

        webbrowser.open(page.as_uri())


def _summary(path: Path, profile: str) -> dict[str, Any]:
    """Raises `RunError` where the file is not what the stage wrote."""
    import orjson

    from paraagent.errors import RunError

    try:
        summary: dict[str, Any] = orjson.loads(path.read_bytes())
        summary["confidence"], summary["success"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        advice = f"run `paraagent run --profile {profile}`, which builds it again"
        raise RunError(f"{path} is damaged: {advice}") from error
    return summary


def _artifact(home: Home, profile: str, stage: str) -> Path:
    """The current, complete artifact of a stage. Raises `RunError` where there is none."""
    from paraagent.errors import RunError
    from pipelines.manifest import MANIFEST
    from pipelines.settings import load_profile

    path = home.current_artifact(profile, stage)
    if path is None or not (path / MANIFEST).is_file():
        load_profile(profile)  # an unknown name has a sentence of its own
        others = sorted(name for name, stages in home.current().items() if "report" in stages and name != profile)
        hint = f", or name a profile that has one: {', '.join(others)}" if others else ""
        missing = f"There is no {stage} of the profile {profile} in {home.root}"
        raise RunError(f"{missing}: run `paraagent run --profile {profile}`{hint}")
    return path
