"""Native tool calling: a conversation as a server's own tool calls, and what was found as its functions.

The trace stays in the words of the paradigm; only what passes over the wire differs. The search for tools is a function
beside the tools that were found.
"""

from __future__ import annotations

from typing import Any

from paraagent.agents.policy import Conversation
from paraagent.paraact.protocol import AnswerBlock, ParsedTurn, SearchBlock, compact

SEARCH = "search_tool"
_TOLD = (
    "\nHere searches and calls are functions: call them, as many at once as are independent, instead of writing them. "
    "Think and plan in the text before. Answer in plain words once nothing is left to call."
)


def declared(conversation: Conversation) -> list[dict[str, Any]]:
    """The functions that the model may call now: the search for tools, where there is one, and what it found."""
    text = {"type": "string"}
    query = {
        "slot": {**text, "description": "a short label"},
        "query": {**text, "description": "what the tool must do"},
    }
    search = _function(
        SEARCH, "Finds the tools for one need.", {"type": "object", "properties": query, "required": ["query"]}
    )
    found = [_function(tool.name, tool.description, tool.parameters) for tool in conversation.found().values()]
    return found if conversation.paradigm.retrieves else [search, *found]


def native_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages as a server of native tool calls expects them."""
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for number, message in enumerate(conversation.messages):
        if message["role"] == "system":
            messages.append({"role": "system", "content": message["content"] + _TOLD})
        elif message["role"] == "assistant":
            turn = conversation.paradigm.parse(message["content"])
            calls = _tool_calls(turn, number)
            said = _said(turn) if calls else message["content"]
            messages.append({"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})})
        else:
            messages += _results(conversation, message["content"], calls)
            calls = []
    return messages


def _function(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _said(turn: ParsedTurn) -> str:
    """What stands before the calls."""
    thought = f"<think>{turn.think}</think>" if turn.think else ""
    return "\n".join(filter(None, [thought, f"<plan>{turn.plan}</plan>" if turn.plan else ""]))


def _tool_calls(turn: ParsedTurn, number: int) -> list[dict[str, Any]]:
    """The blocks of a turn as calls; none where one of them cannot be said so."""
    found = []
    for place, block in enumerate(turn.blocks):
        if block.problem or isinstance(block, AnswerBlock):
            return []
        if isinstance(block, SearchBlock):
            name, arguments = SEARCH, {"slot": block.slot, "query": block.need}
        else:
            name, arguments = block.name, block.arguments
        function = {"name": name, "arguments": compact(arguments)}
        found.append({"id": f"call_{number}_{place}", "type": "function", "function": function})
    return found


def _results(conversation: Conversation, observed: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The observation, split over the calls that it answers; whole where it does not fit them."""
    found = conversation.paradigm.read_tools(observed)
    results = found if len(found) == len(calls) else conversation.paradigm.read_responses(observed)
    if not calls or len(results) != len(calls):
        return [{"role": "user", "content": observed}]
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": compact(_result(result))}
        for call, result in zip(calls, results, strict=True)
    ]


def _result(value: Any) -> Any:
    return value["result"] if isinstance(value, dict) and "result" in value else value
