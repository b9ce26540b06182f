"""Simulator: what answers a call whose arguments are valid. The grounded one needs no model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.executor import ToolError
from paraagent.toolenv.world import UnsatisfiableError, World
from paraagent.trace import ErrorInfo


@dataclass(frozen=True, slots=True)
class Response:
    """What a call gave: an error or a result, and which layer answered."""

    error: ErrorInfo | None
    result: Any
    backend: str


class GroundedSimulator:
    """Answers from a `World`: the same seed and the same calls, the same answers."""

    def __init__(self, seed: int, issued: Iterable[Any] | None = None) -> None:
        """`issued` are the ids that the task gives; without them every id that is asked for exists."""
        self.world = World(seed, issued)

    def call(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response:
        """The result, or an error of the tool: what it names is not there, or its result schema contradicts itself."""
        try:
            return Response(None, self.world.respond(tool, arguments), "grounded")
        except ToolError as error:
            return Response(error.info, None, "grounded")
        except UnsatisfiableError as error:
            return Response(ErrorInfo(type="ToolExecutionError", msg=str(error)), None, "grounded")
