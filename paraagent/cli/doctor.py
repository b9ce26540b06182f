"""`paraagent doctor`: what this machine can run, what is missing, and how to get it; or whether a profile adds up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pipelines.diagnosis import Finding
    from pipelines.profile_check import ProfileCheck


def doctor(
    profile: Annotated[
        str | None, typer.Option(help="Check this built-in profile or TOML file instead of the machine.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change one setting: sft.max_length=8192.")] = None,
    gpu_memory: Annotated[
        float | None, typer.Option(min=1, help="GiB of one GPU, not those of the largest that is here, or 80.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look at Python, packages, memory, disk, GPU, npm, browser, downloads and server; exit 1 where a run would fail.

    With --profile, count instead what its training takes (memory, batches, disk) and find settings that contradict each
    other, without the hardware; exit 1 where they do, or where it does not fit.

    Example: paraagent doctor --profile gpu --gpu-memory 80
    """
    import orjson

    from flows.server import running_url
    from paraagent.errors import UsageError
    from pipelines.diagnosis import diagnose, has_gap
    from pipelines.home import Home
    from pipelines.profile_check import check_profile
    from pipelines.settings import load_profile

    home = Home.locate()
    if profile:
        check = check_profile(load_profile(profile, set_ or []), home, gpu_memory)
        findings, document = check.findings, check.document()
    elif set_ or gpu_memory:
        raise UsageError("--set and --gpu-memory belong to --profile: name the profile to check")
    else:
        check, findings = None, diagnose(home, running_url(home))
        document = {finding.what: finding._asdict() for finding in findings}
    if json:
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        if check:
            _print_figures(check)
        _print_findings(findings)
    if has_gap(findings):
        raise typer.Exit(1)


def _print_findings(findings: list[Finding]) -> None:
    width = max(15, *(len(finding.what) for finding in findings))
    for finding in findings:
        mark = {"ok": "ok     ", "note": "note   ", "missing": "MISSING", "wrong": "WRONG  "}[finding.verdict]
        advice = f": {finding.advice}" if finding.advice else ""
        print(f"{mark}  {finding.what:<{width}} {finding.detail}{advice}")


def _print_figures(check: ProfileCheck) -> None:
    from rich.console import Console
    from rich.table import Table

    from pipelines.profile_check import gib_text

    console = Console(highlight=False)
    steps = Table(title=f"{check.profile}: what a step learns from", title_justify="left", box=None, pad_edge=False)
    for column in ("", "episodes", "micro-batch × passes × processes", "tokens at most", "steps", "trained parameters"):
        steps.add_column(column, justify="right" if column else "left")
    for work, batch in check.batches.items():
        steps.add_row(
            work,
            f"{batch.episodes:,}",
            f"{batch.micro_batch:,} × {batch.accumulation:,} × {batch.processes:,}",
            f"{batch.tokens:,}",
            f"{batch.steps:,} an epoch" if work == "fine-tuning" else f"{batch.steps:,}",
            f"{batch.trained:,}" if batch.trained else "",
        )
    console.print(steps)
    if check.memory:
        memory = Table(title="\nGiB on one GPU", title_justify="left", box=None, pad_edge=False)
        parts = next(iter(check.memory.values()))._fields
        for column in ("", *parts, "total"):
            memory.add_column(column, justify="right" if column else "left")
        for work, each in check.memory.items():
            memory.add_row(work, *(gib_text(size) for size in (*each, each.total)))
        console.print(memory)
    console.print()
