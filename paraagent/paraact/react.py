"""The turn grammar of ReAct, the baseline: one action a turn, in plain text (Yao et al. 2023).

    Thought: …
    Action: name of a tool, `search_tool`, or `Finish`
    Action Input: {json}

It is read into the same `ParsedTurn` as a turn of ParaAct, so that one environment carries out both. `parse` accepts
every string: only the first action counts, and an observation that the model wrote itself is cut off.
"""

from __future__ import annotations

import re
from typing import Any

from paraagent.paraact.jsontext import JsonTextError, decode_at
from paraagent.paraact.protocol import (
    MAX_BLOCK_CHARS,
    AnswerBlock,
    Block,
    CallBlock,
    ParsedTurn,
    SearchBlock,
    compact,
)

SEARCH, FINISH = "search_tool", "Finish"

_LABEL = re.compile(r"^[ \t]*(Thought|Action|Action Input|Observation)[ \t]*:[ \t]*", re.MULTILINE)
_FORM = "write Thought, Action and Action Input, each on a line of its own"
_NOT_YOURS = "an observation is not yours to write: end the turn after Action Input"
_NAME_CHARS = 64


def parse(text: str, *, searches: bool) -> ParsedTurn:
    """Read one turn; `searches` says whether `search_tool` is there, or a tool's name like any other. Never raises."""
    labels = {name: place for place in reversed(list(_LABEL.finditer(text))) for name in [place[1]]}
    action = labels.get("Action")
    thought, problems = _thought(text, labels)
    if action is None:
        return ParsedTurn(thought, None, (), (*problems, f"no action: {_FORM}"))
    name, _, rest = text[action.end() :].partition("\n")
    name = name.strip().strip("`*\"'")[:_NAME_CHARS]
    if "Observation" in labels and labels["Observation"].start() < action.start():
        problems.append(_NOT_YOURS)
    block, after = _block(name, text, action.end() + len(text[action.end() :]) - len(rest), searches)
    if block.problem:
        problems.append(block.problem)
    problems += _after(text, after)
    return ParsedTurn(thought, None, (block,), tuple(dict.fromkeys(problems)))


def render(turn: ParsedTurn, *, searches: bool) -> str:
    """Write a well-formed turn of one action.

    Raises:
        ValueError: the grammar cannot say it (several blocks, a plan, a search with a label, a problem, …).
    """
    if len(turn.blocks) != 1:
        raise ValueError("a turn of ReAct has one action")
    [block] = turn.blocks
    if isinstance(block, SearchBlock):
        name, given = SEARCH, {"query": block.need}
    elif isinstance(block, CallBlock):
        name, given = block.name, block.arguments
    else:
        name, given = FINISH, {"answer": block.text}
    text = f"Thought: {turn.think}\nAction: {name}\nAction Input: {compact(given)}"
    if turn.problems or parse(text, searches=searches) != turn:
        raise ValueError("this turn cannot be written in the turn grammar of ReAct")
    return text


def _thought(text: str, labels: dict[str, re.Match[str]]) -> tuple[str | None, list[str]]:
    thought, action = labels.get("Thought"), labels.get("Action")
    if thought is None or (action and action.start() < thought.start()):
        return None, ["no thought: begin the turn with Thought: …"]
    later = [place.start() for place in labels.values() if place.start() > thought.start()]
    problems = ["text before the thought"] if text[: thought.start()].strip() else []
    return text[thought.end() : min(later, default=len(text))].strip(), problems


def _block(name: str, text: str, start: int, searches: bool) -> tuple[Block, int]:
    """The action with its input, and the position after it."""
    given = _next_label(text, start)
    if given is None or given[1] != "Action Input":
        return _faulty(name, searches, f"no Action Input after the action: {_FORM}"), start
    following = _LABEL.search(text, given.end())
    until = following.start() if following else len(text)
    said = text[given.end() : until].strip()
    plain = not said.startswith("{") and (name == FINISH or (searches and name == SEARCH))
    try:
        value, end = decode_at(text, given.end())
    except JsonTextError as error:
        if not plain:
            return _faulty(name, searches, f"Action Input is {error}"), until
        value, end = said, until
    if plain and text[end:until].strip():
        value, end = said, until
    if end - given.end() > MAX_BLOCK_CHARS:
        return _faulty(name, searches, f"Action Input has more than {MAX_BLOCK_CHARS} characters"), end
    return _made(name, value, searches), end


def _made(name: str, value: Any, searches: bool) -> Block:
    if name == FINISH:
        answer = _only(value, "answer")
        return AnswerBlock(answer, "" if answer else 'Finish takes {"answer": "…"}, which may not be empty')
    if searches and name == SEARCH:
        need = _only(value, "query")
        return SearchBlock("", need, "" if need else 'search_tool takes {"query": "what the tool must do"}')
    if not name:
        return CallBlock("", {}, f"Action names no tool: {_FORM}")
    if not isinstance(value, dict):
        return CallBlock(name, {}, 'Action Input must be a JSON object: {"argument": value}')
    return CallBlock(name, value)


def _only(value: Any, key: str) -> str:
    """The text meant: of the one key, or all of it; empty where there is none."""
    if isinstance(value, dict):
        value = value.get(key) if value.keys() == {key} else None
    return (
        ""
        if value is None or isinstance(value, dict | list)
        else (value if isinstance(value, str) else compact(value)).strip()
    )


def _faulty(name: str, searches: bool, problem: str) -> Block:
    if name == FINISH:
        return AnswerBlock("", problem)
    return SearchBlock("", "", problem) if searches and name == SEARCH else CallBlock(name, {}, problem)


def _after(text: str, end: int) -> list[str]:
    """What is wrong with whatever follows the action."""
    if not text[end:].strip():
        return []
    label = _next_label(text, end)
    if label is None:
        return ["text after Action Input"]
    if label[1] == "Observation":
        return [_NOT_YOURS]
    return ["more than one action: only the first is carried out"]


def _next_label(text: str, start: int) -> re.Match[str] | None:
    """The label that comes next, if nothing stands before it."""
    label = _LABEL.search(text, start)
    return label if label and not text[start : label.start()].strip() else None
