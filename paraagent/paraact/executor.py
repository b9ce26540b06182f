"""The calls of one turn, all at once; results come in call order, and no call can take its siblings down.

`ToolError` is an error meant for the *model*: it becomes an observation. A `ParaAgentError` is meant for a *person*
and ends the turn. Whatever else a call raises becomes a `ToolExecutionError` observation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeVar

from paraagent.errors import ParaAgentError
from paraagent.trace import ErrorInfo

T = TypeVar("T")

ERROR_TYPES = frozenset(
    {
        "InvalidRequestError",
        "ToolNotFoundError",
        "NotFoundError",
        "PermissionError",
        "RateLimitError",
        "AuthenticationError",
        "NetworkError",
        "TimeoutError",
        "ServiceUnavailable",
        "StateConflictError",
        "ToolExecutionError",
    }
)
RETRYABLE = frozenset({"NetworkError", "TimeoutError", "RateLimitError", "ServiceUnavailable"})
"""Errors after which the same call may succeed."""


class ToolError(Exception):
    """An error of one call that the model sees as `{"error": {"type", "msg"}}`."""

    def __init__(self, kind: str, message: str) -> None:
        if kind not in ERROR_TYPES:
            raise ValueError(f"{kind} is no kind of tool error")
        super().__init__(message)
        self.info = ErrorInfo(type=kind, msg=message)


class Outcome(NamedTuple):
    """What became of one call."""

    error: ErrorInfo | None
    result: Any
    backend: str
    injected: bool = False
    """The error was drawn by chance."""
    started: float = 0.0
    """When it began, in seconds since the turn's first call did."""
    seconds: float = 0.0
    """How long it took: simulated, or measured."""
    measured: bool = False
    """The tool is real: `started` and `seconds` are by the clock."""
    attempts: int = 1
    """How often it was sent."""


Outcomes = dict[int, Outcome]
"""What became of the calls that have ended, by their place in the turn."""


async def execute(
    calls: Sequence[T],
    run: Callable[[T, Outcomes], Awaitable[Outcome]],
    *,
    at_once: int,
    after: Sequence[Collection[int]] = (),
) -> list[Outcome]:
    """Run the calls of a turn, at most `at_once` at a time; `run` sees what became of those before it.

    Each starts in call order and runs up to its first wait before the next one starts, so changes of state apply in
    call order. `after` says for each call which others must have ended (none where it is empty; without circles).
    Where this is cancelled, nothing is left running.

    Raises:
        ParaAgentError: a call met something that only a person can mend; the others ran to their end.
    """
    ended: Outcomes = {}
    slots = asyncio.Semaphore(at_once)
    done = [asyncio.Event() for _ in calls]
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def guarded(place: int, call: T) -> ParaAgentError | None:
        for other in after[place] if after else ():
            await done[other].wait()
        async with slots:
            started = loop.time() - began
            try:
                outcome = await run(call, ended)
            except ToolError as error:
                outcome = Outcome(error.info, None, "")
            except ParaAgentError as error:
                return error
            except Exception as error:
                message = f"the tool broke off: {type(error).__name__}"
                outcome = Outcome(ErrorInfo(type="ToolExecutionError", msg=message), None, "")
            finally:
                done[place].set()
            ended[place] = outcome._replace(started=started) if outcome.measured else outcome
        return None

    running = (guarded(place, call) for place, call in enumerate(calls))
    # Exceptions are collected, since otherwise the first call that is cancelled ends the wait for the others.
    for fault in await asyncio.gather(*running, return_exceptions=True):
        if fault is not None:
            raise fault
    outcomes = [ended[place] for place in range(len(calls))]
    begins = schedule([outcome.seconds for outcome in outcomes], at_once, after)
    return [
        outcome if outcome.measured else outcome._replace(started=begin)
        for outcome, begin in zip(outcomes, begins, strict=True)
    ]


def schedule(seconds: Sequence[float], at_once: int, after: Sequence[Collection[int]] = ()) -> list[float]:
    """When each call begins that takes so long, if that starts which is ready longest: simulated time, no clock."""
    begins = [0.0] * len(seconds)
    waiting, running, ended, now = list(range(len(seconds))), list[tuple[float, int]](), set[int](), 0.0
    queue: list[int] = []
    while waiting or queue:
        ready = [place for place in waiting if not after or ended.issuperset(after[place])]
        waiting = [place for place in waiting if place not in ready]
        queue += ready
        free = at_once - len(running)
        for place in queue[:free]:
            begins[place] = now
            heappush(running, (now + seconds[place], place))
        del queue[:free]
        now, place = heappop(running)
        ended.add(place)
    return begins
