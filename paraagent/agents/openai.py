"""OpenAIPolicy: any model behind an OpenAI-compatible endpoint, under any paradigm.

What a server moved out of the text (thoughts into `reasoning_content`, calls into `tool_calls`) is put back into the
turn, so that a trace reads the same whoever served the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paraagent.agents.native import SEARCH, declared, native_messages
from paraagent.agents.policy import Completion, Conversation
from paraagent.chat import Answer, ChatClient, LlmError
from paraagent.config import AgentConfig, EnvConfig
from paraagent.paraact.jsontext import JsonTextError, decode
from paraagent.paraact.protocol import compact
from paraagent.paraact.react import FINISH
from paraagent.trace import Note


@dataclass
class Usage:
    """What a policy has used so far."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def cost(self, config: AgentConfig) -> float:
        """In the currency of the prices."""
        read, written = self.prompt_tokens * config.input_price, self.completion_tokens * config.output_price
        return (read + written) / 1e6


class OpenAIPolicy:
    """Asks for every turn; what the endpoint counts goes into the trace and into `usage`."""

    lockstep = False

    def __init__(self, config: AgentConfig, env: EnvConfig, *, name: str = "") -> None:
        """`config.model` is what the endpoint calls the model.

        Raises:
            UsageError: no model is named.
        """
        self.name = name or f"openai:{config.model}"
        self.group = config.episodes
        self.usage = Usage()
        self._config, self._env = config, env
        self._client = ChatClient(config)

    def tell(self, told: Callable[[str], None]) -> None:
        """Who hears what the endpoint makes one wait for."""
        self._client.told = told

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each; one whose context is full is `exhausted`.

        Raises:
            LlmError: the endpoint gave no answer after all tries.
        """
        return list(await asyncio.gather(*map(self._turn, conversations)))

    async def _turn(self, conversation: Conversation) -> Completion:
        try:
            answer = await self._client.complete(self._request(conversation))
        except LlmError as error:
            if error.fault == "too_long":
                return Completion("", exhausted=True)
            raise
        self.usage.requests += 1
        self.usage.prompt_tokens += answer.prompt_tokens
        self.usage.completion_tokens += answer.completion_tokens
        counts = answer.prompt_tokens, answer.completion_tokens, answer.seconds
        if answer.prompt_tokens > self._env.max_context_tokens:
            return Completion("", *counts, exhausted=True)
        cut = f"max_tokens cut this turn: raise agent.max_tokens and env.max_new_tokens above {self._most_tokens}"
        notes = (Note(role="check", text=cut),) if answer.finish == "length" else ()
        return Completion(turn_text(answer, conversation, self._config.native_tools), *counts, notes)

    @property
    def _most_tokens(self) -> int:
        return min(self._config.max_tokens, self._env.max_new_tokens)

    def _request(self, conversation: Conversation) -> dict[str, Any]:
        config = self._config
        request: dict[str, Any] = {
            "messages": native_messages(conversation) if config.native_tools else conversation.messages,
            "temperature": config.temperature,
            "max_completion_tokens": self._most_tokens,
        }
        if config.temperature:
            request["seed"] = conversation.seed % 2**31
        if config.stop and not config.native_tools:
            request["stop"] = list(conversation.paradigm.stop)
        if config.native_tools:
            request["tools"] = declared(conversation)
        return request


def turn_text(answer: Answer, conversation: Conversation, native: bool = False) -> str:
    """The turn as its paradigm writes it, with what the server took out of the text put back.

    A `native` model that calls nothing and writes no block has answered.
    """
    tagged = conversation.paradigm.plans
    text = _with_thought(answer, tagged)
    if not answer.tool_calls and native and text.strip() and not conversation.paradigm.parse(text).blocks:
        thought, plain = (f"<think>{answer.reasoning}</think>\n" if answer.reasoning and tagged else ""), answer.content
        return f"{thought}<answer>{plain}</answer>" if tagged else _action(text, FINISH, compact({"answer": plain}))
    for name, arguments in answer.tool_calls:
        if not tagged:
            return _action(text, name, arguments)
        text += f"\n{_search(arguments)}" if name == SEARCH else f"\n{_call(name, arguments)}"
    return text.strip()


def _with_thought(answer: Answer, tagged: bool) -> str:
    text, reasoning = answer.content, answer.reasoning.strip()
    if not tagged:
        return f"Thought: {' '.join(reasoning.split())}\n{text}" if reasoning and "Thought:" not in text else text
    if "</think>" in text and "<think>" not in text:  # a template that opens the thought itself
        return f"<think>{text}"
    if reasoning and "<think>" not in text:
        return f"<think>{reasoning}</think>\n{text}"
    return text


def _action(text: str, name: str, arguments: str) -> str:
    thought = text if "Thought:" in text else f"Thought: {' '.join(text.split()) or 'I act.'}"
    return f"{thought.rstrip()}\nAction: {name}\nAction Input: {arguments}"


def _call(name: str, arguments: str) -> str:
    """The call with its arguments as the model wrote them, so that what is wrong with them is told."""
    return f'<tool_call>{{"name": {compact(name)}, "arguments": {arguments}}}</tool_call>'


def _search(arguments: str) -> str:
    try:
        given = decode(arguments)
    except JsonTextError:
        given = {}
    given = given if isinstance(given, dict) else {}
    need = str(given.get("query") or "")
    slot = str(given.get("slot") or " ".join(need.split()[:3]))
    return f"<search_tool>{slot}: {need}</search_tool>"
