"""Chunks to Arrow files, in parallel processes that import little.

Rows never travel through a pipe: a worker writes its chunk's rows into files of its own, and says only that it is done.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from hashlib import blake2b
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from paraagent.catalog.chunks import Chunk, converter, documents
from paraagent.catalog.names import candidate
from paraagent.catalog.normalize import Normalizer, ToolRow
from paraagent.catalog.operation import Rejected
from paraagent.config import CatalogConfig
from paraagent.errors import RunError


TOOLS = pa.schema(
    [
        ("source_name", pa.string()),
        ("provider", pa.string()),
        ("service", pa.string()),
        ("category", pa.string()),
        ("title", pa.string()),
        ("description", pa.string()),
        ("candidate", pa.string()),
        ("effect", pa.string()),
        ("http_method", pa.string()),
        ("path", pa.string()),
        ("parameters", pa.string()),
        ("returns", pa.string()),
        ("n_parameters", pa.int32()),
        ("n_required", pa.int32()),
        ("deprecated", pa.bool_()),
        ("licence", pa.string()),
        ("quality", pa.float64()),
        ("digest", pa.binary(8)),
    ]
)
PARAMETERS = pa.schema(
    [
        ("tool", pa.int32()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("required", pa.bool_()),
        ("description", pa.string()),
        ("format", pa.string()),
        ("choices", pa.string()),
    ]
)
FIELDS = pa.schema(
    [
        ("tool", pa.int32()),
        ("path", pa.string()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("description", pa.string()),
        ("format", pa.string()),
    ]
)
QUARANTINE = pa.schema([(name, pa.string()) for name in ("source_name", "provider", "service", "reason", "detail")])
SCHEMAS = {"tools": TOOLS, "parameters": PARAMETERS, "fields": FIELDS, "quarantine": QUARANTINE}
"""What a chunk's files hold; `tool` is a row number of the same chunk's tools."""


class Done(NamedTuple):
    index: int
    documents: int


def shard(folder: Path, table: str, index: int) -> Path:
    return folder / f"{table}-{index:05d}.arrow"


def convert_chunk(chunk: Chunk, config: CatalogConfig, folder: Path) -> Done:
    """Write one chunk's rows as four Arrow files."""
    normalizer = Normalizer(config)
    convert = converter(chunk.origin.kind).convert
    tools: list[ToolRow] = []
    rejected: list[Rejected] = []
    count = 0
    for unit, broken in documents(chunk):
        count += len(unit) + len(broken)
        rejected += [Rejected(name, "", "", "unreadable", error) for name, error in broken]
        for item in convert(unit):
            row = item if isinstance(item, Rejected) else normalizer.row(*item)
            (rejected if isinstance(row, Rejected) else tools).append(row)  # type: ignore[arg-type]
    _write(shard(folder, "tools", chunk.index), TOOLS, [_tool_values(row) for row in tools])
    _write(
        shard(folder, "parameters", chunk.index),
        PARAMETERS,
        [(i, *row) for i, tool in enumerate(tools) for row in tool.arguments],
    )
    _write(
        shard(folder, "fields", chunk.index), FIELDS, [(i, *row) for i, tool in enumerate(tools) for row in tool.fields]
    )
    _write(shard(folder, "quarantine", chunk.index), QUARANTINE, rejected)
    return Done(chunk.index, count)


def parse_chunk(chunk: Chunk, config: CatalogConfig, folder: Path) -> Done:
    """Read the same documents and do nothing with them: the floor that a build is measured against."""
    return Done(chunk.index, sum(len(parsed) for parsed, _ in documents(chunk)))


def _tool_values(row: ToolRow) -> tuple[Any, ...]:
    return (
        row.source_name,
        row.provider,
        row.service,
        row.category,
        row.title,
        row.description,
        candidate(row.provider, row.service, row.words),
        row.effect,
        row.http_method,
        row.path,
        row.parameters,
        row.returns,
        len(row.arguments),
        row.n_required,
        row.deprecated,
        row.licence,
        row.quality,
        blake2b(row.parameters, digest_size=8).digest(),
    )


def _write(path: Path, schema: pa.Schema, rows: list[Any]) -> None:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    batch = pa.record_batch(arrays, schema=schema)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(batch)


Work = Callable[[Chunk, CatalogConfig, Path], Done]


def run(work: Work, stream: Iterable[Chunk], config: CatalogConfig, folder: Path, processes: int) -> Iterator[Done]:
    """`work` on every chunk, in `processes` processes; results in the order of completion.

    Raises RunError where a worker dies (out of memory, killed).
    """
    iterator = iter(stream)
    first = list(islice(iterator, 2))
    if processes <= 1 or len(first) < 2:
        for chunk in chain(first, iterator):
            yield work(chunk, config, folder)
        return
    waiting: set[Future[Done]] = set()
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_quiet)
    try:
        for chunk in chain(first, iterator):
            waiting.add(pool.submit(work, chunk, config, folder))
            if len(waiting) > 2 * processes:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise RunError(
            "A worker process was ended from outside, most likely for memory: run again with --set machine.processes=1"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _quiet() -> None:
    """Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
