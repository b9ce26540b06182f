"""What the roles of the team are told, what they answer with, and a language model that plays them all."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from paraagent.agents.team import Asked, Question, Table
from paraagent.config import LlmConfig
from paraagent.llm import LlmClient
from paraagent.message import Message
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import AnswerBlock, CallBlock, SearchBlock, compact

_SEEN = 12_000
"""Characters that a role is shown of the request, and of the newest turns and observations."""
_TEXT: dict[str, Any] = {"type": "string"}
_NAMES = {"type": "array", "items": _TEXT}


def _object(needed: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any], most: int = 16) -> dict[str, Any]:
    return {"type": "array", "items": item, "maxItems": most}


SCHEMAS: dict[Asked, dict[str, Any]] = {
    "split": _object(("needs",), needs=_list(_object(("slot", "need"), slot=_TEXT, need=_TEXT)), answer=_TEXT),
    "explore": _object(
        ("fits", "searches"),
        fits=_list(_object(("slot", "tool"), slot=_TEXT, tool=_TEXT)),
        searches=_list(_object(("slot", "query"), slot=_TEXT, query=_TEXT)),
    ),
    "plan": _object(
        ("steps",),
        steps={"type": "array", "items": {**_NAMES, "minItems": 1}, "minItems": 1},
        dependencies=_list(_object(("from", "to"), **{"from": {**_NAMES, "minItems": 1}, "to": _TEXT}), 64),
    ),
    "act": _object(
        calls=_list(_object(("name", "arguments"), name=_TEXT, arguments={"type": "object"})),
        answer=_TEXT,
        missing=_NAMES,
    ),
    "check": _object(("accept", "reason"), accept={"type": "boolean"}, reason=_TEXT),
    "think": _object(("think",), think={"type": "string", "minLength": 1, "maxLength": 600}),
}

_TOLD: dict[str, str] = tomllib.loads(files("paraagent.agents").joinpath("roles.toml").read_text("utf-8"))
EXAMPLES: dict[Asked, dict[str, Any]] = {
    "split": {"needs": [{"slot": "parcel", "need": "track a parcel"}, {"slot": "depot", "need": "find a depot"}]},
    "explore": {
        "fits": [{"slot": "parcel", "tool": "post_track"}],
        "searches": [{"slot": "depot", "query": "look up a depot of a city"}],
    },
    "plan": {"steps": [["post_track"], ["post_depot"]], "dependencies": [{"from": ["post_track"], "to": "post_depot"}]},
    "act": {"calls": [{"name": "post_track", "arguments": {"number": "P-17"}}], "answer": "", "missing": []},
    "check": {"accept": False, "reason": "the number of the parcel is not in the request"},
    "think": {"think": "The parcel is found. Now I look for its depot."},
}
"""An answer to each question, as a model is shown it."""


class EndpointTeam:
    """A language model in all roles; answers are kept, so that the same episode costs nothing twice."""

    def __init__(self, config: LlmConfig, cache: Path | None = None) -> None:
        """Raises UsageError where no model is named."""
        self._client = LlmClient(config, cache)

    async def ask(self, question: Question) -> dict[str, Any]:
        """JSON of the question's schema; a wrong answer is sent back once with what is wrong."""
        seed = question.conversation.seed % 2**31
        said: dict[str, Any] = await self._client.ask_json(
            messages(question), SCHEMAS[question.asked], EXAMPLES[question.asked], seed=seed
        )
        return said


def messages(question: Question) -> list[Message]:
    """What a language model is asked."""
    episode = [
        f"{'Turn' if message['role'] == 'assistant' else 'Observation'}: {message['content']}"
        for message in question.conversation.messages[2:]
    ]
    request = f"Request: {question.conversation.task.request[:_SEEN]}"
    parts = [request, "\n\n".join(episode)[-_SEEN:], _table(question.table)]
    if question.draft and (question.draft.blocks or question.draft.plan):
        parts.append(f"Draft: {_draft(question)}")
    if question.objection:
        parts.append(f"Your team's last draft was sent back: {question.objection}")
    return [
        {"role": "system", "content": _TOLD[question.asked].strip().replace("{no_tool}", NO_TOOL_ANSWER)},
        {"role": "user", "content": "\n\n".join(part for part in parts if part)},
    ]


def _table(table: Table) -> str:
    lines = []
    for slot, need in (table.needs or {}).items():
        tool = table.fits.get(slot)
        state = "open" if tool is None else f"tool {tool}" if tool else "no tool does it"
        searched = "; ".join(table.queries.get(slot, ()))
        lines.append(f"- {slot}: {need} ({state}{f'; searched: {searched}' if searched else ''})")
    return "\n".join(["Slots:", *lines]) if lines else "Nothing is known yet."


def _draft(question: Question) -> str:
    assert question.draft is not None
    said = []
    for block in question.draft.blocks:
        if isinstance(block, SearchBlock):
            said.append(f"search for {block.slot}: {block.need}")
        elif isinstance(block, CallBlock):
            said.append(f"call {block.name} with {compact(block.arguments)}")
        elif isinstance(block, AnswerBlock):
            said.append(f"answer: {block.text}")
    plan = f"plan {compact(question.draft.plan)}" if question.draft.plan else ""
    return "\n".join(part for part in (plan, *said) if part)
