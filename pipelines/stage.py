"""Stage: a small function plus its config, turned into a versioned, resumable artifact.

A stage module defines one `Stage`; `pipelines.registry` lists them in order. `build` writes files into `context.out`,
which may hold what an earlier, interrupted attempt left there, and returns counts and metrics for the manifest. It
never writes the manifest: the runner does, last, after the contracts hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from paraagent.config import Profile
from paraagent.files import append_lines, read_lines, write_lines
from paraagent.progress import Progress
from paraagent.seeds import derive

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Contract", "Progress", "Stage", "StageContext", "StageResult", "UnitLog", "batched"]

T = TypeVar("T")


@dataclass(frozen=True)
class StageContext:
    """Everything a stage may know."""

    profile: Profile
    out: Path
    """The artifact's directory: write here."""
    inputs: Mapping[str, Path]
    """Directories of the complete artifacts that this stage reads, by stage name."""
    downloads: Path
    """Cache of what came from the network, shared by all artifacts of the home."""
    fingerprint: str
    progress: Progress
    home: Path = field(default_factory=Path)

    def seed(self, stage: str) -> int:
        return derive(self.profile.seed, stage)


@dataclass(frozen=True)
class StageResult:
    """What goes into the manifest beside files, timings and versions."""

    rows: dict[str, int]
    """Counts by data set, e.g. `{"tools": 79099}`."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """JSON values that a person wants to see at once."""
    content: dict[str, str] = field(default_factory=dict)
    """A digest that stands for a file, by path, where equal content does not give equal bytes."""


@dataclass(frozen=True)
class Contract:
    """A data set that crosses a stage boundary and the suite in `data_contracts/<suite>.json` that it must satisfy."""

    suite: str
    frame: Callable[[Path], pd.DataFrame]
    """From the artifact's directory to the frame to check (Arrow-backed)."""


@dataclass(frozen=True)
class Stage:
    name: str
    version: int
    """Raise it when the code changes what the stage produces: old artifacts are then rebuilt."""
    title: str
    """What it does, for the line on screen."""
    build: Callable[[StageContext], StageResult]
    inputs: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    """Sections of the profile that decide the result."""
    contracts: tuple[Contract, ...] = ()
    external: Callable[[Profile, Path], dict[str, str]] | None = None
    """Content hashes of inputs from outside (files the user names), given the profile and the home."""
    off: Callable[[Profile], str] | None = None
    """Why a profile does without this stage, and what to set; empty where it is part of the run."""
    gpu: bool = False
    network: bool = False
    """Talks to the network, so it is retried in Prefect."""


class UnitLog:
    """Independent units of work in JSON Lines: finished ones in `<name>.jsonl`, failures in `<name>.failed.jsonl`.

    A unit is finished when its whole line is on disk; a torn last line is owed again. `close` rewrites the file in the
    order of the plan, so that the bytes do not depend on what finished first or on where a kill fell.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / f"{name}.jsonl"
        self.failed_path = directory / f"{name}.failed.jsonl"

    def finished(self) -> dict[str, Any]:
        """Rows by unit key."""
        return {key: row for key, (_, row) in self.scan(lambda row: row).items()}

    def owed(self, keys: Iterable[str]) -> list[str]:
        done = self.finished()
        return [key for key in keys if key not in done]

    def add(self, rows: Iterable[tuple[str, Any]]) -> None:
        append_lines(self.path, ({"unit": key, "row": row} for key, row in rows))

    def fail(self, key: str, error: str) -> None:
        """Record a failed attempt; the unit stays owed."""
        attempt = 1 + sum(row["unit"] == key for row in read_lines(self.failed_path))
        append_lines(self.failed_path, [{"unit": key, "attempt": attempt, "error": error}])

    def scan(self, pick: Callable[[Any], T]) -> dict[str, tuple[int, T]]:
        """Of each finished unit where its line begins, and what `pick` takes of its row."""
        found: dict[str, tuple[int, T]] = {}
        if not self.path.exists():
            return found
        offset = 0
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    read = orjson.loads(line)
                    found[read["unit"]] = offset, pick(read["row"])
                offset += len(line)
        return found

    def at(self, offsets: Iterable[int]) -> Iterator[Any]:
        """The rows whose lines begin at these offsets, one after another."""
        with self.path.open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                yield orjson.loads(file.readline())["row"]

    def close(self, keys: Iterable[str]) -> list[Any]:
        """Rewrite the file in the order of `keys` and return the rows; units without a row are left out."""
        done = self.finished()
        order = [key for key in keys if key in done]
        write_lines(self.path, ({"unit": key, "row": done[key]} for key in order))
        return [done[key] for key in order]


def batched(items: list[T], size: int) -> Iterator[list[T]]:
    """Consecutive slices of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
