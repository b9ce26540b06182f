"""A team of agents that writes episodes together: Planner, Explorer, Executor, Critic and Writer.

Each role is a question to one `RoleModel`, a language model behind an endpoint or a script, and answers with JSON of
the question's schema. One turn:

    Planner splits the request -> Explorer judges what was found, and searches -> Planner plans -> Executor calls or
    answers -> Critic sends the draft back, with a reason -> Writer says in a `<think>` why

What is certain is checked before the Critic is asked: a turn must keep to the grammar and use nothing that nobody has
seen. The rounds of a turn are bounded. What each role said is kept beside the turn in the trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args
from weakref import WeakKeyDictionary

from paraagent.agents.grounds import unseen, unseen_in
from paraagent.agents.policy import Completion, Conversation
from paraagent.chat import LlmError
from paraagent.errors import RunError
from paraagent.paraact.lifecycle import enter, plan_rule, refused
from paraagent.paraact.plan import PlanError, parse_plan
from paraagent.paraact.protocol import (
    AnswerBlock,
    Block,
    CallBlock,
    ParsedTurn,
    SearchBlock,
    call_identity,
    compact,
    fold,
    parse,
    render,
)
from paraagent.trace import Note, PlanRule

Role = Literal["planner", "explorer", "executor", "critic", "writer"]
Asked = Literal["split", "explore", "plan", "act", "check", "think"]
"""What a role is asked: the Planner to split the request or to plan calls, the others one thing each."""
ROLES: dict[Asked, Role] = {
    "split": "planner",
    "explore": "explorer",
    "plan": "planner",
    "act": "executor",
    "check": "critic",
    "think": "writer",
}
ROUNDS = 3
"""Drafts of one turn before the team gives up."""
PASSING = frozenset({"network", "timeout", "rate_limit", "unavailable", "denied", "rejected"})
"""Faults of an endpoint that say nothing about the episode, and neither does an answer that is no chat completion: the
episode is owed, not lost."""
_NOTE = 2_000
"""Characters of what a role said that the trace keeps."""
_MAX_BLOCKS = 16


class TeamError(RunError):
    """The team cannot write this turn: a role went round in circles, or gave nothing that can be used."""


@dataclass(frozen=True)
class Done:
    """A call that was made, and what the team saw of it."""

    name: str
    arguments: dict[str, Any]
    response: Any
    """`{"name", "result"}`; None where it was not shown."""

    @property
    def error(self) -> str:
        """Type of its error; empty where it succeeded."""
        result = self.response.get("result") if isinstance(self.response, dict) else {"error": {"type": "not shown"}}
        error = result.get("error") if isinstance(result, dict) and result.keys() == {"error"} else None
        return str(error.get("type", "unknown")) if isinstance(error, dict) else ""


@dataclass(frozen=True)
class Table:
    """What the team knows, which lies on the table before all of them."""

    needs: Mapping[str, str] | None = None
    """Slot -> what a tool must do; None before the request is split."""
    known: str = ""
    """The answer where no tool is needed."""
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What was searched for each slot."""
    hits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Slot -> tools that its searches returned, in that order."""
    fits: Mapping[str, str] = field(default_factory=dict)
    """Slot -> the tool chosen for it; empty where none will be found."""
    done: tuple[Done, ...] = ()
    turns: int = 0
    """Turns taken."""
    read: int = 0
    """Messages taken in."""

    @property
    def unsettled(self) -> list[str]:
        """Slots without a decision."""
        return [slot for slot in self.needs or () if slot not in self.fits]


@dataclass(frozen=True)
class Draft:
    """A turn as it lies before the Critic and the Writer."""

    blocks: tuple[Block, ...]
    plan: dict[str, Any] | None = None
    slip: str = ""
    """The imperfection that a script put in; empty as a rule."""


@dataclass(frozen=True)
class Question:
    """What a role is asked."""

    asked: Asked
    conversation: Conversation
    table: Table
    rule: PlanRule
    """What a plan is in a turn of calls now."""
    draft: Draft | None = None
    """For Critic and Writer; for the Planner the calls that a plan is wanted for, where these are known."""
    objection: str = ""
    """Why the last draft of this turn was sent back."""

    @property
    def role(self) -> Role:
        return ROLES[self.asked]


class RoleModel(Protocol):
    """Plays all roles."""

    async def ask(self, question: Question) -> dict[str, Any]:
        """JSON of the question's schema (`agents/roles.py`).

        Raises:
            LlmError: there is no answer, or none that can be used.
        """
        ...


class TeamPolicy:
    """The team as a policy, under ParaAct. Every episode has a table of its own."""

    lockstep = False

    def __init__(self, model: RoleModel, group: int = 64, name: str = "team") -> None:
        self.name, self.group = name, group
        self.lost: dict[tuple[str, int], str] = {}
        """Episodes (task, seed) that the endpoint broke off, and why."""
        self._model = model
        self._tables: WeakKeyDictionary[Conversation, Table] = WeakKeyDictionary()

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation.

        Raises:
            TeamError: the team cannot write it.
            LlmError: the endpoint gave no answer after all tries.
        """
        return list(await asyncio.gather(*map(self._turn, conversations)))

    async def _turn(self, conversation: Conversation) -> Completion:
        try:
            return await self._write(conversation)
        except LlmError as error:
            self.lost[conversation.task.task_id, conversation.seed] = str(error)
            raise

    async def _write(self, conversation: Conversation) -> Completion:
        table = take_in(self._tables.get(conversation, Table()), conversation)
        desk = _Desk(self._model, conversation)
        for _ in range(ROUNDS):
            try:
                draft, after = await desk.draft(table)
                text = await desk.finish(draft, after)
            except _SentBackError as reason:
                desk.objection = str(reason)
                continue
            self._tables[conversation] = replace(after, turns=after.turns + 1)
            return Completion(text, notes=tuple(desk.notes))
        number = f"the draft of turn {table.turns + 1} was sent back {ROUNDS} times, the last time since"
        raise TeamError(f"the team went round in circles: {number} {desk.objection}")


