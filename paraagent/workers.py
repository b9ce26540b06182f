"""Jobs spread over spawned processes: results come as they are finished, and Ctrl-C ends all of it.

What comes out must not depend on how many processes there are; so a job holds all that decides its result.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any, Generic, Self, TypeVar

from paraagent.errors import RunError

J = TypeVar("J")
R = TypeVar("R")

_work: Callable[[Any], Any] | None = None
"""What a worker process does with a job."""


class Workers(Generic[J, R]):
    """Processes that do jobs of one sort; they start when there are several jobs, and stop with the `with` block."""

    def __init__(self, prepare: Callable[[], Callable[[J], R]], processes: int) -> None:
        """`prepare` is called once in each process and gives what does a job; it, jobs and results can be pickled.

        With one process everything is done in this one.
        """
        self._prepare, self._processes = prepare, processes
        self._here: Callable[[J], R] | None = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, jobs: Iterable[J]) -> Iterator[R]:
        """Do every job. Jobs are read as they can be taken on, so that they may be made while others are done.

        Raises:
            RunError: a worker died (out of memory, killed).
        """
        iterator = iter(jobs)
        first = list(islice(iterator, 2))
        if self._pool is None and (self._processes <= 1 or len(first) < 2):
            self._here = self._here or self._prepare()
            yield from map(self._here, chain(first, iterator))
            return
        if self._pool is None:
            start = (_start, (self._prepare,))
            self._pool = ProcessPoolExecutor(self._processes, get_context("spawn"), *start)
        waiting: set[Future[R]] = set()
        try:
            for job in chain(first, iterator):
                waiting.add(self._pool.submit(_do, job))
                if len(waiting) > 2 * self._processes:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool as error:
            raise RunError(
                "A worker process was ended from outside, most likely for memory:"
                " run again with --set machine.processes=1"
            ) from error


def collect_seldom() -> None:
    """Let Python look for cyclic garbage rarely: for processes that make many small objects, and next to no cycles."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def _start(prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Ctrl-C is the parent's to handle."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work = prepare()
    collect_seldom()


def _do(job: Any) -> Any:
    assert _work is not None
    return _work(job)
