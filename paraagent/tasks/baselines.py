"""What must not solve a task: policies that leave out one thing that the reference does right.

Each plays the reference except for its one fault. A task on which a fault cannot be made (a single call has no wrong
order) is not played by that baseline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from paraagent.agents.loop import run_episodes
from paraagent.agents.oracle import OraclePolicy
from paraagent.agents.policy import Completion, Conversation
from paraagent.config import EnvConfig, RewardConfig
from paraagent.paraact.protocol import AnswerBlock, ParsedTurn, render
from paraagent.rewards.score import score
from paraagent.seeds import derive
from paraagent.task import ReferenceCall, Task
from paraagent.tasks.target import literal
from paraagent.tasks.verify import swapped
from paraagent.toolenv.env import ToolEnv

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.trace import Episode

Fault = Literal["answer at once", "guess ids", "wrong order", "second-best tool", "one value changed"]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class Rate(NamedTuple):
    """How a baseline did."""

    solved: int
    played: int


class FaultyPolicy:
    """Plays what the oracle would play if `plans` were the references; answers at once where a task has no plan."""

    lockstep = False

    def __init__(self, name: str, plans: Mapping[str, Task | None], group: int = 64) -> None:
        self.name, self.group, self._plans = name, group, plans
        self._oracle = OraclePolicy(group)

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation."""
        return [await self._turn(conversation) for conversation in conversations]

    async def _turn(self, conversation: Conversation) -> Completion:
        plan = self._plans[conversation.task.task_id]
        if plan is None:
            return Completion(render(ParsedTurn("I say what the request says.", None, (_echo(conversation.task),))))
        planned = Conversation(task=plan, seed=conversation.seed, messages=conversation.messages)
        [completion] = await self._oracle.act([planned])
        return completion


def solve_rates(
    tasks: Sequence[Task], catalog: Catalog, index: ToolIndex, env: EnvConfig, seed: int = 0
) -> dict[Fault, Rate]:
    """How many of the tasks each baseline solves, of those where its fault can be made."""
    rates: dict[Fault, Rate] = {}
    for fault in FAULTS:
        played, episodes = play_faulty(tasks, fault, catalog, index, env, seed)
        rewards = RewardConfig()
        solved = [score(task, episode, rewards).solved for task, episode in zip(played, episodes, strict=True)]
        rates[fault] = Rate(sum(solved), len(played))
    return rates


def play_faulty(
    tasks: Sequence[Task], fault: Fault, catalog: Catalog, index: ToolIndex, env: EnvConfig, seed: int = 0
) -> tuple[list[Task], list[Episode]]:
    """The tasks on which a fault can be made, and the episodes of the baseline that makes it."""
    played = [task for task in tasks if applies(task, fault)]
    policy = FaultyPolicy(fault, {task.task_id: faulty(task, fault, catalog, seed) for task in played})
    units = [(task, seed) for task in played]
    return played, asyncio.run(run_episodes(policy, lambda: ToolEnv(catalog, index, env.calm), units))


def applies(task: Task, fault: Fault) -> bool:
    """Whether a fault can be made on a task; only tasks with calls have any."""
    if fault in ("guess ids", "wrong order"):
        return bool(task.hard_edges)
    if fault == "second-best tool":
        return any(task.distractors)
    if fault == "one value changed":
        return any(len(call.references) < len(call.arguments) for call in task.calls)
    return bool(task.calls)


def faulty(task: Task, fault: Fault, catalog: Catalog, seed: int) -> Task | None:
    """The reference with the fault in it; None for answering at once."""
    tools = catalog.get_many([*task.targets, *task.distractors])
    if fault == "answer at once":
        return None
    if fault == "guess ids":
        return task.model_copy(update={"calls": tuple(_guessed(call, tools, seed) for call in task.calls)})
    if fault == "wrong order":
        guessed = tuple(_guessed(call, tools, seed) for call in task.calls)
        return task.model_copy(
            update={"calls": tuple(reversed(guessed)), "hard_edges": tuple((b, a) for a, b in task.hard_edges)}
        )
    if fault == "second-best tool":
        slot, other = next((slot, name) for slot, name in zip(task.slots, task.distractors, strict=True) if name)
        return swapped(task, tools[slot.tool], tools[other])
    return _one_changed(task, tools, seed)


def _echo(task: Task) -> AnswerBlock:
    """The request itself: whatever of the answer stood in it would be said."""
    return AnswerBlock(task.request)


def _guessed(call: ReferenceCall, tools: Mapping[str, ToolInterface], seed: int) -> ReferenceCall:
    guesses = {name: literal(tools[call.tool], name, derive(seed, "guess", call.id)) for name in call.references}
    return call.model_copy(update={"arguments": {**call.arguments, **guesses}})


def _one_changed(task: Task, tools: Mapping[str, ToolInterface], seed: int) -> Task:
    places = [
        (place, name) for place, call in enumerate(task.calls) for name in call.arguments if name not in call.references
    ]
    place, name = places[derive(seed, "place", task.task_id) % len(places)]
    call = task.calls[place]
    tries = (literal(tools[call.tool], name, derive(seed, "changed", task.task_id, number)) for number in range(8))
    value = next((other for other in tries if other != call.arguments[name]), call.arguments[name])
    changed = call.model_copy(update={"arguments": {**call.arguments, name: value}})
    return task.model_copy(update={"calls": (*task.calls[:place], changed, *task.calls[place + 1 :])})
