"""Record: `runs/<run>.json`, what a run was asked, what it did to every stage, and how it ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from paraagent.files import canonical_json, sha256_bytes, write_json
from pipelines.home import Home

if TYPE_CHECKING:
    from pipelines.plan import Planner, Request

State = Literal["running", "completed", "failed", "interrupted"]


@dataclass
class RunRecord:
    """One run; saved whenever something happened."""

    path: Path
    run: str
    key: str
    profile: dict[str, Any]
    planned: dict[str, str]
    """Stage -> fingerprint of everything that the run is to leave complete."""
    force: tuple[str, ...]
    started: str
    file: str = ""
    """The profile's TOML file; empty for a built-in one."""
    state: State = "running"
    finished: str | None = None
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    traceback: str | None = None

    @classmethod
    def begin(cls, home: Home, request: Request) -> RunRecord:
        """A new record; its file appears with the first `save`."""
        now = datetime.now(UTC)
        run = f"{now:%Y%m%dT%H%M%S%f}-{request.profile.name}-{os.getpid()}"
        return cls(
            path=home.runs / f"{run}.json",
            run=run,
            key=request_key(request),
            profile=request.profile.model_dump(mode="json"),
            planned={},
            force=request.force,
            started=now.isoformat(timespec="seconds"),
            file=request.file,
        )

    def add(self, outcome: dict[str, Any]) -> None:
        self.outcomes.append(outcome)
        self.save()

    def end(self, state: State, error: str | None = None, trace: str | None = None) -> None:
        self.state, self.error, self.traceback = state, error, trace
        self.finished = datetime.now(UTC).isoformat(timespec="seconds")
        self.save()

    def save(self) -> None:
        write_json(self.path, {key: value for key, value in vars(self).items() if key != "path"})


def request_key(request: Request) -> str:
    """Equal for equal requests: what "the same command" means."""
    return sha256_bytes(
        canonical_json([request.profile.model_dump(mode="json"), request.stages, request.from_stage, request.force])
    )


def read_records(home: Home) -> list[dict[str, Any]]:
    """All records, oldest first; one that cannot be read is left out: only a resumed `--force` needs it."""
    records = []
    for path in sorted(home.runs.glob("*.json")):
        try:
            record = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            continue
        if isinstance(record, dict) and isinstance(record.get("profile"), dict):
            records.append(record)
    return sorted(records, key=lambda record: str(record.get("started", "")))


def finished_before(home: Home, request: Request, planner: Planner) -> set[str]:
    """Forced stages that the same request already rebuilt before it was cut short: they are not forced twice."""
    if not request.force:
        return set()
    same = [record for record in read_records(home) if record.get("key") == request_key(request)]
    done: set[str] = set()
    for record in reversed(same):
        if record.get("state") == "completed":
            break
        done |= {
            outcome["stage"]
            for outcome in record.get("outcomes", [])
            if outcome["stage"] in planner.pending
            and outcome["action"] != "reused"
            and outcome["fingerprint"] == planner.identity(outcome["stage"])[0]
        }
    return done
