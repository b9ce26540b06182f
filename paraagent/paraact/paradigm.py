"""Paradigms: how exploring and executing are organised, as what a model is told, writes and reads.

- `paraact`: phases of searches and of calls, many at once, with plans.
- `react-ete`: tools are retrieved once with the whole request; then one call a turn.
- `react-eae`: one action a turn, a search or a call; what was found stays.

Each reads into the same `ParsedTurn` and is carried out by the same environment within the same budget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from paraagent.message import Message
from paraagent.paraact import observation, protocol, react
from paraagent.paraact.jsontext import JsonTextError, decode
from paraagent.paraact.prompt import paraact_prompt, react_prompt
from paraagent.paraact.protocol import ParsedTurn, compact
from paraagent.trace import ErrorInfo, ParadigmName


class Paradigm(Protocol):
    """One way to write turns and observations."""

    name: ParadigmName
    plans: bool
    """Turns carry plans, and the lifecycle says when."""
    retrieves: bool
    """Tools are searched once with the whole request, before the first turn."""
    stop: tuple[str, ...]
    """What a model would write next if it went on past its turn."""

    def opening(self, request: str, schemas: Sequence[str], references: bool) -> list[Message]:
        """What precedes the first turn. `schemas` are those retrieved."""
        ...

    def parse(self, text: str) -> ParsedTurn: ...

    def render(self, turn: ParsedTurn) -> str:
        """Raises ValueError where the grammar cannot say it."""
        ...

    def tools(self, schemas: Sequence[str]) -> str:
        """The observation of one search: a line a tool."""
        ...

    def response(self, name: str, result: Any) -> str:
        """The observation of one call."""
        ...

    def read_tools(self, observed: str) -> list[list[Any]]:
        """The tools that each search of an observation gave."""
        ...

    def read_responses(self, observed: str) -> list[Any]:
        """`{"result": …}` of each call of an observation."""
        ...


def error_text(paradigm: Paradigm, name: str, error: ErrorInfo) -> str:
    """The observation of a call that failed."""
    return paradigm.response(name, {"error": error.model_dump()})


class _ParaAct:
    name: ParadigmName = "paraact"
    plans, retrieves = True, False
    stop: tuple[str, ...] = ("<tool_response>", "<tools>")

    def opening(self, request: str, schemas: Sequence[str], references: bool) -> list[Message]:
        return [{"role": "system", "content": paraact_prompt(references)}, {"role": "user", "content": request}]

    def parse(self, text: str) -> ParsedTurn:
        return protocol.parse(text)

    def render(self, turn: ParsedTurn) -> str:
        return protocol.render(turn)

    def tools(self, schemas: Sequence[str]) -> str:
        return observation.tools_block(schemas)

    def response(self, name: str, result: Any) -> str:
        return observation.response_block(name, result)

    def read_tools(self, observed: str) -> list[list[Any]]:
        return observation.read_tools(observed)

    def read_responses(self, observed: str) -> list[Any]:
        return observation.read_responses(observed)


class _ReAct:
    plans = False
    stop: tuple[str, ...] = ("\nObservation:",)

    def __init__(self, name: ParadigmName) -> None:
        self.name = name
        self.retrieves = name == "react-ete"

    def opening(self, request: str, schemas: Sequence[str], references: bool) -> list[Message]:
        prompt = react_prompt(schemas if self.retrieves else None)
        return [{"role": "system", "content": prompt}, {"role": "user", "content": request}]

    def parse(self, text: str) -> ParsedTurn:
        return react.parse(text, searches=not self.retrieves)

    def render(self, turn: ParsedTurn) -> str:
        return react.render(turn, searches=not self.retrieves)

    def tools(self, schemas: Sequence[str]) -> str:
        return "\n".join(["Observation:", *(schemas or ["nothing found"])])

    def response(self, name: str, result: Any) -> str:
        return f"Observation: {compact(result)}"

    def read_tools(self, observed: str) -> list[list[Any]]:
        lines = observed.split("\n")[1:]
        return [[value for line in lines if (value := _value(line)) is not None]] if lines else []

    def read_responses(self, observed: str) -> list[Any]:
        match = _OBSERVED.fullmatch(observed)
        return [{"result": _value(match[1])}] if match else []


_OBSERVED = re.compile(r"Observation: (.*)", re.DOTALL)

PARADIGMS: dict[ParadigmName, Paradigm] = {
    "paraact": _ParaAct(),
    "react-ete": _ReAct("react-ete"),
    "react-eae": _ReAct("react-eae"),
}
PARAACT = PARADIGMS["paraact"]


def _value(text: str) -> Any:
    try:
        return decode(text)
    except JsonTextError:
        return None
