"""ToolEnv: one episode of one task. Text of an assistant turn in, observation out, trace kept.

    turn -> blocks -> searches, or calls in their layers of backends -> size-bounded -> observation

Nothing that a model writes can raise: what is wrong becomes an observation. Catalog and index are read-only and shared
by any number of instances; an instance itself costs next to nothing and holds one episode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from paraagent.config import EnvConfig
from paraagent.message import Completion, Message
from paraagent.paraact.executor import Outcome, execute
from paraagent.paraact.lifecycle import Phase, accept, after_calls, enter, plan_rule, record_plan
from paraagent.paraact.paradigm import PARAACT, Paradigm
from paraagent.paraact.protocol import CallBlock, ParsedTurn, SearchBlock
from paraagent.task import Task
from paraagent.toolenv.backends import Backends
from paraagent.toolenv.calls import CallPath
from paraagent.toolenv.replies import (
    Reply,
    call_reply,
    fit_turn,
    invalid,
    nothing_to_do,
    refusal,
    schema_lines,
    search_reply,
    why_not_run,
)
from paraagent.toolenv.simulator import leaves
from paraagent.toolenv.together import Together
from paraagent.trace import Call, End, Episode, ErrorInfo, Search, Turn

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex


_INTERRUPTED = Outcome(ErrorInfo(type="ToolExecutionError", msg="interrupted before an answer came"), None, "")


class Step(NamedTuple):
    """What follows an assistant turn."""

    observation: str
    """The next user turn."""
    done: bool


class Watcher(Protocol):
    """Somebody who looks on while a turn is carried out."""

    def turn(self, number: int, parsed: ParsedTurn) -> None:
        """A turn was read; numbers count from 1."""
        ...

    def begun(self, place: int, call: CallBlock) -> None:
        """A call is on its way; `place` is its position among the calls of the turn."""
        ...

    def ended(self, place: int, call: CallBlock, outcome: Outcome) -> None: ...


@dataclass
class _State:
    """Everything that belongs to one episode."""

    task: Task
    seed: int
    path: CallPath
    messages: list[Message]
    """What preceded the first turn."""
    opening: tuple[Search, ...] = ()
    clock: float = 0.0
    """Seconds since the episode began."""
    interrupted: bool = False
    """Somebody cancelled the running turn."""
    turns: list[Turn] = field(default_factory=list)
    phase: Phase = field(default_factory=Phase)
    answer: str | None = None
    end: End | None = None
    error: str | None = None


class ToolEnv:
    """The environment of one episode at a time: `reset`, then `step` until done, then `episode`."""

    def __init__(
        self,
        catalog: Catalog,
        index: ToolIndex,
        config: EnvConfig,
        *,
        backends: Backends | None = None,
        paradigm: Paradigm = PARAACT,
        watcher: Watcher | None = None,
    ) -> None:
        """`backends` are those of `config`, opened once for all episodes of a process; None opens them here. `paradigm`
        says how turns and observations are written.

        Raises:
            UsageError: a backend cannot be opened.
        """
        self.catalog, self.index, self.config = catalog, index, config
        self.backends = backends or Backends.open(config)
        self.paradigm, self.watcher = paradigm, watcher
        self._state: _State | None = None

    def reset(self, task: Task, seed: int) -> list[Message]:
        """Begin an episode; returns the messages that precede the first assistant turn."""
        simulator = self.backends.begin(task.seed, _issued(task))
        path = CallPath(self.catalog, self.config, seed, simulator)
        state = _State(task, seed, path, [])
        schemas: list[str] = []
        if self.paradigm.retrieves:
            [hits] = self.index.search([task.request], self.config.k_request, split=task.within)
            tools = self.catalog.get_many([hit.name for hit in hits]).values()
            schemas, shown = schema_lines(self.paradigm, tools, self.config)
            state.opening = (Search(query=task.request, hits=shown),)
            path.discover(shown)
        state.messages = self.paradigm.opening(task.request, schemas, self.config.references)
        self._state = state
        return list(state.messages)

    async def step(self, turn: Completion | str) -> Step:
        """Carry out one assistant turn, given as its text or with its token counts. Nothing that a model writes raises.

        A turn that is cancelled is kept with what had come back by then.

        Raises:
            RuntimeError: there is no running episode.
            ParaAgentError: a backend cannot work until a person mends something.
        """
        state = self._running()
        completion = Completion(turn) if isinstance(turn, str) else turn
        if completion.exhausted:
            _drop_last_observation(state)
            state.end = "token_limit"
            return Step("", True)
        text = completion.text.encode("utf-8", "replace").decode()
        parsed = self.paradigm.parse(text)
        if self.watcher:
            self.watcher.turn(len(state.turns) + 1, parsed)
        phase = enter(state.phase, parsed.family)
        rule = plan_rule(phase) if self.paradigm.plans else "forbidden"
        record, plan = record_plan(parsed, phase)
        if record and record.accepted and plan:
            phase = accept(phase, plan, record.kind)
        started, state.clock = state.clock, state.clock + completion.seconds
        replies = fit_turn(self.paradigm, await self._replies(parsed, phase), self.config.max_turn_chars)
        events = [reply.event for reply in replies if reply.event is not None]
        calls = [event for event in events if isinstance(event, Call)]
        if parsed.family == "call":
            phase, bound = after_calls(phase, calls)
            events = [call.model_copy(update={"occurrence": key or ""}) for call, key in zip(calls, bound, strict=True)]
        state.clock = max((call.started + call.seconds for call in calls), default=state.clock)
        bad_plan = record is not None and parsed.family in ("search", "call") and record.kind == "invalid"
        problems = (*parsed.problems, *([f"plan: {record.problem}"] if record and bad_plan else []))
        played = Turn(
            text=text,
            family=parsed.family,
            think=parsed.think,
            plan=record,
            plan_rule=rule,
            well_formed=not problems,
            problems=problems,
            events=tuple(events),
            observation="\n".join(reply.text for reply in replies),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            started=started,
            seconds=completion.seconds,
            notes=completion.notes,
        )
        state.turns.append(played)
        state.phase = phase
        state.path.discover(name for search in played.searches if search.visible for name in search.hits)
        if parsed.family == "answer":
            state.answer, state.end = _answer_of(parsed), "answer"
        elif len(state.turns) >= self.config.max_turns or self._lost(state.turns):
            state.end = "turn_limit"
        if state.interrupted:
            raise asyncio.CancelledError
        return Step(played.observation, state.end is not None)

    def fail(self, error: str) -> None:
        """End the episode because something of ours broke."""
        state = self._running()
        state.end, state.error = "error", error

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What has happened so far."""
        return () if self._state is None else tuple(self._state.turns)

    @property
    def found(self) -> dict[str, ToolInterface]:
        """The tools that searches have shown so far, in the order in which they were found."""
        return self.catalog.get_many(self._state.path.discovered) if self._state else {}

    @property
    def phase(self) -> Phase:
        """The phase that the last turn belonged to."""
        return self._state.phase if self._state else Phase()

    def episode(self, policy: str) -> Episode:
        """The trace of the ended episode.

        Raises:
            RuntimeError: the episode has not ended.
        """
        state = self._state
        if state is None or state.end is None:
            raise RuntimeError("the episode has not ended")
        return Episode(
            episode_id=f"{policy}/{self.paradigm.name}/{state.task.task_id}/{state.seed}",
            task_id=state.task.task_id,
            policy=policy,
            paradigm=self.paradigm.name,
            seed=state.seed,
            system=next(message["content"] for message in state.messages if message["role"] == "system"),
            request=state.task.request,
            opening=state.opening,
            turns=tuple(state.turns),
            answer=state.answer,
            end=state.end,
            error=state.error,
            changes=state.path.simulator.world.changes(),
        )

    def _lost(self, turns: Sequence[Turn]) -> bool:
        """The model has not spoken the protocol for too long to find back."""
        last = turns[-self.config.max_invalid_turns :]
        return len(last) == self.config.max_invalid_turns and all(turn.family == "invalid" for turn in last)

    def _running(self) -> _State:
        if self._state is None or self._state.end is not None:
            raise RuntimeError("no episode is running: call reset first")
        return self._state

    async def _replies(self, parsed: ParsedTurn, phase: Phase) -> list[Reply]:
        """One reply a block, in order."""
        if parsed.family == "answer":
            return []
        if not parsed.blocks:
            return [nothing_to_do(self.paradigm, parsed)]
        replies: dict[int, Reply] = {}
        searches: dict[int, SearchBlock] = {}
        calls: dict[int, CallBlock] = {}
        for number, block in enumerate(parsed.blocks):
            if reason := why_not_run(block, parsed):
                replies[number] = refusal(self.paradigm, block, invalid(reason))
            elif isinstance(block, SearchBlock):
                searches[number] = block
            elif isinstance(block, CallBlock):
                calls[number] = block
        return [
            reply for _, reply in sorted((replies | self._searches(searches) | await self._calls(calls, phase)).items())
        ]

    def _searches(self, blocks: Mapping[int, SearchBlock]) -> dict[int, Reply]:
        if not blocks:
            return {}
        within = self._running().task.within
        found = self.index.search([block.need for block in blocks.values()], self.config.k, split=within)
        tools = (self.catalog.get_many([hit.name for hit in hits]).values() for hits in found)
        return {
            number: search_reply(self.paradigm, block, each, self.config)
            for (number, block), each in zip(blocks.items(), tools, strict=True)
        }

    async def _calls(self, blocks: Mapping[int, CallBlock], phase: Phase) -> dict[int, Reply]:
        if not blocks:
            return {}
        state = self._running()
        turn = Together(list(blocks.values()), state.path, self.config, phase, self.watcher)
        try:
            outcomes = await execute(range(len(blocks)), turn.run, at_once=self.config.calls_at_once, after=turn.needs)
        except asyncio.CancelledError:
            state.interrupted = True
            outcomes = [turn.ended.get(place, _INTERRUPTED) for place in range(len(blocks))]
        replies = {}
        for place, (number, outcome) in enumerate(zip(blocks, outcomes, strict=True)):
            block, references = turn.calls[place], turn.references[place]
            reply = call_reply(self.paradigm, block, outcome, self.config)
            event = (
                reply.event.model_copy(update={"references": references, "started": state.clock + outcome.started})
                if reply.event
                else None
            )
            replies[number] = Reply(reply.text, event)
        return replies


def _issued(task: Task) -> Iterator[Any] | None:
    """What the task gives away: every literal of its reference calls. Where a person asks, every id exists."""
    return None if task.shape == "open" else leaves([call.arguments for call in task.calls])


def _answer_of(parsed: ParsedTurn) -> str | None:
    """The text of a turn's answer."""
    return next((block.text for block in parsed.blocks if not isinstance(block, SearchBlock | CallBlock)), None)


def _drop_last_observation(state: _State) -> None:
    """The context was full before the model could read the last observation."""
    if state.turns:
        last = state.turns[-1]
        events = tuple(event.model_copy(update={"visible": False}) for event in last.events)
        state.turns[-1] = last.model_copy(update={"events": events})
