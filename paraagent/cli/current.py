"""What the home holds now: the catalog that commands read, and the artifacts that SQL looks at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from paraagent.errors import RunError, UsageError

if TYPE_CHECKING:
    from paraagent.config import Profile
    from paraagent.task import Task
    from pipelines.home import Home


def usual_profile(home: Home) -> str:
    """The profile that ran last, by name or TOML file, else `quick`: what to take where nobody names one.

    Raises:
        UsageError: it was a TOML file, which is not there any more.
    """
    from pipelines.record import read_records
    from pipelines.settings import profile_names

    last = current_profile(home, None)
    if last is None:
        return "quick"
    runs = [record for record in read_records(home) if record["profile"].get("name") == last]
    file = str(runs[-1].get("file") or "") if runs else ""
    if file and Path(file).is_file():
        return file
    if not file and last in profile_names():
        return last
    gone = f"its file {file} is gone" if file else "where its file lies is not known"
    raise UsageError(f"The profile used last is {last}, but {gone}: name one with --profile")


def current_profile(home: Home, named: str | None) -> str | None:
    """The profile meant: the one named (or its TOML file), else the one that ran last, else any; None in an empty home.

    Raises:
        UsageError: there is no such profile.
        RunError: nothing was built for it yet.
    """
    from pipelines.record import read_records
    from pipelines.settings import load_profile, profile_name

    profiles = home.current()
    if named is None:
        ran = [record.get("profile", {}).get("name") for record in reversed(read_records(home))]
        return next((name for name in [*ran, *sorted(profiles)] if name in profiles), None)
    given, named = named, profile_name(named)
    if named not in profiles:
        load_profile(given)  # a name that no profile has gets its own sentence
        others = f" (built are {', '.join(sorted(profiles))})" if profiles else ""
        raise RunError(
            f"Nothing was built for the profile {named} in {home.root}{others}: run `paraagent run --profile {given}`"
        )
    return named


def require_artifact(home: Home, named: str | None, stage: str) -> Path:
    """The complete artifact of a stage, of the profile that `current_profile` finds.

    Raises:
        UsageError: there is no such profile.
        RunError: the stage was not built for it yet.
    """
    from pipelines.manifest import MANIFEST

    profile = current_profile(home, named)
    if profile is None:
        raise RunError(f"Nothing was built in {home.root}: run `paraagent run`")
    path = home.current_artifact(profile, stage)
    if path is None or not (path / MANIFEST).is_file():
        raise RunError(
            f"There is no {stage} of the profile {profile} in {home.root}: run `paraagent run --profile"
            f" {named or profile}`"
        )
    return path


def current_catalog(home: Home, named: str | None) -> Path | None:
    """The catalog of the profile named, else the one that was built or used last; None where there is none."""
    profile = current_profile(home, named) if named else None
    directory = home.current_artifact(profile, "catalog") if profile else None
    path = directory / "catalog.duckdb" if directory else home.catalog_path
    return path.resolve() if path.exists() else None


def require_catalog(home: Home, named: str | None) -> Path:
    """Like `current_catalog`. Raises `RunError` where there is none."""
    path = current_catalog(home, named)
    if path is None:
        raise RunError(f"There is no tool catalog in {home.root}: run `paraagent catalog build`")
    return path


def current_tasks(named: str | None) -> Iterator[Task]:
    """The tasks of the profile named, else of the one that ran last.

    Raises:
        UsageError: there is no such profile.
        RunError: it has no tasks yet, or their file is damaged.
    """
    from paraagent.files import read_lines
    from paraagent.task import Task
    from pipelines.home import Home

    path = require_artifact(Home.locate(), named, "tasks") / "tasks.jsonl"
    try:
        for row in read_lines(path):
            yield Task.model_validate(row)
    except ValueError as error:
        raise RunError(f"{path} is damaged: `paraagent run` builds it again") from error


def find_task(task_id: str, named: str | None) -> Task:
    """One of them. Raises as `current_tasks` does, and `UsageError` where there is no such task."""
    from difflib import SequenceMatcher

    tasks = {task.task_id: task for task in current_tasks(named)}
    if task_id not in tasks:
        alike = {each: SequenceMatcher(None, task_id, each).ratio() for each in tasks}
        near = sorted((each for each in alike if alike[each] > 0.6), key=lambda each: (-alike[each], each))[:3]
        hint = f"did you mean {' or '.join(near)}?" if near else "`paraagent tasks list` shows them"
        raise UsageError(f"There is no task {task_id}: {hint}")
    return tasks[task_id]


def made_with(home: Home, profile: str | None, overrides: list[str]) -> tuple[Profile, Path]:
    """The settings that the tasks were made with, changed as the line says, and the catalog that they are about.

    Raises:
        UsageError: a setting that is none.
        RunError: the tasks or their catalog are not there any more.
    """
    from pydantic import ValidationError

    from paraagent.config import EnvConfig, Profile
    from pipelines.manifest import MANIFEST, Damage, read_manifest
    from pipelines.settings import with_settings

    tasks = require_artifact(home, profile, "tasks")
    try:
        manifest = read_manifest(tasks)
        if manifest is None:
            raise Damage(f"{MANIFEST} is missing")
        made = Profile(name=manifest.profile, env=EnvConfig.model_validate(manifest.config["env"]))
        catalog = home.artifact("catalog", manifest.inputs["catalog"].fingerprint)
    except (Damage, ValidationError, KeyError) as error:
        raise RunError(f"{tasks} is damaged or was made by another version: `paraagent run` builds it again") from error
    if not (catalog / MANIFEST).is_file():
        raise RunError(f"The catalog that the tasks are about is gone from {catalog}: `paraagent run` builds it again")
    return with_settings(made, overrides), catalog


def trace_files(home: Home, named: str | None) -> list[Path]:
    """The files with episodes: of the current artifacts, of `paraagent act` and of `paraagent eval`, as far as there
    are any."""
    return artifact_files(home, named).get("episodes", [])


def artifact_files(home: Home, named: str | None) -> dict[str, list[Path]]:
    """Files of the current artifacts by data set, as `sql/views.sql` calls them; those that exist."""
    profile = current_profile(home, named)
    stages = ("tasks", "demos", "rl", "evaluate")
    found = {"home": home.root}
    for stage in stages if profile else ():
        if path := home.current_artifact(profile or "", stage):
            found[stage] = path
    patterns = {
        "tasks": [("tasks", "tasks.jsonl")],
        "demos": [("demos", "demos.parquet"), ("demos", "validation.parquet")],
        "episodes": [
            *(("home", "act/*.jsonl"), ("home", "eval/*/*.jsonl")),
            *(("demos", "episodes.jsonl"), ("rl", "episodes.jsonl"), ("evaluate", "episodes/*.jsonl")),
        ],
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
