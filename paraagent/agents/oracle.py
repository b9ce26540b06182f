"""OraclePolicy: the reference solution, said in the fewest words that a small model can learn from.

It takes from the task which tool fits which need and the arguments of each call; the facts of its answer it reads from
the observation, as any agent must. Needs, labels and fact names are words of the request, so that they can be copied;
the wording varies with the seed. Its turns: search for every need at once, make the calls of each layer of the
reference at once, answer. To measure what acting together is worth, it can also take one action a turn, as the
baselines do, or send dependent calls in one turn that refer to each other's results.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from paraagent.agents.policy import Completion, Conversation
from paraagent.agents.reference import facts, listed, numbered, plan_of, read, said, slot_labels, tool_labels, went_well
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import AnswerBlock, CallBlock, ParsedTurn, SearchBlock, compact
from paraagent.seeds import rng
from paraagent.task import ReferenceCall, Task

_COUNTS = {2: "Two", 3: "Three", 4: "Four"}
_ONE_NEED = ("One need: {needs}. I search for it.", "I need a tool for {needs}.", "I look for {needs}.")
_NEEDS = (
    "{count} needs: {needs}. I search for all at once.",
    "{count} separate needs: {needs}. I search for them together.",
    "I need tools for {needs}. One search each, together.",
)
_FITS = ("{tool} fits {label}.", "For {label}: {tool}.", "{tool} does {label}.")
_FOUND = ("I have {facts}.", "The results give {facts}.", "I read {facts}.")
_NEXT = ("The result gives {values}. Now {needs}.", "I have {values}; next {needs}.", "With {values} I can do {needs}.")
_CHANGED = ("The change went through.", "That is done.", "The call went well.")
_NONE_FITS = ("None of these tools does it.", "No tool that was found fits.", "The tools found do something else.")
_KNOWN = "This needs no tool."
_MISSING = "The results do not say it."


Pace = Literal["layers", "single", "references"]
"""What one turn does: every call that is ready, one action, or all calls, which refer to each other."""


class OraclePolicy:
    """Solves every task by its reference. Under ReAct it takes one action a turn."""

    name = "oracle"
    lockstep = False

    def __init__(self, group: int = 64, pace: Pace = "layers") -> None:
        self.group, self.pace = group, pace

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation."""
        return [
            Completion(conversation.paradigm.render(_turn(conversation, self.pace))) for conversation in conversations
        ]


class _Step(NamedTuple):
    """What one turn before the answer does: searches for these needs, or makes these calls."""

    needs: tuple[str, ...] = ()
    calls: tuple[ReferenceCall, ...] = ()


def _turn(conversation: Conversation, pace: Pace) -> ParsedTurn:
    task, number = conversation.task, sum(message["role"] == "assistant" for message in conversation.messages)
    choices = rng(conversation.seed, "oracle", task.task_id, number)
    seen = [message["content"] for message in conversation.messages if message["role"] == "user"][1:]
    if task.shape == "no-tool":
        return ParsedTurn(_KNOWN, None, (AnswerBlock(" ".join(said(atom.value) for atom in task.atoms)),))
    plans = conversation.paradigm.plans
    steps = _steps(task, pace if plans else "single", searches=not conversation.paradigm.retrieves)
    responses = conversation.paradigm.read_responses
    results = {
        call.id: response
        for step, observation in zip(steps, seen, strict=False)
        for call, response in zip(step.calls, responses(observation) if step.calls else (), strict=False)
    }
    if number < len(steps):
        step = steps[number]
        turn = _search(task, step, choices) if step.needs else _call(task, step, results, choices)
        first = number == 0 or bool(steps[number - 1].needs) != bool(step.needs)
        if turn is not None:
            return turn if plans and first else _without_plan(turn, labels=plans)
    return _answer(task, results, choices)


