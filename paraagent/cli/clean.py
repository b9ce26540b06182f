"""`paraagent clean`: give back the space of artifacts that nothing current refers to."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Remove artifacts that nothing current refers to; downloads stay, and so does what another run is at work on.

    Example: paraagent clean --dry-run
    """
    import orjson

    from pipelines.home import Home
    from pipelines.progress import size_text
    from pipelines.survey import leftovers, remove

    home = Home.locate()
    found = leftovers(home)
    removed = found
    if found and not dry_run:
        with home.writable():
            removed = [leftover for leftover in found if remove(leftover)]
    locked = [leftover for leftover in found if leftover not in removed]
    freed = sum(leftover.size for leftover in removed)
    if json:
        document = {
            "dry_run": dry_run,
            "freed_bytes": freed,
            "removed": [str(leftover.path) for leftover in removed],
            "locked": [str(leftover.path) for leftover in locked],
        }
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    for leftover in removed:
        print(f"{leftover.path.relative_to(home.root)}  {size_text(leftover.size)}")
    for leftover in locked:
        print(f"{leftover.path.relative_to(home.root)}  kept: a run is at work on it")
    if not removed:
        print(f"Nothing to remove in {home.root}")
    else:
        print(f"{'Would free' if dry_run else 'Freed'} {size_text(freed)} in {len(removed)} artifacts")
