"""The user turn that answers an assistant turn: `<tools>` blocks for searches, `<tool_response>` blocks for calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from paraagent.paraact.jsontext import JsonTextError, decode
from paraagent.paraact.protocol import compact

_RESPONSE = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)
_TOOLS = re.compile(r"<tools>\n(.*?)\n?</tools>", re.DOTALL)
_NAME = 80
"""Characters of a name that are repeated to the model; no tool's name is longer."""


def tools_block(schemas: Sequence[str]) -> str:
    """One search's result: a JSON tool schema a line, best first."""
    return "\n".join(["<tools>", *schemas, "</tools>"])


def response_block(name: str, result: Any) -> str:
    """What one call gave: its result, or `{"error": {"type", "msg"}}`."""
    return f"<tool_response>\n{compact({'name': name[:_NAME], 'result': result})}\n</tool_response>"


def read_responses(observation: str) -> list[Any]:
    """The `{"name", "result"}` objects of an observation, in call order; what is not JSON is left out."""
    return [value for text in _RESPONSE.findall(observation) if (value := _value(text)) is not None]


def read_tools(observation: str) -> list[list[Any]]:
    """The tool schemas of each `<tools>` block, in query order."""
    blocks = [text.split("\n") for text in _TOOLS.findall(observation)]
    return [[value for line in lines if (value := _value(line)) is not None] for lines in blocks]


def _value(text: str) -> Any:
    try:
        return decode(text)
    except JsonTextError:
        return None
