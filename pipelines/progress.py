"""How a run speaks: bars on a terminal, plain lines elsewhere, always on stderr, so that stdout stays for results."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from paraagent.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

INDENT = " " * 6
LINE_SECONDS = 10.0
"""At most one plain line of progress in this time."""
_AT_ONCE = 0.1
"""What is counted within this time of the start was done before, and says nothing of the speed."""
_RECENT = 12
"""Lines over which the speed is taken."""


class Lines:
    """Plain lines through any writer: a log file, a pipe, Prefect's run log."""

    def __init__(self, write: Callable[[str], None], *, seconds: float = LINE_SECONDS) -> None:
        self._write = write
        self._seconds = seconds
        self._total: int | None = None
        self._unit = ""
        self._done = 0
        self._started = self._last = time.monotonic()
        self._marks = deque([(self._started, 0)], maxlen=_RECENT)
        """When so much was done, the oldest first."""

    def message(self, text: str) -> None:
        self._write(text)

    def start(self, total: int | None, unit: str) -> None:
        self._total, self._unit, self._done = total, unit, 0
        self._started = self._last = time.monotonic()
        self._marks = deque([(self._started, 0)], maxlen=_RECENT)

    def advance(self, n: int = 1) -> None:
        self._done += n
        now = time.monotonic()
        if now - self._started < _AT_ONCE:
            self._marks[0] = now, self._done
        elif now - self._last >= self._seconds and self._done != self._total:
            self._last = now
            since, before = self._marks[0]
            left = (now - since) * ((self._total or 0) - self._done) / max(1, self._done - before)
            self._write(count_text(self._done, self._total, self._unit, now - self._started, left))
            self._marks.append((now, self._done))


class Indented:
    """Puts what a stage says under the line of the stage."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner
        self.start = inner.start
        self.advance = inner.advance

    def message(self, text: str) -> None:
        self._inner.message(INDENT + text)


class Bar:
    """A live bar with count and time left; messages scroll above it. Use as a context manager."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.console = Console(stderr=True, highlight=False)
        self._bars: Bars = Bars(
            TextColumn("      {task.description:<12}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def message(self, text: str) -> None:
        self.console.print(text, markup=False)

    def start(self, total: int | None, unit: str) -> None:
        self.finish()
        self._task = self._bars.add_task(unit, total=total)

    def advance(self, n: int = 1) -> None:
        if self._task is not None:
            self._bars.advance(self._task, n)

    def finish(self) -> None:
        """Take the bar of the last count away."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None


def to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def count_text(done: int, total: int | None, unit: str, seconds: float, left: float) -> str:
    """`120 of 400 tasks, 31 s, about 72 s left`; without a total it is not known how much is left."""
    if not total:
        return f"{INDENT}{done:,} {unit}, {seconds_text(seconds)}"
    return f"{INDENT}{done:,} of {total:,} {unit}, {seconds_text(seconds)}, about {seconds_text(left)} left"


def seconds_text(seconds: float) -> str:
    """`0.4 s`, `31 s`, `12 min 5 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def size_text(size: float) -> str:
    """Bytes for a person: `1.4 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
