"""Plain lines of progress, and how long they say that it will take."""

from types import SimpleNamespace

import pytest

from pipelines import progress
from pipelines.progress import Lines


class Clock(SimpleNamespace):
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def _lines(clock: Clock, steps: list[tuple[float, int]], before: int = 0, total: int | None = 100) -> list[str]:
    said: list[str] = []
    lines = Lines(said.append)
    lines.start(total, "steps")
    if before:
        lines.advance(before)
    for seconds, done in steps:
        clock.now += seconds
        lines.advance(done)
    return [line.strip() for line in said]


def test_a_line_says_how_much_is_done_and_left(clock: Clock) -> None:
    assert _lines(clock, [(5, 1), (15, 9)]) == ["10 of 100 steps, 20 s, about 3 min 0 s left"]


def test_what_was_done_before_says_nothing_of_the_speed(clock: Clock) -> None:
    assert _lines(clock, [(20, 1)], before=49) == ["50 of 100 steps, 20 s, about 16 min 40 s left"]


def test_a_slow_start_is_forgotten(clock: Clock) -> None:
    lines = _lines(clock, [(500, 1), *[(10, 1)] * 40])
    assert lines[0] == "1 of 100 steps, 8 min 20 s, about 825 min 0 s left"
    assert lines[-1].endswith("about 9 min 50 s left")


def test_without_a_total_nothing_is_said_to_be_left(clock: Clock) -> None:
    assert _lines(clock, [(12, 7)], total=None) == ["7 steps, 12 s"]
