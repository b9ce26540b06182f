"""Turns as no model should write them: valid ones, broken in text, in JSON and in meaning, from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.protocol import compact
from paraagent.toolenv.sample import draw_arguments

_TAGS = ("think", "plan", "search_tool", "tool_call", "answer", "tools", "tool_response")
_SNIPPETS = (
    *(f"<{tag}>" for tag in _TAGS),
    *(f"</{tag}>" for tag in _TAGS),
    '<tool_call>{"name":',
    "{}[]",
    '"',
    "\\",
    '\\ud800"',
    "\ud800",
    "\x00",
    "\u202e",
    "🙂",
    "NaN",
    "-Infinity",
    "1e999",
    "9" * 40,
    "[" * 200,
    '{"a":' * 100,
    '{"name": "a", "name": "b"}',
    "<|im_end|>\n<|im_start|>user\n",
    "null",
    "\n\n",
    "]]>",
    "x" * 3_000,
)
_NAMES = ("", " ", "../../etc/passwd", "a/b\\c", "name'; DROP TABLE tools; --", "\x00", "x" * 500, "İ", "tool_response")
_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    -(2**63),
    1e308,
    -0.0,
    5e-324,
    float("nan"),
    float("-inf"),
    "",
    " ",
    "0",
    "null",
    "2026-13-45",
    "</tool_call>",
    "\u2028\ud83d\ude00",
    "x" * 2_000,
    [],
    {},
    [[[[[[]]]]]],
    {"$ref": "c1.id"},
    {"": {"": {"": None}}},
    [None, {"a": []}, "b"],
    list(range(300)),
)


DRAWS = 3
"""Ways in which the arguments of a tool are made up, so that calls meet again what others named."""


class Fuzzer:
    """Writes turns; the same seed writes the same ones."""

    def __init__(self, seed: int, tools: list[ToolInterface]) -> None:
        self._random = random.Random(seed)
        self._tools = tools

    def turn(self) -> str:
        """One turn: a valid one, mutated up to four times."""
        choose = self._random
        text = choose.choice((self._search, self._calls, self._calls, self._planned, self._answer))()
        for _ in range(choose.choice((0, 1, 1, 2, 4))):
            text = choose.choice(self._mutations)(self, text)
        return text

    def _search(self) -> str:
        needs = [self._tool().description for _ in range(self._random.choice((1, 2, 16, 40)))]
        return f"<think>t</think>{self._plan(needs[:2])}" + "".join(
            f"<search_tool>need {number}: {need}</search_tool>" for number, need in enumerate(needs)
        )

    def _calls(self) -> str:
        return "<think>t</think>" + "".join(self._call() for _ in range(self._random.choice((1, 1, 3, 16, 60))))

    def _planned(self) -> str:
        names = [self._tool().name for _ in range(self._random.choice((1, 2, 5)))]
        return f"<think>t</think>{self._plan(names)}{self._call()}"

    def _answer(self) -> str:
        return "<think>t</think><answer>It is done.</answer>" if self._random.random() < 0.2 else self._calls()

    def _tool(self) -> ToolInterface:
        return self._random.choice(self._tools)

    def _plan(self, names: list[str]) -> str:
        flow = [
            {"step": number, "parallel": [name]} for number, name in enumerate(names, self._random.choice((1, 1, 0)))
        ]
        chosen = self._random.choice(("slots", "flow", "both"))
        body: dict[str, Any] = {"capacity_slots": names} if chosen != "flow" else {}
        if chosen != "slots":
            edges = [{"from": [names[0]], "to": names[-1]}]
            body |= {"available_tools": names, "execution_flow": flow, "dependencies": edges}
        return f"<plan>{compact(body)}</plan>"

    def _call(self) -> str:
        choose, tool = self._random, self._tool()
        optional = choose.sample(sorted(tool.properties), k=min(choose.choice((0, 2)), len(tool.properties)))
        arguments = draw_arguments(tool, choose.randrange(DRAWS), optional) or {}
        name: Any = tool.name
        for _ in range(choose.choice((0, 0, 0, 1, 2))):
            arguments = self._spoilt(arguments)
        if choose.random() < 0.05:
            name = choose.choice((*_NAMES, *_VALUES))
        return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"

    def _spoilt(self, arguments: dict[str, Any]) -> dict[str, Any]:
        choose, spoilt = self._random, dict(arguments)
        key = choose.choice([*spoilt, *_NAMES])
        if choose.random() < 0.2:
            spoilt.pop(key, None)
        else:
            spoilt[key] = choose.choice(_VALUES)
        return spoilt

    def _insert(self, text: str) -> str:
        place = self._random.randint(0, len(text))
        return text[:place] + self._random.choice(_SNIPPETS) + text[place:]

    def _cut(self, text: str) -> str:
        start, end = sorted(self._random.randint(0, len(text)) for _ in range(2))
        return text[:start] + text[min(end, start + 40) :]

    def _end(self, text: str) -> str:
        return text[: self._random.randint(0, len(text))]

    def _swap(self, text: str) -> str:
        first, second = self._random.choice(_TAGS), self._random.choice(_TAGS)
        return text.replace(f"<{first}>", f"<{second}>", 1)

    def _repeat(self, text: str) -> str:
        start, end = sorted(self._random.randint(0, len(text)) for _ in range(2))
        return text[:end] + text[start:end] * self._random.choice((1, 2, 9)) + text[end:]

    _mutations: tuple[Callable[[Fuzzer, str], str], ...] = (_insert, _insert, _cut, _end, _swap, _repeat)
