"""The turn grammar: what one assistant turn may say, read from any text and written back.

    <think>…</think> [<plan>{json}</plan>] then one family, at most 16 blocks:
    N × <search_tool>slot: what the tool must do</search_tool>
    N × <tool_call>{"name": …, "arguments": {…}}</tool_call>
    one <answer>…</answer>

`parse` accepts every string. A block that is wrong keeps its place with a sentence that says why, and never hides the
good blocks around it: text runs to its closing tag, but not past another opening tag; JSON runs as far as it is JSON,
whatever tags its strings mention. `parse(render(turn)) == turn`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from paraagent.files import canonical_json
from paraagent.paraact.jsontext import JsonTextError, decode_at, skip_space
from paraagent.trace import Family

MAX_BLOCKS = 16
"""Blocks of one turn that are read; more are left out and make the turn ill-formed."""
MAX_BLOCK_CHARS = 100_000
"""A longer search or call is not carried out."""
_NAME_CHARS = 64
"""Characters that a tool's name may have."""

_OPEN = re.compile(r"<(think|plan|search_tool|tool_call|answer)>")
_OPEN_BLOCK = re.compile(r"<(?:search_tool|tool_call|answer)>")
_BOUNDARY = {
    "think": re.compile(r"<(/?)think>"),
    **{
        tag: re.compile(rf"<(?:(/){tag}|think|plan|search_tool|tool_call|answer)>")
        for tag in ("plan", "search_tool", "tool_call", "answer")
    },
}
_JSON_TAGS = ("plan", "tool_call")


@dataclass(frozen=True)
class SearchBlock:
    """`slot: what the tool must do`; without a problem, neither part is empty."""

    slot: str
    need: str
    problem: str = ""


@dataclass(frozen=True)
class CallBlock:
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class AnswerBlock:
    text: str
    problem: str = ""


Block = SearchBlock | CallBlock | AnswerBlock
_FAMILY: dict[type[Block], Literal["search", "call", "answer"]] = {
    SearchBlock: "search",
    CallBlock: "call",
    AnswerBlock: "answer",
}


@dataclass(frozen=True)
class ParsedTurn:
    """One assistant turn. Surrounding white space of every part is gone; `plan` is the raw text of its block."""

    think: str | None = None
    plan: str | None = None
    blocks: tuple[Block, ...] = ()
    problems: tuple[str, ...] = ()
    """Everything that keeps the turn from being well-formed; the validity of the plan's JSON is not looked at here."""

    @property
    def family(self) -> Family:
        """What the turn does; `invalid` without a usable block or with several answers, `mixed` with several kinds."""
        kinds = {_FAMILY[type(block)] for block in self.blocks}
        if all(block.problem for block in self.blocks):
            return "invalid"
        if len(kinds) > 1:
            return "mixed"
        kind = kinds.pop()
        return "invalid" if kind == "answer" and len(self.blocks) > 1 else kind

    @property
    def runs(self) -> Literal["search", "call", "answer"] | None:
        """The family whose blocks are carried out: of mixed ones the first usable; an answer counts only alone."""
        family = self.family
        if family != "mixed":
            return None if family == "invalid" else family
        usable = [_FAMILY[type(block)] for block in self.blocks if not block.problem]
        return next((kind for kind in usable if kind != "answer"), None)


def parse(text: str) -> ParsedTurn:
    """Read one assistant turn. Never raises; linear in the length of the text."""
    think: str | None = None
    plan: str | None = None
    blocks: list[Block] = []
    problems: list[str] = []
    stray = False
    at = 0
    while opening := _OPEN.search(text, at):
        stray = stray or skip_space(text, at) < opening.start()
        if len(blocks) == MAX_BLOCKS and _OPEN_BLOCK.match(text, opening.start()):
            more = sum(1 for _ in _OPEN_BLOCK.finditer(text, opening.start()))
            problems.append(f"{more} blocks too many: a turn has at most {MAX_BLOCKS}, the rest is not read")
            at = len(text)
            break
        tag = opening[1]
        first_plan = tag == "plan" and plan is None
        value, fault, content, at, closed = _read(text, tag, opening.end(), tag == "tool_call" or first_plan)
        unclosed = "" if closed else f"<{tag}> is not closed: end it with </{tag}>"
        if tag == "think":
            problems += _place_problems(tag, think is not None, plan is not None or bool(blocks), unclosed)
            think = content if think is None else think
        elif tag == "plan":
            problems += _place_problems(tag, plan is not None, bool(blocks), unclosed)
            plan = content if plan is None else plan
        else:
            block = _block(tag, content, value, unclosed, fault)
            blocks.append(block)
            if block.problem:
                problems.append(f"{tag} {sum(type(other) is type(block) for other in blocks)}: {block.problem}")
    stray = stray or skip_space(text, at) < len(text)
    if think is None:
        problems.insert(0, "no thought: begin the turn with <think>…</think>")
    if stray:
        problems.append("text outside of the tags")
    turn = ParsedTurn(think, plan, tuple(blocks), ())
    return ParsedTurn(think, plan, turn.blocks, tuple(dict.fromkeys(problems + _family_problems(turn))))


