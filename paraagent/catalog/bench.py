"""How fast the catalog is built, beside the floor under any build: reading the same documents and doing nothing with
them."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from paraagent.catalog.build import build_catalog, fetch_all
from paraagent.catalog.chunks import chunks
from paraagent.catalog.workers import parse_chunk, run
from paraagent.config import CatalogConfig
from paraagent.progress import Progress


def bench_catalog(
    config: CatalogConfig, downloads: Path, scratch: Path, processes: int, progress: Progress
) -> dict[str, Any]:
    """Measure one build into a throw-away folder under `scratch`. Downloads, if any are missing, happen before the
    clock starts.

    Returns seconds, bytes and counts; `peak_rss_bytes` is the highest sum over this process and its workers.
    """
    archives = fetch_all(config.sources, downloads, progress)
    scratch.mkdir(parents=True, exist_ok=True)
    progress.message("reading the documents only")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".bench-") as folder:
        documents = sum(
            done.documents
            for done in run(parse_chunk, chunks(archives, config.exclude), config, Path(folder), processes)
        )
        floor = time.perf_counter() - start
        progress.message("building the catalog")
        start = time.perf_counter()
        with PeakMemory() as memory:
            built = build_catalog(config, downloads, Path(folder), processes, progress)
        seconds = time.perf_counter() - start
        size = (Path(folder) / "catalog.duckdb").stat().st_size
    return {
        "build_seconds": round(seconds, 2),
        "parse_floor_seconds": round(floor, 2),
        "ratio": round(seconds / floor, 2),
        "peak_rss_bytes": memory.peak,
        "processes": processes,
        "documents": documents,
        "catalog_bytes": size,
        "seconds": built["seconds"],
        "rows": built["rows"],
        "with_returns": built["with_returns"],
        "quarantine": built["quarantine"],
    }


class PeakMemory:
    """The highest resident memory of this process and all its descendants while the block runs, in bytes."""

    def __init__(self, interval: float = 0.1) -> None:
        self.peak = 0
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while True:
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)
            if self._stop.wait(self._interval):
                return
