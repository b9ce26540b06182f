"""What a stage shows in the Prefect UI: counts and metrics, contract results, curves as images, and progress.

Keys are `<profile>-<stage>-…`, so that the UI keeps the history of one stage of one profile together.
"""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from paraagent.files import read_lines
from paraagent.progress import Progress
from pipelines.plan import Step
from pipelines.progress import Lines
from pipelines.runner import Outcome

UPDATE_SECONDS = 2.0
"""At most one update of a progress artifact in this time."""


def key(profile: str, stage: str, what: str) -> str:
    """An artifact key in the letters Prefect allows."""
    return re.sub(r"[^a-z0-9]+", "-", f"{profile}-{stage}-{what}".lower()).strip("-")


def publish(profile: str, outcome: Outcome) -> None:
    """Counts, metrics and curves of a complete artifact."""
    stage, manifest = outcome.step.stage.name, outcome.manifest
    about = {
        "artifact": outcome.step.label,
        "action": outcome.action,
        "seconds": manifest.seconds,
        "attempts": manifest.attempts,
        "files": len(manifest.files),
        "bytes": manifest.size,
    }
    rows = [
        *(("artifact", name, value) for name, value in about.items()),
        *(("rows", name, count) for name, count in manifest.rows.items()),
        *(("metrics", name, value) for name, value in _flat(manifest.metrics)),
    ]
    create_table_artifact(
        table=[{"group": group, "name": name, "value": value} for group, name, value in rows],
        key=key(profile, stage, "counts"),
        description=f"{outcome.step.stage.title}: `{outcome.path}`",
    )
    images = list(curves(outcome.path))
    if images:
        create_markdown_artifact(
            markdown="\n\n".join(f"### {title}\n\n![{title}]({data_uri(svg)})" for title, svg in images),
            key=key(profile, stage, "curves"),
            description=f"Curves and plots of {outcome.step.label}",
        )


def publish_contracts(profile: str, stage: str, directory: Path) -> None:
    """One table a contract, whether it holds or not: every expectation with its count of unexpected rows."""
    for path in sorted((directory / "contracts").glob("*.json")):
        document = orjson.loads(path.read_bytes())
        table = [
            {
                "holds": "yes" if entry["success"] else "NO",
                "expectation": entry["description"],
                "unexpected rows": (entry["result"] or {}).get("unexpected_count", ""),
                "severity": entry["severity"],
                "type": entry["type"],
            }
            for entry in document["results"]
        ]
        broken = sum(row["holds"] == "NO" for row in table)
        create_table_artifact(
            table=table,
            key=key(profile, stage, f"contract-{path.stem}"),
            description=f"Contract `{path.stem}`: {document['rows']} rows, {len(table)} expectations, {broken} broken",
        )


def curves(directory: Path) -> Iterator[tuple[str, str]]:
    """Title and SVG of the loss, the reward channels and the finished plots of an artifact."""
    from paraagent.report.plots import training, validation

    log = list(read_lines(directory / "log.jsonl"))
    if log:
        name, svg = training(log)
        yield {"sft-loss": "Loss by step", "rl-rewards": "Reward channels by update"}[name], svg
    if played := list(read_lines(directory / "validation.jsonl")):
        yield "Validation by step", validation(played)
    for path in sorted((directory / "plots").glob("*.svg")):
        title = path.stem.replace("_", " ").replace("-", " ").capitalize()
        yield re.sub(r"^(Sft|Rl)\b", lambda name: name[0].upper(), title), path.read_text("utf-8")


def data_uri(svg: str) -> str:
    """An image that needs no server: the UI shows Markdown, and Markdown shows this."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


class FlowProgress:
    """Says everything twice: on the screen of the run, if there is one, and in Prefect's log and progress artifact."""

    def __init__(
        self, profile: str, logger: logging.Logger | logging.LoggerAdapter[Any], screen: Progress | None
    ) -> None:
        self._profile = profile
        self._screen = screen
        self._lines = Lines(logger.info)
        self._label = ""
        self._stage = ""
        self._artifact: UUID | None = None
        self._total: int | None = None
        self._done = 0
        self._last = 0.0

    def begin(self, step: Step) -> None:
        """The stage whose counts come next."""
        self._stage, self._label, self._artifact = step.stage.name, step.label, None

    def message(self, text: str) -> None:
        self._lines.message(text)
        if self._screen:
            self._screen.message(text)

    def start(self, total: int | None, unit: str) -> None:
        self._lines.start(total, unit)
        if self._screen:
            self._screen.start(total, unit)
        self._total, self._done, self._last = total, 0, time.monotonic()
        self._artifact = None
        if total:
            created: Any = create_progress_artifact(
                progress=0.0, key=key(self._profile, self._stage, "progress"), description=f"{self._label}: {unit}"
            )
            self._artifact = created

    def advance(self, n: int = 1) -> None:
        self._lines.advance(n)
        if self._screen:
            self._screen.advance(n)
        self._done += n
        now = time.monotonic()
        finished = self._total is not None and self._done >= self._total
        if self._artifact and self._total and (finished or now - self._last >= UPDATE_SECONDS):
            self._last = now
            update_progress_artifact(self._artifact, progress=min(100.0, 100.0 * self._done / self._total))


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested metrics under dotted names."""
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item if isinstance(item, str | int | float) else orjson.dumps(item).decode()
