"""Manifest: the file that makes a directory an artifact. Written last, in one step; without it nothing is finished.

It lists every file with size and SHA-256, so that damage is noticed before anything is built on it, and says what the
artifact was made from, with which versions and seeds, and how long it took. Times and machine facts stand here only:
`digest` covers the content alone, so equal content has an equal digest.
"""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from paraagent.files import canonical_json, sha256_bytes, sha256_file, write_json

MANIFEST = "manifest.json"
UNFINISHED = "unfinished.json"
"""Attempts and seconds of a build that is under way; gone once the manifest is written."""

_PACKAGES = (
    *(
        "paraagent",
        "duckdb",
        "polars",
        "orjson",
        "jsonschema-rs",
        "bm25s",
        "numpy",
        "torch",
        "transformers",
        "trl",
        "datasets",
    ),
    *("great-expectations", "prefect", "pydantic"),
)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Record):
    path: str
    """Relative to the artifact, with forward slashes."""
    size: int
    sha256: str


class InputEntry(_Record):
    fingerprint: str
    digest: str
    """Content of the input when it was read: a rebuilt input with other content makes this artifact stale."""


class ContractEntry(_Record):
    suite: str
    success: bool
    rows: int
    expectations: int


class Manifest(_Record):
    stage: str
    version: int
    fingerprint: str
    profile: str
    seed: int
    config: dict[str, Any]
    inputs: dict[str, InputEntry]
    external: dict[str, str]
    files: list[FileEntry]
    content: dict[str, str] = {}
    """What stands for a file's bytes in the digest, by path: a database of equal tables differs in unused bytes."""
    rows: dict[str, int]
    metrics: dict[str, Any]
    contracts: list[ContractEntry]
    run: str
    """Id of the run that wrote it: `runs/<run>.json`."""
    started: str
    finished: str
    attempts: int
    seconds: float
    """Of all attempts that ended in an orderly way."""
    peak_rss_bytes: int
    versions: dict[str, str]
    machine: dict[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over what every file holds: the identity of the content."""
        return sha256_bytes(
            canonical_json([[entry.path, self.content.get(entry.path, entry.sha256)] for entry in self.files])
        )

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)


class Damage(Exception):  # noqa: N818 - a finding that is caught and reported, not a failure of the program
    """The directory has a manifest, but its content is not what the manifest says; the message says how."""


def list_files(directory: Path) -> list[FileEntry]:
    """Every file of an artifact except the manifest and hidden leftovers, sorted by path; hashed on all cores."""
    paths = sorted(
        path
        for path in directory.rglob("*")
        if path.is_file()
        and path.relative_to(directory).as_posix() not in (MANIFEST, UNFINISHED)
        and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = list(pool.map(sha256_file, paths))
    return [
        FileEntry(path=path.relative_to(directory).as_posix(), size=path.stat().st_size, sha256=checksum)
        for path, checksum in zip(paths, sums, strict=True)
    ]


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Complete the artifact: the manifest appears in one step, then the note of the attempts goes."""
    write_json(directory / MANIFEST, manifest.model_dump())
    (directory / UNFINISHED).unlink(missing_ok=True)


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest, or None for a directory that is missing or unfinished.

    Raises:
        Damage: there is one, but it cannot be read.
    """
    try:
        return Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValidationError, UnicodeDecodeError) as error:
        raise Damage(f"{MANIFEST} cannot be read") from error


def verify(directory: Path, manifest: Manifest, *, checksums: bool = True) -> None:
    """Compare the files with the manifest: presence and size first, then every checksum.

    Raises:
        Damage: names the first file that differs.
    """
    for entry in manifest.files:
        path = directory / entry.path
        if not path.is_file():
            raise Damage(f"{entry.path} is missing")
        if path.stat().st_size != entry.size:
            raise Damage(f"{entry.path} has {path.stat().st_size} bytes instead of {entry.size}")
    if not checksums:
        return
    largest_first = sorted(manifest.files, key=lambda entry: -entry.size)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sums = dict(
            zip(
                [entry.path for entry in largest_first],
                pool.map(lambda entry: sha256_file(directory / entry.path), largest_first),
                strict=True,
            )
        )
    for entry in manifest.files:
        if sums[entry.path] != entry.sha256:
            raise Damage(f"{entry.path} differs from its checksum")


def read_attempts(directory: Path) -> tuple[int, float]:
    """Attempts so far and their seconds, from the note in an unfinished directory."""
    try:
        note = orjson.loads((directory / UNFINISHED).read_bytes())
        return int(note["attempts"]), float(note["seconds"])
    except (FileNotFoundError, NotADirectoryError, KeyError, TypeError, ValueError):
        return 0, 0.0


def write_attempts(directory: Path, attempts: int, seconds: float) -> None:
    write_json(directory / UNFINISHED, {"attempts": attempts, "seconds": round(seconds, 3)})


def versions() -> dict[str, str]:
    """Python and the packages that can decide a result; read from metadata, so nothing heavy is imported."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What bit identity depends on beside the versions."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }
