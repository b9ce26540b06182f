"""ToolEnv: one episode of one task. Text of an assistant turn in, observation out, trace kept.

    tool known? -> arguments valid? -> simulator -> size-bounded -> observation

Nothing that a model writes can raise: what is wrong becomes an observation. Catalog and index are read-only and shared
by any number of instances; an instance itself costs next to nothing and holds one episode.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from paraagent.config import EnvConfig
from paraagent.message import Completion, Message
from paraagent.paraact.executor import Outcome, ToolError, execute
from paraagent.paraact.lifecycle import Phase, accept, after_calls, bind, enter, judge, plan_rule
from paraagent.paraact.observation import error_block, response_block, tools_block, tools_error
from paraagent.paraact.plan import Plan, PlanError, parse_plan
from paraagent.paraact.prompt import SYSTEM_PROMPT
from paraagent.paraact.protocol import Block, CallBlock, ParsedTurn, SearchBlock, call_identity, fold, parse
from paraagent.paraact.schema import clip, render_schema
from paraagent.task import Split, Task
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator
from paraagent.trace import Call, End, Episode, ErrorInfo, Event, PlanRecord, Search, Turn

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import Hit, ToolIndex

_MESSAGE = 600
"""Characters of an error that are shown."""


class Step(NamedTuple):
    """What follows an assistant turn."""

    observation: str
    """The next user turn."""
    done: bool


class _Reply(NamedTuple):
    """What one block gets: text for the model and, unless nothing was attempted, an event."""

    text: str
    event: Event | None


@dataclass
class _State:
    """Everything that belongs to one episode."""

    task: Task
    seed: int
    simulator: GroundedSimulator
    turns: list[Turn] = field(default_factory=list)
    phase: Phase = field(default_factory=Phase)
    discovered: dict[str, str] = field(default_factory=dict)
    """Folded name -> name of every tool that a visible search result showed."""
    answer: str | None = None
    end: End | None = None
    error: str | None = None


class ToolEnv:
    """The environment of one episode at a time: `reset`, then `step` until done, then `episode`."""

    def __init__(self, catalog: Catalog, index: ToolIndex, config: EnvConfig, *, split: Split | None = None) -> None:
        """`split` restricts searches to the services of that split; None searches everything."""
        self.catalog, self.index, self.config, self.split = catalog, index, config, split
        self._state: _State | None = None

    def reset(self, task: Task, seed: int) -> list[Message]:
        """Begin an episode; returns the messages that precede the first assistant turn."""
        self._state = _State(task, seed, GroundedSimulator(task.seed, _issued(task)))
        return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": task.request}]

    async def step(self, completion: Completion) -> Step:
        """Carry out one assistant turn. Never raises for anything a model can write.

        Raises:
            RuntimeError: there is no running episode.
        """
        state = self._running()
        if completion.exhausted:
            _drop_last_observation(state)
            state.end = "token_limit"
            return Step("", True)
        text = completion.text.encode("utf-8", "replace").decode()
        parsed = parse(text)
        phase = enter(state.phase, parsed.family)
        rule = plan_rule(phase)
        record, plan = _judge_plan(parsed, phase)
        if record and record.accepted and plan:
            phase = accept(phase, plan, record.kind)
        replies = self._fit(await self._replies(parsed, phase))
        events = tuple(reply.event for reply in replies if reply.event is not None)
        bad_plan = record is not None and parsed.family in ("search", "call") and record.kind == "invalid"
        problems = (*parsed.problems, *([f"plan: {record.problem}"] if record and bad_plan else []))
        turn = Turn(
            text=text,
            family=parsed.family,
            think=parsed.think,
            plan=record,
            plan_rule=rule,
            well_formed=not problems,
            problems=problems,
            events=events,
            observation="\n".join(reply.text for reply in replies),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
        )
        state.turns.append(turn)
        state.phase = after_calls(phase, turn.calls) if parsed.family == "call" else phase
        hits = (name for search in turn.searches if search.visible for name in search.hits)
        state.discovered.update((fold(name), name) for name in hits)
        if parsed.family == "answer":
            state.answer, state.end = _answer_of(parsed), "answer"
        elif len(state.turns) >= self.config.max_turns or self._lost(state.turns):
            state.end = "turn_limit"
        return Step(turn.observation, state.end is not None)

    def fail(self, error: str) -> None:
        """End the episode because something of ours broke."""
        state = self._running()
        state.end, state.error = "error", error

    def episode(self, policy: str) -> Episode:
        """The trace of the ended episode.

        Raises:
            RuntimeError: the episode has not ended.
        """
        state = self._state
        if state is None or state.end is None:
            raise RuntimeError("the episode has not ended")
        return Episode(
            episode_id=f"{policy}/{state.task.task_id}/{state.seed}",
            task_id=state.task.task_id,
            policy=policy,
            seed=state.seed,
            system=SYSTEM_PROMPT,
            request=state.task.request,
            turns=tuple(state.turns),
            answer=state.answer,
            end=state.end,
            error=state.error,
            changes=state.simulator.world.changes(),
        )

    def _lost(self, turns: Sequence[Turn]) -> bool:
        """The model has not spoken the protocol for too long to find back."""
        last = turns[-self.config.max_invalid_turns :]
        return len(last) == self.config.max_invalid_turns and all(turn.family == "invalid" for turn in last)

    def _running(self) -> _State:
        if self._state is None or self._state.end is not None:
            raise RuntimeError("no episode is running: call reset first")
        return self._state

    async def _replies(self, parsed: ParsedTurn, phase: Phase) -> list[_Reply]:
        """One reply a block, in order."""
        if parsed.family == "answer":
            return []
        if not parsed.blocks:
            return [_Reply(error_block("", _invalid(parsed.problems[-1])), None)]
        replies: dict[int, _Reply] = {}
        running: list[tuple[int, Block]] = []
        for number, block in enumerate(parsed.blocks):
            refusal = block.problem or _not_run(block, parsed)
            if refusal:
                replies[number] = _refuse(block, _invalid(refusal))
            else:
                running.append((number, block))
        searches = [(number, block) for number, block in running if isinstance(block, SearchBlock)]
        calls = [(number, block) for number, block in running if isinstance(block, CallBlock)]
        found = (
            self.index.search([block.need for _, block in searches], self.config.k, split=self.split)
            if searches
            else []
        )
        for (number, block), hits in zip(searches, found, strict=True):
            replies[number] = self._search_reply(block, hits)
        made = await self._calls([block for _, block in calls], phase)
        for (number, block), outcome in zip(calls, made, strict=True):
            replies[number] = self._call_reply(block, outcome)
        return [replies[number] for number in range(len(parsed.blocks))]

    def _search_reply(self, block: SearchBlock, hits: Sequence[Hit]) -> _Reply:
        tools = self.catalog.get_many([hit.name for hit in hits])
        lines: list[str] = []
        shown: list[str] = []
        for name, tool in tools.items():
            line = render_schema(tool, self.config.max_schema_chars)
            if len(tools_block([*lines, line])) <= self.config.max_observation_chars:
                lines.append(line)
                shown.append(name)
        return _Reply(tools_block(lines), Search(query=block.need, hits=tuple(shown)))

    async def _calls(self, blocks: Sequence[CallBlock], phase: Phase) -> list[Outcome]:
        state = self._running()
        strict = self.config.controller == "strict"
        refusals = self._refusals(blocks, phase) if strict else [""] * len(blocks)

        async def run(numbered: tuple[CallBlock, str]) -> Outcome:
            block, refusal = numbered
            if refusal:
                raise ToolError("InvalidRequestError", refusal)
            tool = self._tool(block.name)
            if fault := check_arguments(tool, block.arguments):
                return Outcome(fault, None, "")
            response = state.simulator.call(tool, block.arguments)
            return Outcome(response.error, response.result, response.backend)

        return await execute(list(zip(blocks, refusals, strict=True)), run)

    def _refusals(self, blocks: Sequence[CallBlock], phase: Phase) -> list[str]:
        """Why the strict controller does not run a call; empty where it does."""
        discovered = self._running().discovered
        bound: list[str | None] = [""] * len(blocks)
        if phase.progress:
            calls = [(fold(block.name), call_identity(block.name, block.arguments)) for block in blocks]
            bound = bind(phase.progress, calls)
        reasons = []
        for block, key in zip(blocks, bound, strict=True):
            if fold(block.name) not in discovered:
                reasons.append("no search has returned this tool yet: search for it first")
            elif key is None:
                reasons.append("the plan does not have this call ready: call what it depends on first, or plan it")
            else:
                reasons.append("")
        return reasons

    def _tool(self, name: str) -> ToolInterface:
        discovered = self._running().discovered
        tool = self.catalog.get(discovered.get(fold(name), name.strip()))
        if tool is None:
            near = difflib.get_close_matches(fold(name)[:80], list(discovered), n=1)
            hint = f"did you mean {discovered[near[0]]}?" if near else "call a tool that a search returned"
            raise ToolError("ToolNotFoundError", f"there is no tool of this name; {hint}")
        return tool

    def _call_reply(self, block: CallBlock, outcome: Outcome) -> _Reply:
        name = block.name.strip()
        if outcome.error:
            error = ErrorInfo(type=outcome.error.type, msg=clip(outcome.error.msg, _MESSAGE))
            event = Call(name=name, arguments=block.arguments, error=error, backend=outcome.backend)
            return _Reply(error_block(name, error), event)
        result = fit_json(outcome.result, min(self.config.max_result_chars, self.config.max_observation_chars))
        event = Call(name=name, arguments=block.arguments, result=result, backend=outcome.backend)
        return _Reply(response_block(name, result), event)

    def _fit(self, replies: Sequence[_Reply]) -> list[_Reply]:
        """Keep the replies of one turn that fit together; the others say that they were left out."""
        left = self.config.max_turn_chars
        kept = []
        for reply in replies:
            if len(reply.text) <= left:
                left -= len(reply.text)
                kept.append(reply)
            else:
                kept.append(_left_out(reply))
        return kept


def _issued(task: Task) -> Iterator[str]:
    """What the task gives away: every literal of its reference calls."""
    open_values: list[Any] = [call.arguments for call in task.calls]
    while open_values:
        value = open_values.pop()
        if isinstance(value, dict):
            open_values += value.values()
        elif isinstance(value, list):
            open_values += value
        else:
            yield str(value)


def _answer_of(parsed: ParsedTurn) -> str | None:
    """The text of a turn's answer."""
    return next((block.text for block in parsed.blocks if not isinstance(block, SearchBlock | CallBlock)), None)


def _judge_plan(parsed: ParsedTurn, phase: Phase) -> tuple[PlanRecord | None, Plan | None]:
    """What the turn's plan is, and the plan itself where it is valid."""
    if parsed.plan is None:
        return None, None
    if parsed.family != "search" and parsed.family != "call":
        return PlanRecord(raw=parsed.plan, body=None, kind="invalid", problem="this turn takes no plan"), None
    try:
        plan = parse_plan(parsed.plan, parsed.family)
    except PlanError as error:
        return PlanRecord(raw=parsed.plan, body=None, kind="invalid", problem=str(error)), None
    body = plan.model_dump(by_alias=True, exclude_unset=True)
    return PlanRecord(raw=parsed.plan, body=body, kind=judge(phase, plan)), plan


def _invalid(message: str) -> ErrorInfo:
    return ErrorInfo(type="InvalidRequestError", msg=clip(message, _MESSAGE))


def _not_run(block: Block, parsed: ParsedTurn) -> str:
    """Why a good block is not carried out; empty where it is."""
    if isinstance(block, SearchBlock):
        return "" if parsed.runs == "search" else "not run: send searches and calls in different turns"
    if isinstance(block, CallBlock):
        return "" if parsed.runs == "call" else "not run: send searches and calls in different turns"
    return "an answer counts only alone: send one <answer> and nothing else"


def _refuse(block: Block, error: ErrorInfo) -> _Reply:
    if isinstance(block, SearchBlock):
        return _Reply(tools_error(error), None)
    if isinstance(block, CallBlock):
        name = block.name.strip()
        return _Reply(error_block(name, error), Call(name=name, arguments=block.arguments, error=error))
    return _Reply(error_block("answer", error), None)


def _left_out(reply: _Reply) -> _Reply:
    error = _invalid("left out: the results of this turn are too long together; ask for less at once")
    event = reply.event.model_copy(update={"visible": False}) if reply.event else None
    if isinstance(reply.event, Call):
        return _Reply(error_block(reply.event.name, error), event)
    return _Reply(tools_error(error), event)


def _drop_last_observation(state: _State) -> None:
    """The context was full before the model could read the last observation."""
    if state.turns:
        last = state.turns[-1]
        events = tuple(event.model_copy(update={"visible": False}) for event in last.events)
        state.turns[-1] = last.model_copy(update={"events": events})
