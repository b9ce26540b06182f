"""Archives as a stream of chunks: documents that are read and converted together, about as much work each.

A zip archive is opened by the worker that needs a member; a gzipped tar can only be read from its beginning, so it
is read once, here, and its documents travel with the chunk. Nothing is unpacked to disk, and only a few chunks exist
at a time.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, cast

from paraagent.catalog.crawl import Archive
from paraagent.catalog.members import tarball, wheel_sizes
from paraagent.catalog.operation import Converter, Origin
from paraagent.catalog.parse import UnreadableError, parse
from paraagent.catalog.sources import openapi
from paraagent.catalog.spec import own_source
from paraagent.errors import RunError

CHUNK_BYTES = 4_000_000
"""Size of the documents of a chunk, unpacked; a larger document is a chunk by itself."""


class Chunk(NamedTuple):
    position: int
    """Place in the whole stream: the same in any number of processes."""
    source: int
    """Position of its source in the config."""
    origin: Origin
    archive: str | None
    """Zip file that the members are read from; None where `units` carry the bytes."""
    units: list[list[tuple[str, bytes | None]]]
    """Documents (name, bytes) that are decided on together, by unit."""
    own: bool
    """Documents of a person's own: read strictly, and the first of a unit is the one that counts."""


def chunks(archives: Sequence[Archive], exclude: Sequence[str]) -> Iterator[Chunk]:
    """All documents of all sources, in a fixed order. Raises RunError where an archive cannot be read."""
    index = 0
    for source, archive in enumerate(archives):
        origin = Origin(archive.spec.source, archive.version, archive.spec.kind)
        zipped = str(archive.path) if archive.path.suffix == ".whl" else None
        waiting: list[list[tuple[str, bytes | None]]] = []
        size = 0
        try:
            for unit, unit_bytes in _units(archive, exclude):
                if waiting and size + unit_bytes > CHUNK_BYTES:
                    yield Chunk(index, source, origin, zipped, waiting, archive.spec.own)
                    index, waiting, size = index + 1, [], 0
                waiting.append(unit)
                size += unit_bytes
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RunError(
                f"Cannot read the archive {archive.path}: {error}; delete it and run the same command again"
            ) from error
        if waiting:
            yield Chunk(index, source, origin, zipped, waiting, archive.spec.own)
            index += 1


def _units(archive: Archive, exclude: Sequence[str]) -> Iterator[tuple[list[tuple[str, bytes | None]], int]]:
    if archive.spec.own:
        for unit in own_source(archive.spec.scheme).read(archive.path):
            yield list(unit), sum(len(data) for _, data in unit)
    elif archive.path.suffix == ".whl":
        sizes = wheel_sizes(archive.path)
        for names in converter(archive.spec.kind).units(list(sizes)):
            factor = 10 if names[0].endswith(".gz") else 1
            yield [(name, None) for name in names], factor * sum(sizes[name] for name in names)
    else:
        for name, data in tarball(archive.path, lambda name: openapi.wanted(name, exclude)):
            yield [(name, data)], len(data)


def documents(chunk: Chunk) -> Iterator[tuple[list[tuple[str, Any]], list[tuple[str, str]]]]:
    """Each unit's parsed documents, and (name, error) of those that cannot be read."""
    for unit in chunk.units:
        parsed: list[tuple[str, Any]] = []
        broken: list[tuple[str, str]] = []
        for name, data in unit:
            try:
                if data is None:
                    data = _opened(str(chunk.archive)).read(name)
                parsed.append((name, parse(name, data, chunk.own)))
            except (UnreadableError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
                broken.append((name, str(error)))
        if chunk.own and broken and broken[0][0] == unit[0][0]:
            parsed = []
        yield parsed, broken


@lru_cache(maxsize=4)
def _opened(path: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def converter(kind: str) -> Converter:
    return cast("Converter", import_module(f"paraagent.catalog.sources.{kind}"))
