"""The calls of one turn, all at once; results come in call order, and no call can take its siblings down.

`ToolError` is an error meant for the *model*: it becomes an observation. A `ParaAgentError` is meant for a *person*
and ends the turn. Whatever else a call raises becomes a `ToolExecutionError` observation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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


async def execute(calls: Sequence[T], run: Callable[[T], Awaitable[Outcome]]) -> list[Outcome]:
    """Run every call concurrently. Each starts in call order and runs up to its first wait before the next one starts,
    so changes of state apply in call order.

    Raises:
        ParaAgentError: a call met something that only a person can mend; the others ran to their end.
    """

    async def guarded(call: T) -> Outcome | ParaAgentError:
        try:
            return await run(call)
        except ToolError as error:
            return Outcome(error.info, None, "")
        except ParaAgentError as error:
            return error
        except Exception as error:
            message = f"the tool broke off: {type(error).__name__}"
            return Outcome(ErrorInfo(type="ToolExecutionError", msg=message), None, "")

    outcomes = []
    for outcome in await asyncio.gather(*(guarded(call) for call in calls)):
        if isinstance(outcome, ParaAgentError):
            raise outcome
        outcomes.append(outcome)
    return outcomes
