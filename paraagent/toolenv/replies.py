"""What each block of a turn gets back: text for the model, and an event for the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paraagent.config import EnvConfig
from paraagent.paraact.executor import Outcome
from paraagent.paraact.paradigm import Paradigm, error_text
from paraagent.paraact.protocol import AnswerBlock, Block, CallBlock, ParsedTurn, SearchBlock, compact
from paraagent.paraact.schema import clip, render_schema
from paraagent.toolenv.limits import SMALLEST_ROOM, fit_json
from paraagent.trace import Call, ErrorInfo, Event, Search

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface

_MESSAGE = 600
"""Characters of an error that are shown."""


class Reply(NamedTuple):
    """What one block gets; no event where nothing was attempted."""

    text: str
    event: Event | None


def invalid(message: str) -> ErrorInfo:
    return ErrorInfo(type="InvalidRequestError", msg=clip(message, _MESSAGE))


def why_not_run(block: Block, parsed: ParsedTurn) -> str:
    """Why a block of a turn is not carried out; empty where it is."""
    if block.problem:
        return block.problem
    if isinstance(block, AnswerBlock):
        return "an answer counts only alone: send one <answer> and nothing else"
    family = "search" if isinstance(block, SearchBlock) else "call"
    return "" if parsed.runs == family else "not run: send searches and calls in different turns"


def nothing_to_do(paradigm: Paradigm, parsed: ParsedTurn) -> Reply:
    """For a turn without any block."""
    return Reply(error_text(paradigm, "", invalid(parsed.problems[-1])), None)


def refusal(paradigm: Paradigm, block: Block, error: ErrorInfo) -> Reply:
    """For a block that is not carried out."""
    if isinstance(block, SearchBlock):
        return Reply(_search_error(paradigm, error), None)
    if isinstance(block, CallBlock):
        name = block.name.strip()
        event = Call(name=name, arguments=block.arguments, error=error)
        return Reply(error_text(paradigm, name, error), event)
    return Reply(error_text(paradigm, "answer", error), None)


def search_reply(paradigm: Paradigm, block: SearchBlock, tools: Iterable[ToolInterface], config: EnvConfig) -> Reply:
    """The tools found, best first, as many as fit."""
    lines, shown = schema_lines(paradigm, tools, config)
    return Reply(paradigm.tools(lines), Search(slot=block.slot, query=block.need, hits=shown))


def schema_lines(
    paradigm: Paradigm, tools: Iterable[ToolInterface], config: EnvConfig
) -> tuple[list[str], tuple[str, ...]]:
    """A line for each tool and the tools' names, as many as fit into one observation."""
    lines: list[str] = []
    shown: list[str] = []
    for tool in tools:
        line = render_schema(tool, config.max_schema_chars)
        if len(paradigm.tools([*lines, line])) <= config.max_observation_chars:
            lines.append(line)
            shown.append(tool.name)
    return lines, tuple(shown)


def call_reply(paradigm: Paradigm, block: CallBlock, outcome: Outcome, config: EnvConfig) -> Reply:
    """The result of a call, as much of it as fits, or its error."""
    name, error, result = block.name.strip(), outcome.error, None
    if error is not None:
        error = ErrorInfo(type=error.type, msg=clip(error.msg, _MESSAGE))
        text = error_text(paradigm, name, error)
    else:
        room = config.max_observation_chars - len(paradigm.response(name, ""))
        result = fit_json(outcome.result, max(min(config.max_result_chars, room), SMALLEST_ROOM))
        text = paradigm.response(name, result)
    event = Call(
        name=name,
        arguments=block.arguments,
        error=error,
        result=result,
        backend=outcome.backend,
        injected=outcome.injected,
        started=outcome.started,
        seconds=outcome.seconds,
        attempts=outcome.attempts,
    )
    return Reply(text, event)


def fit_turn(paradigm: Paradigm, replies: Sequence[Reply], max_chars: int) -> list[Reply]:
    """Keep the replies of one turn that fit together; the others say that they were left out."""
    kept, left = [], max_chars
    for reply in replies:
        if len(reply.text) <= left:
            left -= len(reply.text)
            kept.append(reply)
        else:
            kept.append(_left_out(paradigm, reply))
    return kept


def _left_out(paradigm: Paradigm, reply: Reply) -> Reply:
    error = invalid("left out: the results of this turn are too long together; ask for less at once")
    event = reply.event.model_copy(update={"visible": False}) if reply.event else None
    if isinstance(reply.event, Call):
        return Reply(error_text(paradigm, reply.event.name, error), event)
    return Reply(_search_error(paradigm, error), event)


def _search_error(paradigm: Paradigm, error: ErrorInfo) -> str:
    return paradigm.tools([compact({"error": error.model_dump()})])