class _SentBackError(Exception):
    """A draft that goes no further, and why."""


class _Desk:
    """One turn in the making."""

    def __init__(self, model: RoleModel, conversation: Conversation) -> None:
        self.notes: list[Note] = []
        self.objection = ""
        self._model, self._conversation = model, conversation
        phase = conversation.phase()
        self._calling, self._searching = enter(phase, "call"), enter(phase, "search")

    async def draft(self, table: Table) -> tuple[Draft, Table]:
        """The next turn, and the table once it is taken."""
        if table.needs is None:
            split = await self._ask("split", table)
            needs = {_line(need["slot"]): _line(need["need"]) for need in split["needs"]}
            table = replace(table, needs=needs, known=split.get("answer") or "")
        if not table.needs:
            return Draft((AnswerBlock(table.known),)), table
        for _ in range(ROUNDS):
            if table.unsettled:
                found = await self._ask("explore", table)
                table = _settled(table, found)
                if found["searches"]:
                    return self._search(table, found)
                if table.unsettled:
                    raise _SentBackError(f"the Explorer neither searches nor decides: {', '.join(table.unsettled)}")
            plan = await self._plan(table) if self._calling.plan is None and any(table.fits.values()) else None
            said = await self._ask("act", table, Draft((), plan))
            if not said.get("missing"):
                return await self._act(table, said, plan)
            fits = {slot: tool for slot, tool in table.fits.items() if slot not in said["missing"]}
            if len(fits) == len(table.fits):
                raise _SentBackError("the Executor misses a tool for no known slot")
            table = replace(table, fits=fits)
        raise _SentBackError("Explorer and Executor pass a slot to and fro")

    async def finish(self, draft: Draft, table: Table) -> str:
        """The turn as text, if nothing speaks against it."""
        if reason := objection_to(draft, table, self._conversation):
            self.notes.append(Note(role="check", text=reason))
            raise _SentBackError(reason)
        verdict = await self._ask("check", table, draft)
        if not verdict["accept"]:
            raise _SentBackError(verdict.get("reason") or "the Critic gave no reason")
        thought = _line((await self._ask("think", table, draft))["think"])
        try:
            text = _render(draft, thought)
        except ValueError as error:
            raise _SentBackError(f"the thought cannot be written: {error}") from error
        if draft.slip:
            self.notes.append(Note(role="slip", text=draft.slip))
        return text

    def _search(self, table: Table, found: Mapping[str, Any]) -> tuple[Draft, Table]:
        wanted = [(_line(each["slot"]), _line(each["query"])) for each in found["searches"][:_MAX_BLOCKS]]
        needs = {**(table.needs or {}), **{slot: query for slot, query in wanted if slot not in (table.needs or {})}}
        table = replace(table, needs=needs)
        rule = plan_rule(self._searching)
        plan = {"capacity_slots": list(needs)} if rule == "required" else None
        if rule == "optional" and found.get("widen"):
            plan = {"capacity_slots": list(needs)}
        blocks = tuple(SearchBlock(slot, query) for slot, query in wanted)
        return Draft(blocks, plan, found.get("slip", "")), table

    async def _act(self, table: Table, said: Mapping[str, Any], plan: dict[str, Any] | None) -> tuple[Draft, Table]:
        if not said.get("calls"):
            return Draft((AnswerBlock(said.get("answer") or ""),), slip=said.get("slip", "")), table
        calls = tuple(CallBlock(call["name"], call["arguments"]) for call in said["calls"][:_MAX_BLOCKS])
        rule = plan_rule(self._calling)
        named = [(fold(call.name), call_identity(call.name, call.arguments), frozenset[int]()) for call in calls]
        if plan is None and (rule == "required" or (rule == "optional" and any(refused(self._calling, named)))):
            plan = await self._plan(table, calls)
        return Draft(calls, plan, said.get("slip", "")), table

    async def _plan(self, table: Table, calls: tuple[Block, ...] = ()) -> dict[str, Any]:
        said = await self._ask("plan", table, Draft(calls) if calls else None)
        flow = [[_line(name) for name in step] for step in said["steps"] if step]
        return {
            "available_tools": list(dict.fromkeys(name for step in flow for name in step)),
            "execution_flow": [{"step": number, "parallel": step} for number, step in enumerate(flow, 1)],
            "dependencies": [{"from": edge["from"], "to": edge["to"]} for edge in said.get("dependencies", ())],
        }

    async def _ask(self, asked: Asked, table: Table, draft: Draft | None = None) -> dict[str, Any]:
        rule = plan_rule(self._calling)
        question = Question(asked, self._conversation, table, rule, draft, self.objection)
        try:
            said = await self._model.ask(question)
        except LlmError as error:
            if error.fault in PASSING or error.garbled:
                raise
            if asked != "check":
                raise TeamError(f"the {question.role.capitalize()} gave nothing that can be used: {error}") from error
            said = {"accept": False, "reason": "the Critic gave no verdict that can be read"}
        self.notes.append(Note(role=question.role, text=compact(said)[:_NOTE]))
        return said


