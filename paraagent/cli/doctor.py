"""`paraagent doctor`: what this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def doctor(json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """Look at Python, packages, memory, disk, GPU, npm, browser, downloads and server; exit 1 where a run would fail.

    Example: paraagent doctor
    """
    import orjson

    from flows.server import running_url
    from pipelines.diagnosis import diagnose, has_gap
    from pipelines.home import Home

    home = Home.locate()
    findings = diagnose(home, running_url(home))
    if json:
        document = {finding.what: finding._asdict() for finding in findings}
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        for finding in findings:
            mark = {"ok": "ok     ", "note": "note   ", "missing": "MISSING"}[finding.verdict]
            advice = f": {finding.advice}" if finding.advice else ""
            print(f"{mark}  {finding.what:<15} {finding.detail}{advice}")
    if has_gap(findings):
        raise typer.Exit(1)