def render(turn: ParsedTurn) -> str:
    """Write a well-formed turn.

    Raises:
        ValueError: the grammar cannot say it (a text that holds a tag, surrounding white space, a problem, …).
    """
    parts = [] if turn.think is None else [f"<think>{turn.think}</think>"]
    if turn.plan is not None:
        parts.append(f"<plan>{turn.plan}</plan>")
    for block in turn.blocks:
        if isinstance(block, SearchBlock):
            parts.append(f"<search_tool>{block.slot}: {block.need}</search_tool>")
        elif isinstance(block, CallBlock):
            body = compact({"name": block.name, "arguments": block.arguments})
            parts.append(f"<tool_call>{body}</tool_call>")
        else:
            parts.append(f"<answer>{block.text}</answer>")
    text = "\n".join(parts)
    if turn.problems or parse(text) != turn:
        raise ValueError("this turn cannot be written in the turn grammar")
    return text


def compact(value: Any) -> str:
    """JSON in the order given, without spaces, safe inside a tag: no closing tag appears in it."""
    return orjson.dumps(value).decode().replace("</", "<\\/")


def call_identity(name: str, arguments: dict[str, Any]) -> tuple[str, bytes]:
    """What makes two calls the same: the name, trimmed and case-folded, and the key-sorted JSON of the arguments."""
    return fold(name), canonical_json(arguments)


def fold(name: str) -> str:
    """The form in which names compare."""
    return name.strip().casefold()


def _read(text: str, tag: str, start: int, as_json: bool) -> tuple[Any, str, str, int, bool]:
    """(JSON value, why there is none, content, position after the block, is it closed)."""
    fault = ""
    if as_json:
        try:
            value, end = decode_at(text, start)
        except JsonTextError as error:
            fault = str(error)
        else:
            close = skip_space(text, end)
            if text.startswith(f"</{tag}>", close):
                return value, "", text[start:close].strip(), close + len(tag) + 3, True
            fault = "more text follows the JSON value"
    boundary = _BOUNDARY[tag].search(text, start)
    if boundary and boundary[1]:
        return None, fault, text[start : boundary.start()].strip(), boundary.end(), True
    after = boundary if tag != "think" else _OPEN.search(text, start)
    end = after.start() if after else len(text)
    return None, fault, text[start:end].strip(), end, False


def _block(tag: str, content: str, value: Any, unclosed: str, fault: str) -> Block:
    too_long = ""
    if len(content) > MAX_BLOCK_CHARS:
        too_long = f"{len(content)} characters are too many: a block has at most {MAX_BLOCK_CHARS}"
    if tag == "search_tool" and too_long:
        return SearchBlock("", "", too_long)
    if tag == "search_tool":
        slot, colon, need = (part.strip() for part in content.partition(":"))
        if not colon:
            slot, need = "", content
        problem = unclosed or ("" if need else "nothing to search for: write `slot: what the tool must do`")
        return SearchBlock(slot, need, problem)
    if tag == "answer":
        return AnswerBlock(content, unclosed or ("" if content else "the answer is empty"))
    if unclosed or fault:
        return CallBlock("", {}, unclosed or f'{fault}; write {{"name": …, "arguments": {{…}}}}')
    return CallBlock(_call(value).name[:_NAME_CHARS], {}, too_long) if too_long else _call(value)


def _call(value: Any) -> CallBlock:
    form = 'write {"name": …, "arguments": {…}}'
    if not isinstance(value, dict):
        return CallBlock("", {}, f"a call is a JSON object; {form}")
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str) or not name.strip():
        return CallBlock("", {}, f"`name` must be the tool's name as a string; {form}")
    if not isinstance(arguments, dict):
        said = "is missing" if "arguments" not in value else "must be a JSON object"
        return CallBlock(name, {}, f"`arguments` {said}; {form}")
    extra = sorted(set(value) - {"name", "arguments"})
    if extra:
        return CallBlock(name, arguments, f"unknown key `{extra[0][:40]}` beside `name` and `arguments`; {form}")
    return CallBlock(name, arguments)


def _place_problems(tag: str, again: bool, late: bool, unclosed: str) -> list[str]:
    """What is wrong with where a thought or a plan stands."""
    problems = [unclosed] if unclosed else []
    if again:
        problems.append(f"more than one <{tag}>: only the first counts")
    elif late:
        problems.append("<think> must stand first" if tag == "think" else "<plan> must stand before the blocks")
    return problems


def _family_problems(turn: ParsedTurn) -> list[str]:
    if not turn.blocks:
        return ["nothing to do: add <search_tool>, <tool_call> or <answer> blocks"]
    kinds = list(dict.fromkeys(_FAMILY[type(block)] for block in turn.blocks))
    if len(kinds) > 1:
        return [f"{' and '.join(kinds)} blocks in one turn: send one family a turn"]
    problems = []
    if kinds == ["answer"] and len(turn.blocks) > 1:
        problems.append("more than one <answer>: an answer counts only alone")
    if any(isinstance(block, SearchBlock) and not block.slot and not block.problem for block in turn.blocks):
        problems.append("a search has no slot label: write `slot: what the tool must do`")
    return problems
