"""ToolEnv: one episode of one task. Text of an assistant turn in, observation out, trace kept.

    turn -> blocks -> searches, or calls in their layers of backends -> size-bounded -> observation

Nothing that a model writes can raise: what is wrong becomes an observation. Catalog and index are read-only and shared
by any number of instances; an instance itself costs next to nothing and holds one episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from paraagent.config import EnvConfig
from paraagent.message import Completion, Message
from paraagent.paraact.executor import Outcome, ToolError, execute
from paraagent.paraact.lifecycle import Phase, accept, after_calls, bind, enter, judge, plan_rule
from paraagent.paraact.plan import Plan, PlanError, parse_plan
from paraagent.paraact.prompt import SYSTEM_PROMPT
from paraagent.paraact.protocol import CallBlock, ParsedTurn, SearchBlock, call_identity, fold, parse
from paraagent.task import Split, Task
from paraagent.toolenv.backends import Backends
from paraagent.toolenv.calls import CallPath
from paraagent.toolenv.replies import (
    Reply,
    call_reply,
    fit_turn,
    invalid,
    nothing_to_do,
    refusal,
    search_reply,
    why_not_run,
)
from paraagent.toolenv.simulator import leaves
from paraagent.trace import End, Episode, PlanRecord, Turn

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex


class Step(NamedTuple):
    """What follows an assistant turn."""

    observation: str
    """The next user turn."""
    done: bool


@dataclass
class _State:
    """Everything that belongs to one episode."""

    task: Task
    seed: int
    path: CallPath
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
        split: Split | None = None,
        backends: Backends | None = None,
    ) -> None:
        """`split` restricts searches to the services of that split; None searches everything.

        `backends` are those of `config`, opened once for all episodes of a process; None opens them here.

        Raises:
            UsageError: a backend cannot be opened.
        """
        self.catalog, self.index, self.config, self.split = catalog, index, config, split
        self.backends = backends or Backends.open(config)
        self._state: _State | None = None

    def reset(self, task: Task, seed: int) -> list[Message]:
        """Begin an episode; returns the messages that precede the first assistant turn."""
        simulator = self.backends.begin(task.seed, _issued(task))
        self._state = _State(task, seed, CallPath(self.catalog, self.config, seed, simulator))
        return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": task.request}]

    async def step(self, turn: Completion | str) -> Step:
        """Carry out one assistant turn, given as its text or with its token counts. Nothing that a model writes raises.

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
        parsed = parse(text)
        phase = enter(state.phase, parsed.family)
        rule = plan_rule(phase)
        record, plan = _judge_plan(parsed, phase)
        if record and record.accepted and plan:
            phase = accept(phase, plan, record.kind)
        replies = fit_turn(await self._replies(parsed, phase), self.config.max_turn_chars)
        events = tuple(reply.event for reply in replies if reply.event is not None)
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
            events=events,
            observation="\n".join(reply.text for reply in replies),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
        )
        state.turns.append(played)
        state.phase = after_calls(phase, played.calls) if parsed.family == "call" else phase
        state.path.discover(name for search in played.searches if search.visible for name in search.hits)
        if parsed.family == "answer":
            state.answer, state.end = _answer_of(parsed), "answer"
        elif len(state.turns) >= self.config.max_turns or self._lost(state.turns):
            state.end = "turn_limit"
        return Step(played.observation, state.end is not None)

    def fail(self, error: str) -> None:
        """End the episode because something of ours broke."""
        state = self._running()
        state.end, state.error = "error", error

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What has happened so far."""
        return () if self._state is None else tuple(self._state.turns)

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
            return [nothing_to_do(parsed)]
        replies: dict[int, Reply] = {}
        searches: dict[int, SearchBlock] = {}
        calls: dict[int, CallBlock] = {}
        for number, block in enumerate(parsed.blocks):
            if reason := why_not_run(block, parsed):
                replies[number] = refusal(block, invalid(reason))
            elif isinstance(block, SearchBlock):
                searches[number] = block
            elif isinstance(block, CallBlock):
                calls[number] = block
        replies |= self._searches(searches)
        outcomes = await self._calls(list(calls.values()), phase)
        for (number, call), outcome in zip(calls.items(), outcomes, strict=True):
            replies[number] = call_reply(call, outcome, self.config)
        return [replies[number] for number in range(len(parsed.blocks))]

    def _searches(self, blocks: Mapping[int, SearchBlock]) -> dict[int, Reply]:
        if not blocks:
            return {}
        found = self.index.search([block.need for block in blocks.values()], self.config.k, split=self.split)
        return {
            number: search_reply(block, self.catalog.get_many([hit.name for hit in hits]).values(), self.config)
            for (number, block), hits in zip(blocks.items(), found, strict=True)
        }

    async def _calls(self, blocks: Sequence[CallBlock], phase: Phase) -> list[Outcome]:
        state = self._running()
        strict = self.config.controller == "strict"
        refusals = self._refusals(blocks, phase) if strict else [""] * len(blocks)

        async def run(numbered: tuple[CallBlock, str]) -> Outcome:
            block, refusal = numbered
            if refusal:
                raise ToolError("InvalidRequestError", refusal)
            return await state.path.run(block.name, block.arguments)

        return await execute(list(zip(blocks, refusals, strict=True)), run)

    def _refusals(self, blocks: Sequence[CallBlock], phase: Phase) -> list[str]:
        """Why the strict controller does not run a call; empty where it does."""
        path = self._running().path
        bound: list[str | None] = [""] * len(blocks)
        if phase.progress:
            calls = [(fold(block.name), call_identity(block.name, block.arguments)) for block in blocks]
            bound = bind(phase.progress, calls)
        reasons = []
        for block, key in zip(blocks, bound, strict=True):
            if not path.knows(block.name):
                reasons.append("no search has returned this tool yet: search for it first")
            elif key is None:
                reasons.append("the plan does not have this call ready: call what it depends on first, or plan it")
            else:
                reasons.append("")
        return reasons


def _issued(task: Task) -> Iterator[Any]:
    """What the task gives away: every literal of its reference calls."""
    return leaves([call.arguments for call in task.calls])


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


def _drop_last_observation(state: _State) -> None:
    """The context was full before the model could read the last observation."""
    if state.turns:
        last = state.turns[-1]
        events = tuple(event.model_copy(update={"visible": False}) for event in last.events)
        state.turns[-1] = last.model_copy(update={"events": events})
