"""Chunks to Arrow files, in parallel processes that import little.

Rows never travel through a pipe: a worker writes its chunk's rows into files of its own, and says only that it is done.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from paraagent.catalog.chunks import Chunk, converter, documents
from paraagent.catalog.normalize import Normalizer, ToolRow
from paraagent.catalog.operation import Operation, Rejected
from paraagent.catalog.schemas import Reader
from paraagent.catalog.shards import ChunkRows
from paraagent.config import CatalogConfig
from paraagent.workers import Workers


class Done(NamedTuple):
    position: int
    documents: int


def convert_chunk(chunk: Chunk, config: CatalogConfig, folder: Path) -> Done:
    """Write one chunk's rows as four Arrow files."""
    rows = ChunkRows()
    normalizer = Normalizer(config)
    convert = converter(chunk.origin.kind).convert
    count = 0
    with no_collection():
        for unit, broken in documents(chunk):
            count += len(unit) + len(broken)
            for name, error in broken:
                rows.reject(Rejected(name, "", "", "unreadable", error))
            for item in convert(unit):
                row = item if isinstance(item, Rejected) else row_of(normalizer, *item)
                rows.reject(row) if isinstance(row, Rejected) else rows.add(row)
    rows.write(folder, chunk.position)
    return Done(chunk.position, count)


def row_of(normalizer: Normalizer, reader: Reader, operation: Operation) -> ToolRow | Rejected:
    """A row, or why there is none: what a document hides deep down costs its operation, not the catalog."""
    try:
        return normalizer.row(reader, operation)
    except (RecursionError, TypeError, AttributeError, KeyError, ValueError) as error:
        said = "schemas nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Rejected(operation.source_name, operation.provider, operation.service, "malformed", said[:200])


def parse_chunk(chunk: Chunk, config: CatalogConfig, folder: Path) -> Done:
    """Read the same documents and do nothing with them: the floor that a build is measured against."""
    with no_collection():
        return Done(chunk.position, sum(len(parsed) for parsed, _ in documents(chunk)))


@contextmanager
def no_collection() -> Iterator[None]:
    """No cyclic garbage collection: parsed documents are millions of containers without a cycle, and to walk them again
    and again took a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


Work = Callable[[Chunk, CatalogConfig, Path], Done]


def run(work: Work, stream: Iterable[Chunk], config: CatalogConfig, folder: Path, processes: int) -> Iterator[Done]:
    """`work` on every chunk, in `processes` processes; results in the order of completion.

    Raises RunError where a worker dies (out of memory, killed).
    """
    with Workers(partial(_bound, work, config, folder), processes) as workers:
        yield from workers.run(stream)


def _bound(work: Work, config: CatalogConfig, folder: Path) -> Callable[[Chunk], Done]:
    return lambda chunk: work(chunk, config, folder)
