"""Archives as a stream of chunks: documents that are read and converted together, about as much work each.

A zip archive is opened by the worker that needs a member; a gzipped tar can only be read from its beginning, so it
is read once, here, and its documents travel with the chunk. Nothing is unpacked to disk, and only a few chunks exist
at a time.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import orjson

from paraagent.catalog.crawl import Archive, openapi_files
from paraagent.catalog.operation import Converter, Origin
from paraagent.catalog.sources import openapi
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
                    yield Chunk(index, source, origin, zipped, waiting)
                    index, waiting, size = index + 1, [], 0
                waiting.append(unit)
                size += unit_bytes
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, gzip.BadGzipFile) as error:
            raise RunError(
                f"Cannot read the archive {archive.path}: {error}; delete it and run the same command again"
            ) from error
        if waiting:
            yield Chunk(index, source, origin, zipped, waiting)
            index += 1


def _units(archive: Archive, exclude: Sequence[str]) -> Iterator[tuple[list[tuple[str, bytes | None]], int]]:
    if archive.path.suffix == ".whl":
        with zipfile.ZipFile(archive.path) as file:
            sizes = {info.filename: info.file_size for info in file.infolist()}
        for names in converter(archive.spec.kind).units(list(sizes)):
            factor = 10 if names[0].endswith(".gz") else 1
            yield [(name, None) for name in names], factor * sum(sizes[name] for name in names)
    elif archive.spec.scheme == "openapi":
        for path in openapi_files(archive.path):
            data = path.read_bytes()
            yield [(path.name, data)], len(data)
    else:
        with tarfile.open(archive.path, "r|gz", bufsize=1 << 20) as stream:
            for entry in stream:
                if entry.isfile() and openapi.wanted(entry.name, exclude):
                    content = stream.extractfile(entry)
                    data = content.read() if content else b""
                    yield [(entry.name, data)], len(data)


def documents(chunk: Chunk) -> Iterator[tuple[list[tuple[str, Any]], list[tuple[str, str]]]]:
    """Each unit's parsed documents, and (name, error) of those that are no JSON."""
    for unit in chunk.units:
        parsed: list[tuple[str, Any]] = []
        broken: list[tuple[str, str]] = []
        for name, data in unit:
            if data is None:
                data = _opened(str(chunk.archive)).read(name)
            try:
                parsed.append((name, orjson.loads(gzip.decompress(data) if name.endswith(".gz") else data)))
            except (orjson.JSONDecodeError, gzip.BadGzipFile, EOFError) as error:
                broken.append((name, str(error)))
        yield parsed, broken


@lru_cache(maxsize=4)
def _opened(path: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def converter(kind: str) -> Converter:
    module: Any = import_module(f"paraagent.catalog.sources.{kind}")
    return module  # type: ignore[no-any-return]
