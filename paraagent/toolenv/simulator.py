"""Simulator: what answers a call whose arguments are valid. The grounded one needs no model.

Backends stand in layers: the first that has an answer gives it, and the trace says which one that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.executor import ToolError
from paraagent.toolenv.world import UnsatisfiableError, World
from paraagent.trace import ErrorInfo


class Response(NamedTuple):
    """What a call gave: an error or a result, and which layer answered."""

    error: ErrorInfo | None
    result: Any
    backend: str
    seconds: float | None = None
    """Measured time, where the tool is real."""
    attempts: int = 1
    """How often the call was sent."""


class Backend(Protocol):
    """One layer."""

    name: str

    async def answer(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response | None:
        """The answer to a call whose arguments are valid; None leaves it to the next layer.

        A layer that keeps a state changes it before it waits for anything: calls of one turn start in their order.
        """
        ...


class GroundedSimulator:
    """Answers from a `World`: the same seed and the same calls, the same answers."""

    name = "grounded"

    def __init__(self, seed: int, issued: Iterable[Any] | None = None) -> None:
        """`issued` are the ids that the task gives; without them every id that is asked for exists."""
        self.world = World(seed, issued)

    def call(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response:
        """The result, or an error of the tool: what it names is not there, or its result schema contradicts itself."""
        try:
            return Response(None, self.world.respond(tool, arguments), self.name)
        except ToolError as error:
            return Response(error.info, None, self.name)
        except UnsatisfiableError as error:
            return Response(ErrorInfo(type="ToolExecutionError", msg=str(error)), None, self.name)

    async def answer(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response | None:
        """The same for a layer: a result schema that contradicts itself is left to the next one."""
        response = self.call(tool, arguments)
        return None if response.error is not None and response.error.type == "ToolExecutionError" else response


class Simulator:
    """The layers of one episode, over one world."""

    def __init__(self, grounded: GroundedSimulator, layers: Sequence[Backend]) -> None:
        self.world, self._grounded, self._layers = grounded.world, grounded, layers

    async def call(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response:
        """The answer of the first layer that has one.

        What another layer shows, the world knows from then on: an id found there can be looked up here.
        """
        for layer in self._layers:
            response = await layer.answer(tool, arguments)
            if response is not None:
                if layer is not self._grounded and response.error is None:
                    self.world.session.give(leaves(response.result))
                return response
        return Response(ErrorInfo(type="ToolExecutionError", msg="the tool has no answer to this call"), None, "")


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar in a JSON value."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list):
            left += part
        else:
            yield part
