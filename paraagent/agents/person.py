"""A person as policy: turns come from a text stream, in the turn grammar or in a shorthand for hands.

    think TEXT      search NEED      call NAME {"argument": value}      answer TEXT      plan [{json}]

An empty line, or the end of the stream, sends the turn. A turn with a tag in it is sent as it was written.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import TextIO

import orjson

from paraagent.agents.policy import Conversation
from paraagent.message import Completion
from paraagent.paraact.protocol import compact

HELP = """\
  search NEED                find tools that do what you need; several lines search at once
  call NAME {"key": value}   call a tool; several lines call at once
  answer TEXT                end the episode
  think TEXT, plan {json}    before them, where you like; a bare `plan` plans what the turn does
An empty line sends the turn, quit leaves. Or write a turn as the model does: <think>…</think><search_tool>…"""
_VERBS = ("think", "plan", "search", "call", "answer")


class PersonPolicy:
    """Reads one turn after another from `source`; what a person should know goes to `notes`."""

    name = "person"
    group = 1
    lockstep = False

    def __init__(self, source: TextIO, notes: TextIO) -> None:
        self._source, self._notes = source, notes
        self._greeted = not source.isatty()

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation. Raises `EOFError` once the person has left."""
        return [Completion(self._turn(conversation.paradigm.plans)) for conversation in conversations]

    def _turn(self, tagged: bool) -> str:
        lines: list[str] = []
        if not self._greeted:
            print(HELP, file=self._notes)
            self._greeted = True
        while line := self._line():
            word = line.strip()
            if word == "quit":
                break
            if word in ("help", "?"):
                print(HELP, file=self._notes)
            elif word:
                lines.append(line.rstrip("\n"))
            elif lines:
                if turn := self._written(lines, tagged):
                    return turn
                lines = []
        turn = self._written(lines, tagged)
        if not turn:
            raise EOFError
        return turn

    def _line(self) -> str:
        if self._source.isatty():
            print("> ", end="", file=self._notes, flush=True)
            # A Ctrl-C just before a read that blocks would be heard after the next line only.
            while not select.select([self._source], [], [], 0.2)[0]:
                pass
        return self._source.readline()

    def _written(self, lines: Sequence[str], tagged: bool) -> str:
        """The turn in its grammar, of tags or of ReAct; empty where nothing of it can be made out."""
        whole = any("<" in line and ">" in line for line in lines) if tagged else "Action:" in "\n".join(lines)
        if whole and lines[0].split()[0] not in _VERBS:
            return "\n".join(lines)
        known = [line for line in lines if line.split()[0] in _VERBS]
        for line in lines:
            if line not in known:
                print(f"`{line.split()[0]}` is none of {', '.join(_VERBS)}: help says more", file=self._notes)
        if not known:
            return ""
        return turn_of(known) if tagged else action_of(known)


def turn_of(lines: Sequence[str]) -> str:
    """A turn in the turn grammar from lines of shorthand."""
    parts = [(line.split()[0], line.strip().partition(" ")[2].strip()) for line in lines]
    think = " ".join(rest for verb, rest in parts if verb == "think") or "By hand."
    searches = [_slot(rest) for verb, rest in parts if verb == "search"]
    calls = [rest.partition(" ") for verb, rest in parts if verb == "call"]
    plans = [
        rest or _plan([slot for slot, _ in searches], [name for name, _, _ in calls])
        for verb, rest in parts
        if verb == "plan"
    ]
    return "\n".join(
        [
            f"<think>{think}</think>",
            *(f"<plan>{plan}</plan>" for plan in plans),
            *(f"<search_tool>{slot}: {need}</search_tool>" for slot, need in searches),
            *(f"<tool_call>{_call(name, given)}</tool_call>" for name, _, given in calls),
            *(f"<answer>{rest}</answer>" for verb, rest in parts if verb == "answer"),
        ]
    )


def action_of(lines: Sequence[str]) -> str:
    """A turn of ReAct from lines of shorthand: its first action."""
    parts = [(line.split()[0], line.strip().partition(" ")[2].strip()) for line in lines]
    think = " ".join(rest for verb, rest in parts if verb == "think") or "By hand."
    for verb, rest in parts:
        if verb == "search":
            return f"Thought: {think}\nAction: search_tool\nAction Input: {compact({'query': rest})}"
        if verb == "call":
            name, _, given = rest.partition(" ")
            return f"Thought: {think}\nAction: {name}\nAction Input: {given.strip() or '{}'}"
        if verb == "answer":
            return f"Thought: {think}\nAction: Finish\nAction Input: {compact({'answer': rest})}"
    return f"Thought: {think}"


def _slot(text: str) -> tuple[str, str]:
    """Label and need of `label: need`, or of a need alone."""
    label, colon, need = text.partition(":")
    return (label.strip(), need.strip()) if colon else (" ".join(text.split()[:3]), text)


def _call(name: str, given: str) -> str:
    """The call with its arguments as they were written, so that what is wrong with them is told."""
    return f'{{"name": {orjson.dumps(name).decode()}, "arguments": {given.strip() or "{}"}}}'


def _plan(slots: Sequence[str], names: Sequence[str]) -> str:
    """A plan of what the turn does: its searches, or its calls side by side."""
    if slots or not names:
        return compact({"capacity_slots": slots})
    flow = [{"step": 1, "parallel": names}]
    return compact({"available_tools": list(dict.fromkeys(names)), "execution_flow": flow, "dependencies": []})
