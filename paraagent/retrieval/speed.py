"""How fast the index answers and what it costs in memory, measured in a fresh process that does nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from paraagent.retrieval.index import ToolIndex

_TIMED = 400
"""Searches of each number of slots."""
_K = 10


def speed(directory: Path, requests: Sequence[str], widths: Iterable[int] = (1, 4, 16)) -> dict[str, Any]:
    """Times and memory of the index in a fresh process that does nothing else, on one core.

    Returns:
        `load_seconds`; `p50_ms` and `p99_ms` by number of slots; `slots_per_second` at 4 slots; `rss_bytes` of the
        process after all searches and `shared_bytes` of it, the mapped files that further processes have for free.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_probe, directory, list(requests), tuple(widths)).result()


def _probe(directory: Path, requests: list[str], widths: tuple[int, ...]) -> dict[str, Any]:
    started = time.perf_counter()
    index = ToolIndex.load(directory)
    loaded = time.perf_counter() - started
    p50, p99, rate = {}, {}, 0.0
    for width in widths:
        index.search(requests[:width], _K)
        seconds = []
        for start in range(_TIMED):
            slots = [requests[(start + step) % len(requests)] for step in range(width)]
            began = time.perf_counter()
            index.search(slots, _K)
            seconds.append(time.perf_counter() - began)
        p50[str(width)], p99[str(width)] = (round(float(np.quantile(seconds, q)) * 1e3, 3) for q in (0.5, 0.99))
        rate = max(rate, width * len(seconds) / sum(seconds))
    memory = psutil.Process().memory_full_info()
    return {
        "load_seconds": round(loaded, 4),
        "p50_ms": p50,
        "p99_ms": p99,
        "slots_per_second": round(rate, 1),
        "rss_bytes": memory.rss,
        "shared_bytes": memory.rss - memory.uss,
    }
