"""`paraagent report`: where the current report is, and the evaluation at a glance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def report(
    profile: Annotated[str | None, typer.Option(help="This profile's report, not the last run's.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser of this machine.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print path and figures as one JSON document.")] = False,
) -> None:
    """Print the evaluation and the path of the report that the profile's last run wrote.

    Example: paraagent report --profile smoke --open
    """
    import orjson

    from paraagent.cli.current import current_profile, require_artifact
    from paraagent.errors import RunError
    from pipelines.home import Home

    home = Home.locate()
    page = require_artifact(home, profile, "report") / "report.html"
    summary = _summary(require_artifact(home, profile, "evaluate") / "summary.json")
    if not page.is_file():
        raise RunError(f"{page} is gone: `paraagent run` builds it again")
    if json:
        document = {"report": str(page), "profile": current_profile(home, profile), **summary}
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


def _summary(path: Path) -> dict[str, Any]:
    """Raises `RunError` where the file is not what the stage wrote."""
    import orjson

    from paraagent.errors import RunError

    try:
        summary: dict[str, Any] = orjson.loads(path.read_bytes())
        summary["confidence"], summary["success"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunError(f"{path} is damaged: `paraagent run` builds it again") from error
    return summary
