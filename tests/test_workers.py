"""Workers: every job once, the same results in any number of processes, and an end when one dies."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from paraagent.errors import RunError
from paraagent.workers import Workers


def adding(amount: int) -> Callable[[int], tuple[int, int]]:
    return lambda number: (number + amount, os.getpid())


def collecting() -> Callable[[int], int]:
    return lambda number: gc.get_threshold()[0]


def dying() -> Callable[[int], int]:
    return lambda number: os._exit(number)


def failing() -> Callable[[int], int]:
    return lambda number: 1 // number


@pytest.mark.parametrize("processes", [1, 2])
def test_every_job_is_done_once_in_any_number_of_processes(processes: int) -> None:
    with Workers(partial(adding, 100), processes) as workers:
        found = sorted(workers.run(range(20)))
        again = sorted(workers.run(range(20)))
    assert [value for value, _ in found] == [value for value, _ in again] == list(range(100, 120))
    assert (os.getpid() in {process for _, process in found}) is (processes == 1)


def test_jobs_are_made_while_others_are_done() -> None:
    made: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    with Workers(partial(adding, 0), 2) as workers:
        next(iter(workers.run(jobs())))
        assert len(made) < 50


def test_workers_look_for_cyclic_garbage_more_seldom_than_this_process() -> None:
    with Workers(collecting, 2) as workers:
        assert min(workers.run(range(4))) > gc.get_threshold()[0]


def test_a_worker_that_dies_ends_the_work_with_a_sentence() -> None:
    with Workers(dying, 2) as workers, pytest.raises(RunError, match="ended from outside"):
        list(workers.run([3, 4, 5]))


def test_what_a_job_raises_is_raised_here() -> None:
    with Workers(failing, 2) as workers, pytest.raises(ZeroDivisionError):
        list(workers.run([1, 0, 1]))