def take_in(table: Table, conversation: Conversation) -> Table:
    """The table with what the last observation showed."""
    messages = conversation.messages
    if len(messages) < 2 or messages[-2]["role"] != "assistant" or table.read == len(messages):
        return table
    turn, observed = parse(messages[-2]["content"]), messages[-1]["content"]
    searches = [block for block in turn.blocks if isinstance(block, SearchBlock)]
    queries, hits, done = dict(table.queries), dict(table.hits), list(table.done)
    for search, tools in zip(searches, conversation.paradigm.read_tools(observed), strict=False):
        names = [tool["name"] for tool in tools if isinstance(tool, dict) and "name" in tool]
        queries[search.slot] = (*queries.get(search.slot, ()), search.need)
        hits[search.slot] = tuple(dict.fromkeys((*hits.get(search.slot, ()), *names)))
    calls = [block for block in turn.blocks if isinstance(block, CallBlock)]
    responses = conversation.paradigm.read_responses(observed) if calls else []
    for place, call in enumerate(calls):
        response = responses[place] if place < len(responses) else None
        done.append(Done(call.name, call.arguments, response))
    return replace(table, queries=queries, hits=hits, done=tuple(done), read=len(messages))


def objection_to(draft: Draft, table: Table, conversation: Conversation) -> str:
    """What certainly speaks against a draft; empty where nothing does."""
    try:
        turn = parse(_render(draft, "t"))
    except ValueError as error:
        return f"the turn cannot be written ({error}): slots have no colon, texts no tags, and an answer is not empty"
    if turn.problems:
        return turn.problems[0]
    if draft.plan is not None:
        try:
            parse_plan(compact(draft.plan), "search" if isinstance(draft.blocks[0], SearchBlock) else "call")
        except PlanError as error:
            return f"the plan is not valid: {error}"
    shown = {fold(name) for names in table.hits.values() for name in names}
    calls = [block for block in draft.blocks if isinstance(block, CallBlock)]
    planned = draft.plan.get("available_tools", ()) if draft.plan else ()
    for name in (*planned, *(call.name for call in calls)):
        if fold(name) not in shown:
            return f"no search returned a tool named {name[:80]}"
    seen = [message["content"] for message in conversation.messages if message["role"] == "user"]
    for call in calls:
        if values := unseen(call.arguments, seen):
            return f"{call.name} is given {values[0][:80]}, which stands neither in the request nor in a result"
    [first, *_] = draft.blocks
    if isinstance(first, AnswerBlock) and any(table.fits.values()):
        if all(done.error for done in table.done):
            return "it answers before any call has succeeded"
        if made_up := unseen_in(first.text, seen):
            return f"the answer says {made_up[0][:80]}, which stands neither in the request nor in a result"
    return ""


def _render(draft: Draft, thought: str) -> str:
    """Raises ValueError where the grammar cannot say it."""
    return render(ParsedTurn(thought, None if draft.plan is None else compact(draft.plan), draft.blocks))


def _settled(table: Table, found: Mapping[str, Any]) -> Table:
    """The table with the Explorer's decisions about slots that it knows."""
    fits = dict(table.fits)
    for each in found.get("fits", ()):
        slot, tool = _line(each["slot"]), _line(each["tool"])
        if slot in (table.needs or {}):
            fits[slot] = tool
    return replace(table, fits=fits)


def _line(text: Any) -> str:
    return " ".join(str(text).split())


assert set(get_args(Asked)) == set(ROLES)