def _steps(task: Task, pace: Pace, searches: bool) -> list[_Step]:
    needs = list(slot_labels(task)) if searches else []
    calls = [call for layer in task.layers for call in layer]
    if pace == "single":
        return [*(_Step(needs=(need,)) for need in needs), *(_Step(calls=(call,)) for call in calls)]
    layers = _referring(task) if pace == "references" else task.layers
    return [*([_Step(needs=tuple(needs))] if needs else []), *(_Step(calls=tuple(layer)) for layer in layers)]


def _referring(task: Task) -> list[list[ReferenceCall]]:
    """The calls in as few turns as references allow: one that needs another's change, not its result, comes later."""
    turn: dict[str, int] = {}
    calls = [call for layer in task.layers for call in layer]
    for call in calls:
        taken = {source for source, _ in call.references.values()}
        before = [first for first, second in task.hard_edges if second == call.id]
        turn[call.id] = max((turn[first] + (first not in taken) for first in before), default=0)
    return [[call for call in calls if turn[call.id] == number] for number in range(max(turn.values(), default=-1) + 1)]


def _without_plan(turn: ParsedTurn, labels: bool) -> ParsedTurn:
    """The turn without its plan; without `labels`, searches say their need alone."""
    blocks = (
        SearchBlock("", block.need) if isinstance(block, SearchBlock) and not labels else block for block in turn.blocks
    )
    return ParsedTurn(turn.think, None, tuple(blocks))


def _search(task: Task, step: _Step, choices: random.Random) -> ParsedTurn:
    labels = slot_labels(task)
    meant = [labels[need] for need in step.needs]
    form = choices.choice(_ONE_NEED if len(meant) == 1 else _NEEDS)
    think = form.format(count=_COUNTS.get(len(meant), "Several"), needs=listed(meant))
    blocks = tuple(SearchBlock(labels[need], need) for need in step.needs)
    return ParsedTurn(think, compact({"capacity_slots": list(labels.values())}), blocks)


def _call(task: Task, step: _Step, results: Mapping[str, Any], choices: random.Random) -> ParsedTurn | None:
    """The calls of a step with the plan of all; None where an earlier result lacks what they need."""
    blocks: list[CallBlock] = []
    taken: list[str] = []
    names = numbered(step.calls)
    for call in step.calls:
        arguments = dict(call.arguments)
        for name, (source, path) in call.references.items():
            if source in names:
                arguments[name] = {"$ref": f"{names[source]}.{path}"}
                continue
            arguments[name] = value = read(results.get(source), path)
            if value is None:
                return None
            taken.append(said(value))
        blocks.append(CallBlock(call.tool, arguments))
    labels = tool_labels(task)
    if not taken:
        form = choices.choice(_FITS)
        called = dict.fromkeys(block.name for block in blocks)
        think = " ".join(
            form.format(tool=tool, label=label) for tool, label in labels.items() if tool in called or not results
        )
    else:
        needs = dict.fromkeys(labels[block.name] for block in blocks)
        think = choices.choice(_NEXT).format(values=listed(list(dict.fromkeys(taken))), needs=listed(list(needs)))
    return ParsedTurn(think, compact(plan_of(task.layers, task.hard_edges)), tuple(blocks))


def _answer(task: Task, results: Mapping[str, Any], choices: random.Random) -> ParsedTurn:
    if task.shape == "unsolvable":
        return ParsedTurn(choices.choice(_NONE_FITS), None, (AnswerBlock(NO_TOOL_ANSWER),))
    known = facts(task, results)
    if not task.atoms and all(went_well(results.get(change.call)) for change in task.state):
        return ParsedTurn(choices.choice(_CHANGED), None, (AnswerBlock("Done."),))
    think = choices.choice(_FOUND).format(facts=listed([f"the {label}" for label, _ in known])) if known else _MISSING
    text = " ".join(f"The {label} is {value}." for label, value in known) or _MISSING
    return ParsedTurn(think, None, (AnswerBlock(text),))
