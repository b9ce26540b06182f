"""Import of demonstrations in the form of ShareGPT: `conversations` of `from` and `value`, as the authors' own are.

Every row is read or refused with a reason; none is dropped in silence. Files are JSON, JSON Lines or Parquet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from paraagent.errors import UsageError
from paraagent.message import Message
from paraagent.paraact.lifecycle import Phase, accept, after_calls, enter, plan_rule, record_plan
from paraagent.paraact.observation import read_responses, read_tools
from paraagent.paraact.plan import PlanError, parse_plan
from paraagent.paraact.prompt import paraact_prompt
from paraagent.paraact.protocol import AnswerBlock, Block, CallBlock, SearchBlock, compact, parse
from paraagent.trace import Call, Episode, ErrorInfo, Search, Turn

if TYPE_CHECKING:
    from paraagent.agents.transcript import Transcriber

_MARK = b"\xef\xbb\xbf"
"""What some editors put before a text in UTF-8."""
_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "observation": "user",
    "function_response": "user",
    "tool": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
}


class Imported(NamedTuple):
    """One row of the file."""

    number: int
    """Its place, from 1."""
    row: dict[str, Any] | None
    """The row of our data set; None where it cannot be used."""
    reason: str


def episode_of(row: dict[str, Any]) -> Episode:
    """The conversation of a row as a trace: what can be told of it without the world that it was played in."""
    messages, phase, turns = row["messages"], Phase(), list[Turn]()
    for place in range(2, len(messages), 2):
        parsed = parse(messages[place]["content"])
        observed = messages[place + 1]["content"] if place + 1 < len(messages) else ""
        phase = enter(phase, parsed.family)
        rule = plan_rule(phase)
        record, plan = record_plan(parsed, phase)
        if record and record.accepted and plan:
            phase = accept(phase, plan, record.kind)
        events: list[Search | Call] = list(_searches(parsed.blocks, observed))
        calls = list(_calls(parsed.blocks, observed))
        if parsed.family == "call":
            phase, bound = after_calls(phase, calls)
            events = [call.model_copy(update={"occurrence": key or ""}) for call, key in zip(calls, bound, strict=True)]
        turns.append(
            Turn(
                text=messages[place]["content"],
                family=parsed.family,
                think=parsed.think,
                plan=record,
                plan_rule=rule,
                well_formed=not parsed.problems,
                problems=parsed.problems,
                events=tuple(events),
                observation=observed,
            )
        )
    answer = next((block.text for block in parsed.blocks if isinstance(block, AnswerBlock)), None)
    return Episode(
        episode_id=f"imported/paraact/{row['task_id']}/0",
        task_id=row["task_id"],
        policy="imported",
        seed=0,
        system=messages[0]["content"],
        request=messages[1]["content"],
        turns=tuple(turns),
        answer=answer,
        end="answer",
    )


def _searches(blocks: Sequence[Block], observed: str) -> Iterator[Search]:
    found = read_tools(observed)
    for place, block in enumerate(block for block in blocks if isinstance(block, SearchBlock)):
        tools = found[place] if place < len(found) else []
        hits = tuple(str(tool["name"]) for tool in tools if isinstance(tool, dict) and "name" in tool)
        yield Search(slot=block.slot, query=block.need, hits=hits)


def _calls(blocks: Sequence[Block], observed: str) -> Iterator[Call]:
    responses = read_responses(observed)
    for place, block in enumerate(block for block in blocks if isinstance(block, CallBlock)):
        response = responses[place] if place < len(responses) else {}
        result = response.get("result") if isinstance(response, dict) else response
        error = result.get("error") if isinstance(result, dict) and result.keys() == {"error"} else None
        told = error if isinstance(error, dict) else {"type": "ToolExecutionError", "msg": str(error)}
        info = ErrorInfo(type=str(told.get("type")), msg=str(told.get("msg"))) if error else None
        yield Call(name=block.name, arguments=block.arguments, error=info, result=None if info else result)


class _UnusableError(Exception):
    """Why a row cannot be used."""


def read_sharegpt(path: Path, transcriber: Transcriber, max_tokens: int) -> Iterator[Imported]:
    """Every row of a file, in order.

    Raises:
        UsageError: the file is not there, or is no such file at all.
    """
    for number, found in enumerate(_rows(path), 1):
        try:
            row = _row(found, number, transcriber, max_tokens)
        except _UnusableError as reason:
            yield Imported(number, None, str(reason))
        else:
            yield Imported(number, row, "")


def _rows(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}: give the path of a JSON, JSON Lines or Parquet file")
    if path.suffix.lower() == ".parquet":
        yield from _parquet(path)
        return
    text = path.read_bytes().removeprefix(_MARK)
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith(b"[") or len(lines) < 2:  # one document, whatever the file is called
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise UsageError(f"{path} is no JSON ({error}): download it again") from None
        if isinstance(found, dict) and path.suffix.lower() == ".jsonl":
            found = [found]
        if not isinstance(found, list):
            raise UsageError(f"{path} should hold a list of rows: give the file of conversations itself")
        yield from found
        return
    for line in lines:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            yield None


def _parquet(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(batch_size=256):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        fault = str(error).splitlines()[0][:120]
        raise UsageError(f"{path} is damaged or no Parquet ({fault}): download it again") from None


def _row(found: Any, number: int, transcriber: Transcriber, max_tokens: int) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _UnusableError("no JSON object")
    said = found.get("conversations") or found.get("messages")
    if not isinstance(said, list) or not said:
        raise _UnusableError("no column conversations or messages")
    messages = [_message(each, place) for place, each in enumerate(said, 1)]
    if messages[0]["role"] != "system":
        system = found.get("system")
        text = system if isinstance(system, str) and system.strip() else paraact_prompt(references=False)
        messages = [{"role": "system", "content": text}, *messages]
    _check_order(messages)
    calls = _check_turns(messages)
    tokens = transcriber.render(messages)
    if len(tokens.ids) > max_tokens:
        raise _UnusableError("too long")
    observed = [message["content"] for message in messages if message["role"] == "user"]
    tools = [compact(tool) for text in observed for found_tools in read_tools(text) for tool in found_tools]
    key = hashlib.sha256(compact(messages).encode()).hexdigest()[:12]
    return {
        "task_id": f"imported-{number:06d}-{key}",
        "seed": 0,
        "messages": messages,
        "mistakes": [],
        "discovered_tools": list(dict.fromkeys(tools)),
        "shape": "open",
        "width": calls,
        "reach": "service",
        "split": "train",
        "recoveries": [],
        "n_turns": sum(message["role"] == "assistant" for message in messages),
        "n_tokens": len(tokens.ids),
        "n_model_tokens": sum(tokens.mask),
    }


def _message(each: Any, place: int) -> Message:
    if not isinstance(each, dict):
        raise _UnusableError(f"message {place} is no object")
    role, text = each.get("from", each.get("role")), each.get("value", each.get("content"))
    if not isinstance(role, str) or role not in _ROLES:
        raise _UnusableError(f"message {place} is from {str(role)[:40]!r}, which is no known role")
    if not isinstance(text, str) and text is not None:
        raise _UnusableError(f"message {place} is no text")
    if not text or not text.strip():
        raise _UnusableError(f"message {place} is empty")
    return {"role": _ROLES[role], "content": text}


def _check_order(messages: Sequence[Message]) -> None:
    for place, message in enumerate(messages):
        wanted = "system" if place == 0 else ("user", "assistant")[(place + 1) % 2]
        if message["role"] != wanted:
            raise _UnusableError(f"message {place + 1} should be from the {wanted}, not the {message['role']}")
    if messages[-1]["role"] != "assistant":
        raise _UnusableError("the agent does not have the last word")


def _check_turns(messages: Sequence[Message]) -> int:
    """The number of calls; every turn must keep to the grammar and the last one must answer."""
    calls = 0
    turns = [message["content"] for message in messages if message["role"] == "assistant"]
    for number, text in enumerate(turns, 1):
        turn = parse(text)
        if turn.problems:
            raise _UnusableError(f"turn {number}: {turn.problems[0]}")
        if turn.plan is not None:
            try:
                parse_plan(turn.plan, "search" if turn.family == "search" else "call")
            except PlanError as error:
                raise _UnusableError(f"turn {number}: plan: {error}") from None
        calls += sum(isinstance(block, CallBlock) for block in turn.blocks)
        if (number == len(turns)) != (turn.family == "answer"):
            said = "does not answer" if number == len(turns) else "answers although more turns follow"
            raise _UnusableError(f"turn {number} {said}")
        if not all(isinstance(block, SearchBlock | CallBlock) for block in turn.blocks) and number < len(turns):
            raise _UnusableError(f"turn {number} mixes kinds of blocks")
    return calls
