"""What the home holds now: the catalog that commands read, and the artifacts that SQL looks at."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from paraagent.errors import RunError, UsageError

if TYPE_CHECKING:
    from pipelines.home import Home


def current_profile(home: Home, named: str | None) -> str | None:
    """The profile meant: the one named, else the one that ran last, else any; None in an empty home.

    Raises:
        UsageError: nothing was ever built for the profile named.
    """
    from pipelines.record import read_records

    profiles = home.current()
    if named is None:
        ran = [record.get("profile", {}).get("name") for record in reversed(read_records(home))]
        return next((name for name in [*ran, *sorted(profiles)] if name in profiles), None)
    if named not in profiles:
        near = difflib.get_close_matches(named, profiles, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"run `paraagent run --profile {named}`"
        raise UsageError(f"Nothing was built for the profile {named} in {home.root}: {hint}")
    return named


def current_catalog(home: Home, named: str | None) -> Path | None:
    """The catalog of the profile named, else the one that was built or used last; None where there is none."""
    directory = home.current_artifact(named, "catalog") if current_profile(home, named) and named else None
    path = directory / "catalog.duckdb" if directory else home.catalog_path
    return path.resolve() if path.exists() else None


def require_catalog(home: Home, named: str | None) -> Path:
    """Like `current_catalog`. Raises `RunError` where there is none."""
    path = current_catalog(home, named)
    if path is None:
        raise RunError(f"There is no tool catalog in {home.root}: run `paraagent catalog build`")
    return path


def artifact_files(home: Home, named: str | None) -> dict[str, list[Path]]:
    """Files of the current artifacts by data set, as `sql/views.sql` calls them; those that exist."""
    profile = current_profile(home, named)
    if profile is None:
        return {}
    stages = ("tasks", "demos", "rl", "evaluate")
    found = {stage: path for stage in stages if (path := home.current_artifact(profile, stage)) is not None}
    patterns = {
        "tasks": [("tasks", "tasks.jsonl")],
        "demos": [("demos", "demos.parquet")],
        "episodes": [("demos", "episodes.jsonl"), ("rl", "episodes.jsonl"), ("evaluate", "episodes/*.jsonl")],
        "scores": [("evaluate", "scores.parquet")],
    }
    return {
        name: [
            path
            for stage, pattern in places
            if stage in found
            for path in sorted(found[stage].glob(pattern))
            if not path.name.endswith(".failed.jsonl") and path.stat().st_size
        ]
        for name, places in patterns.items()
    }
