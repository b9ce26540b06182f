"""Fetching: every source as something that lies here, whole, with a checksum.

Packages come through pip and npm. A file of a person's own stays where it is; an address or a server is read once
into the downloads, and what was read then counts until it is read again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from paraagent.catalog.packages import cached, download, verified
from paraagent.catalog.spec import Spec, own_source
from paraagent.errors import RunError
from paraagent.progress import Progress


class Archive(NamedTuple):
    """A source that is here, whole and verified."""

    spec: Spec
    path: Path
    sha256: str

    @property
    def version(self) -> str:
        return self.spec.version or self.sha256[:12]


def fetch(spec: Spec, downloads: Path, progress: Progress, *, refresh: bool = False) -> Archive:
    """The source where it lies, from the cache or downloaded into it, with the right checksum.

    Args:
        refresh: read an address or a server again although it was read before.

    Raises:
        NetworkError: no network and nothing cached.
        RunError: a checksum that differs, an unwritable cache.
        UsageError: a spec that names nothing.
    """
    if spec.own:
        path = own_source(spec.scheme).located(spec.name, downloads, refresh)
        return Archive(spec, path, digest(spec, path))
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        there = cached(spec, downloads)
        if there is not None:
            return Archive(spec, there, verified(spec, there))
        progress.message(f"downloading {spec.name} {spec.version}")
        return Archive(spec, *download(spec, downloads))
    except OSError as error:
        raise RunError(
            f"Cannot write to the download folder {downloads}: {error.strerror or error}; "
            "free space or choose another --home"
        ) from error


def snapshot(spec: Spec, downloads: Path) -> str:
    """SHA-256 over names and contents of a person's own source; what comes from outside is read the first time."""
    return digest(spec, own_source(spec.scheme).located(spec.name, downloads, False))


def digest(spec: Spec, path: Path) -> str:
    """SHA-256 over names and contents of all documents."""
    found = hashlib.sha256()
    try:
        for unit in own_source(spec.scheme).read(path):
            for name, data in unit:
                found.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise RunError(f"Cannot read the source {spec.source} in {path}: {error.strerror or error}") from error
    return found.hexdigest()
