"""From source specs to one DuckDB file: fetch, convert in parallel, select, name, load, publish.

The result depends on the sources and the config alone: not on the number of processes, their timing, or where files
lie.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from paraagent.catalog.chunks import Chunk, chunks
from paraagent.catalog.crawl import Archive, fetch
from paraagent.catalog.load import Loader, children, read_shards, tools
from paraagent.catalog.selection import Selection, select
from paraagent.catalog.spec import parse_spec
from paraagent.catalog.workers import convert_chunk, run
from paraagent.config import CatalogConfig
from paraagent.errors import RunError
from paraagent.progress import Progress


def build_catalog(
    config: CatalogConfig,
    downloads: Path,
    out: Path,
    processes: int,
    progress: Progress,
    *,
    sources: Sequence[str] = (),
    base: Path | None = None,
) -> dict[str, Any]:
    """Write `out/catalog.duckdb` and return its counts and the seconds of each phase.

    Args:
        sources: specs to take in; by default those of the config.
        base: a finished catalog that they are added to: what it holds keeps its names, and nothing of it is read again.

    Raises:
        UsageError: a source spec that cannot be read or names nothing.
        RunError: a source that cannot be had, an archive that cannot be read, a full disk, no tool at all.
    """
    clock = _Clock()
    archives = fetch_all(sources or config.sources, downloads, progress)
    clock.lap("fetch")
    out.mkdir(parents=True, exist_ok=True)
    for stale in out.glob(".shards-*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=out, prefix=".shards-"))
    loader: Loader | None = None
    try:
        origin_of: list[Chunk] = []
        progress.start(None, "documents")
        for done in run(convert_chunk, _noted(chunks(archives, config.exclude), origin_of), config, folder, processes):
            progress.advance(done.documents)
        clock.lap("convert")
        loader = Loader(out, base)
        counts = _load(loader, folder, origin_of, archives, config, progress, clock)
        loader.publish()
        clock.lap("publish")
    except OSError as error:
        raise RunError(
            f"Cannot write the catalog to {out}: {error.strerror or error}; free space there or choose another --home"
        ) from error
    except BaseException:
        if loader is not None:
            loader.abandon()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**counts, "seconds": clock.seconds}


def fetch_all(sources: Sequence[str], downloads: Path, progress: Progress) -> list[Archive]:
    """Every source, verified; specs are all read before anything is fetched."""
    return [fetch(spec, downloads, progress) for spec in [parse_spec(text) for text in sources]]


def _noted(stream: Iterator[Chunk], seen: list[Chunk]) -> Iterator[Chunk]:
    """Pass chunks on and remember what they were, without their bytes."""
    for chunk in stream:
        seen.append(chunk._replace(units=[]))
        yield chunk


def _load(
    loader: Loader,
    folder: Path,
    origins: list[Chunk],
    archives: list[Archive],
    config: CatalogConfig,
    progress: Progress,
    clock: _Clock,
) -> dict[str, Any]:
    table, sizes = read_shards(folder, "tools", len(origins))
    owners = [chunk for chunk, size in zip(origins, sizes, strict=True) for _ in range(size)]
    prior = loader.prior(set(table.column("provider").to_pylist()))
    chosen = select(table, [chunk.source for chunk in owners], [chunk.origin.kind for chunk in owners], prior)
    if not chosen.rows and not prior.ids:
        raise RunError(
            "No source holds a usable interface: look at sources and exclude in the [catalog] section of the profile"
        )
    clock.lap("select")
    progress.message(f"writing {len(chosen.rows):,} tools")
    constants = {
        "source": [chunk.origin.source for chunk in owners],
        "source_version": [chunk.origin.version for chunk in owners],
    }
    loader.insert("tools", tools(table, chosen, constants))
    clock.lap("load tools")
    for name in ("parameters", "fields"):
        loader.insert(name, children(*read_shards(folder, name, len(origins)), sizes, chosen))
        clock.lap(f"load {name}")
    loader.connect(set(table.column("provider").to_pylist()) if prior.ids else None)
    clock.lap("connect")
    loader.insert("quarantine", iter([_quarantine(folder, origins, table, chosen, owners)]))
    rows = {name: loader.count(name) for name in ("tools", "parameters", "fields", "edges", "quarantine")}
    with_returns = loader.count("tools WHERE returns IS NOT NULL")
    info = _build_info(archives, config, {**rows, "with_returns": with_returns}, loader.info())
    rows["build_info"] = loader.insert("build_info", iter([info]))
    clock.lap("load rest")
    return {
        "rows": rows,
        "with_returns": with_returns,
        "quarantine": loader.counts("quarantine", "reason"),
        "content": loader.content(),
    }


def _quarantine(
    folder: Path, origins: list[Chunk], table: pa.Table, chosen: Selection, owners: list[Chunk]
) -> pa.Table:
    """What the converters rejected and the copies, sorted."""
    found: list[tuple[str, ...]] = []
    rejected, sizes = read_shards(folder, "quarantine", len(origins))
    sources = [chunk.origin.source for chunk, size in zip(origins, sizes, strict=True) for _ in range(size)]
    found += [(source, *row.values()) for source, row in zip(sources, rejected.to_pylist(), strict=True)]
    copies = table.select(["source_name", "provider", "service"]).take(
        pa.array([i for i, _ in chosen.duplicates], pa.int64())
    )
    for (i, original), row in zip(chosen.duplicates, copies.to_pylist(), strict=True):
        found.append((owners[i].origin.source, *row.values(), "duplicate", original))
    found.sort()
    names = ["source", "source_name", "provider", "service", "reason", "detail"]
    columns = list(zip(*found, strict=True)) if found else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.table(arrays, names=names)


def _build_info(
    archives: list[Archive], config: CatalogConfig, counts: dict[str, int], before: dict[str, str]
) -> pa.Table:
    import duckdb

    info = before | {f"sha256 {a.spec.source} {a.version}": a.sha256 for a in archives}
    info |= {f"rows {name}": str(count) for name, count in counts.items()}
    settings = config.model_dump(mode="json", exclude={"sources", "added"})
    info |= {f"config {key}": orjson.dumps(value).decode() for key, value in settings.items()}
    info |= {"duckdb": duckdb.__version__, "orjson": orjson.__version__, "pyarrow": pa.__version__}
    return pa.table({"key": sorted(info), "value": [info[key] for key in sorted(info)]})


class _Clock:
    """Seconds of each phase, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = round(now - self._last, 3)
        self._last = now
