"""`bench search`: labelled requests, asked of the whole catalog and the benchmark's own APIs, and of those alone."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paraagent.catalog.build import build_catalog
from paraagent.catalog.store import Catalog
from paraagent.config import CatalogConfig
from paraagent.evaluation.benchmarks.toolbench import labelled_queries
from paraagent.evaluation.search import LabelledQuery, compare, indexed, out_of_the_box
from paraagent.progress import Progress
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.retrieval.speed import speed

_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_FEWEST_WORDS = 3


def bench_search(
    catalog: Path, data: Path, limit: int | None, scratch: Path, seed: int, progress: Progress
) -> dict[str, Any]:
    """Search for every request of the ToolBench files in `data`.

    Args:
        catalog: a finished catalog, with its index in `index/` beside it.
        limit: at most so many requests of each file; None for all.
        scratch: an existing folder for throw-away files.

    Returns:
        The figures of `compare` for the whole pool, `alone` with the same for the APIs alone, and those of `speed`.

    Raises:
        UsageError: `data` holds no queries.
    """
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".bench-") as folder:
        progress.message("adding the benchmark's APIs to the catalog")
        whole, queries = _pool(Path(folder) / "whole", data, limit, catalog, seed, progress)
        alone, _ = _pool(Path(folder) / "alone", data, limit, None, seed, progress)
        progress.message("timing searches")
        timed = speed(Path(folder) / "whole" / "index", _slots(queries))
    return {**whole, "alone": alone, **timed}


def _pool(
    out: Path, data: Path, limit: int | None, base: Path | None, seed: int, progress: Progress
) -> tuple[dict[str, Any], list[LabelledQuery]]:
    config = CatalogConfig(min_description=0)
    built = build_catalog(config, out, out, 1, progress, sources=[f"toolbench:{data}"], base=base)
    path = out / "catalog.duckdb"
    build_index(path, out / "index", progress, reuse=base.parent / "index" if base else None)
    with Catalog.open(path) as catalog:
        queries = labelled_queries(data, catalog, limit)
        progress.message(f"searching {built['rows']['tools']:,} tools for {len(queries)} requests")
        found = compare(queries, indexed(ToolIndex.load(out / "index", catalog)), out_of_the_box(catalog), seed)
    return {"tools": built["rows"]["tools"], **found}, queries


def _slots(queries: Iterable[LabelledQuery]) -> list[str]:
    """Slots as agents write them: the sentences of the requests, each once."""
    parts = [part for query in queries for part in _SENTENCE.split(query.text)]
    return list(dict.fromkeys(part for part in parts if len(part.split()) >= _FEWEST_WORDS))
