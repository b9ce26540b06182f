"""Survey: what a home holds, what in it nothing current refers to, and what a profile still lacks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraagent.config import Profile
from pipelines.home import Home
from pipelines.manifest import MANIFEST, Damage, read_attempts, read_manifest, verify
from pipelines.plan import Planner, Request
from pipelines.record import read_records
from pipelines.registry import STAGES
from pipelines.stage import Stage


@dataclass(frozen=True)
class StageState:
    """Where one stage of a profile stands."""

    stage: str
    fingerprint: str
    state: str
    """ready | damaged | unfinished | missing; `outdated` where only an artifact of other settings is there."""
    path: Path
    rows: dict[str, int]
    size: int
    seconds: float
    finished: str
    note: str

    def summary(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path)}


@dataclass(frozen=True)
class Leftover:
    """A directory that nothing current refers to."""

    path: Path
    size: int


def stage_states(profile: Profile, home: Home, stages: Mapping[str, Stage] = STAGES) -> list[StageState]:
    """The state of every stage, from manifests and file sizes; checksums are compared when a run reads an artifact."""
    planner = Planner(Request(profile), home, stages)
    return [_state(name, planner) for name in planner.selected]


def _state(name: str, planner: Planner) -> StageState:
    fingerprint = planner.identity(name)[0]
    path = planner.directory(name)
    state, note = "missing", ""
    try:
        manifest = read_manifest(path)
        if manifest is not None:
            verify(path, manifest, checksums=False)
            state = "ready"
        elif path.is_dir():
            attempts, seconds = read_attempts(path)
            state, note = "unfinished", f"{attempts} attempts, {seconds:.0f} s so far; the next run goes on from there"
        elif planner.home.current_artifact(planner.request.profile.name, name):
            state, note = "outdated", "settings, code or inputs changed since it was built"
    except Damage as damage:
        manifest, state, note = None, "damaged", f"{damage}; the next run rebuilds it"
    return StageState(
        stage=name,
        fingerprint=fingerprint,
        state=state,
        path=path,
        rows=manifest.rows if manifest else {},
        size=manifest.size if manifest else directory_size(path),
        seconds=manifest.seconds if manifest else 0.0,
        finished=manifest.finished if manifest else "",
        note=note,
    )


def leftovers(home: Home) -> list[Leftover]:
    """Artifact directories that neither `current.json` nor an unfinished run refers to, sorted by path."""
    kept = {home.artifact(stage, mark) for stages in home.current().values() for stage, mark in stages.items()}
    kept |= _wanted_by_unfinished_runs(home)
    found = [path for path in sorted(home.artifacts.glob("*/*")) if path.is_dir() and path not in kept]
    return [Leftover(path, directory_size(path)) for path in found]


def remove(leftover: Leftover) -> bool:
    """Remove one directory under its lock; False where another run is at work on it. The manifest goes first, so that
    what a kill leaves behind never looks complete."""
    from filelock import FileLock, Timeout

    mark = leftover.path.name.removesuffix(".new").removesuffix(".old")
    lock = FileLock(leftover.path.with_name(f"{mark}.lock"))
    try:
        with lock.acquire(timeout=0):
            (leftover.path / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(leftover.path)
    except Timeout:
        return False
    return True


def directory_size(path: Path) -> int:
    """Bytes of all files below `path`; links count nothing."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def _wanted_by_unfinished_runs(home: Home) -> set[Path]:
    """What the last run of each profile was at work on when it was cut short: the same command goes on there."""
    last = {record["profile"]["name"]: record for record in read_records(home)}
    wanted: set[Path] = set()
    for record in last.values():
        if record["state"] != "completed":
            for stage, fingerprint in record.get("planned", {}).items():
                path = home.artifact(stage, fingerprint)
                wanted |= {path, path.with_name(f"{fingerprint}.new")}
    return wanted
