"""OraclePolicy: the reference solution, said in the fewest words that a small model can learn from.

It takes from the task which tool fits which need and the arguments of each call; the facts of its answer it reads from
the observation, as any agent must. Needs, labels and fact names are words of the request, so that they can be copied;
the wording varies with the seed. Its turns: search for every need at once, make the calls of each layer of the
reference at once, answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from paraagent.agents.policy import Completion, Conversation
from paraagent.paraact.observation import read_responses
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import AnswerBlock, CallBlock, ParsedTurn, SearchBlock, compact, render
from paraagent.seeds import rng
from paraagent.task import Atom, Task
from paraagent.toolenv.identifiers import words

_COUNTS = {2: "Two", 3: "Three", 4: "Four"}
_EMPTY_WORD = re.compile(
    "a|about|all|an|and|any|as|at|be|by|details?|find|for|from|get|given?|in|info|information|into|is|it|its|list|me|my|"
    "of|on|one|or|our|retrieve|search|show|single|some|specific|that|the|their|this|to|up|with|your",
    re.IGNORECASE,
)
_LABEL_WORDS = 2
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


class OraclePolicy:
    """Solves every task by its reference."""

    name = "oracle"

    def __init__(self, group: int = 64) -> None:
        self.group = group

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation."""
        return [Completion(render(_turn(conversation))) for conversation in conversations]


def slot_labels(task: Task) -> dict[str, str]:
    """A short, distinct label for each different slot text: its first telling words after the verb."""
    labels: dict[str, str] = {}
    for slot in task.slots:
        telling = [word for word in re.findall(r"[\w-]+", slot.text)[1:] if not _EMPTY_WORD.fullmatch(word)]
        label = " ".join(telling[:_LABEL_WORDS]) or "need"
        if slot.text not in labels:
            labels[slot.text] = label if label not in labels.values() else f"{label} {len(labels) + 1}"
    return labels


def fact_label(atom: Atom, request: str) -> str:
    """How the answer names an atom: the words of its place in the result, as far as the request uses them."""
    names = [part for part in atom.path.split(".") if not part.isdigit()]
    leaf = words(names[-1]) if names else ()
    holder = words(names[-2]) if len(names) > 1 else ()
    moment = (*leaf[:-1], "time") if leaf[-1:] == ("at",) else leaf
    forms = [" ".join(form) for form in ((*holder, *leaf), leaf, moment, leaf[1:], leaf[:-1]) if form]
    asked = [form for form in forms if re.search(rf"\b{re.escape(form)}\b", request.casefold())]
    return next(iter(asked), " ".join(leaf) or "result")


def _turn(conversation: Conversation) -> ParsedTurn:
    task, number = conversation.task, sum(message["role"] == "assistant" for message in conversation.messages)
    choices = rng(conversation.seed, "oracle", task.task_id, number)
    seen = [message["content"] for message in conversation.messages if message["role"] == "user"][1:]
    if task.shape == "no-tool":
        return ParsedTurn(_KNOWN, None, (AnswerBlock(" ".join(_said(atom.value) for atom in task.atoms)),))
    if number == 0:
        return _search(task, choices)
    results = _results(task, seen[1:])
    layers = task.layers
    if number <= len(layers) and (turn := _call(task, number - 1, results, choices)) is not None:
        return turn
    return _answer(task, results, choices)


def _search(task: Task, choices: random.Random) -> ParsedTurn:
    labels = slot_labels(task)
    form = choices.choice(_ONE_NEED if len(labels) == 1 else _NEEDS)
    think = form.format(count=_COUNTS.get(len(labels), "Several"), needs=_listed(list(labels.values())))
    blocks = tuple(SearchBlock(label, text) for text, label in labels.items())
    return ParsedTurn(think, compact({"capacity_slots": list(labels.values())}), blocks)


def _call(task: Task, layer: int, results: Mapping[str, Any], choices: random.Random) -> ParsedTurn | None:
    """The calls of one layer, the first with the plan of all; None where an earlier result lacks what they need."""
    blocks: list[CallBlock] = []
    taken: list[str] = []
    for call in task.layers[layer]:
        arguments = dict(call.arguments)
        for name, (source, path) in call.references.items():
            arguments[name] = value = _read(results.get(source), path)
            if value is None:
                return None
            taken.append(_said(value))
        blocks.append(CallBlock(call.tool, arguments))
    labels = _tool_labels(task)
    if layer == 0:
        form = choices.choice(_FITS)
        think = " ".join(form.format(tool=tool, label=label) for tool, label in labels.items())
        return ParsedTurn(think, compact(_plan(task)), tuple(blocks))
    needs = dict.fromkeys(labels[block.name] for block in blocks)
    think = choices.choice(_NEXT).format(values=_listed(list(dict.fromkeys(taken))), needs=_listed(list(needs)))
    return ParsedTurn(think, None, tuple(blocks))


def _plan(task: Task) -> dict[str, Any]:
    """The execution plan of the whole reference; the i-th planned call of a tool is its i-th reference call."""
    totals, seen, names = Counter(call.tool for call in task.calls), Counter[str](), {}
    for call in (call for layer in task.layers for call in layer):
        seen[call.tool] += 1
        names[call.id] = call.tool if totals[call.tool] == 1 else f"{call.tool}#{seen[call.tool]}"
    before = {call.id: [names[first] for first, second in task.hard_edges if second == call.id] for call in task.calls}
    return {
        "available_tools": list(task.targets),
        "execution_flow": [
            {"step": number, "parallel": [call.tool for call in layer]} for number, layer in enumerate(task.layers, 1)
        ],
        "dependencies": [{"from": first, "to": names[key]} for key, first in before.items() if first],
    }


def _tool_labels(task: Task) -> dict[str, str]:
    labels = slot_labels(task)
    return {slot.tool: labels[slot.text] for slot in task.slots}


def _results(task: Task, observations: Sequence[str]) -> dict[str, Any]:
    """What each reference call gave, read from the observations of its layer."""
    found: dict[str, Any] = {}
    for layer, observation in zip(task.layers, observations, strict=False):
        found.update(zip((call.id for call in layer), read_responses(observation), strict=False))
    return found


def _answer(task: Task, results: Mapping[str, Any], choices: random.Random) -> ParsedTurn:
    if task.shape == "unsolvable":
        return ParsedTurn(choices.choice(_NONE_FITS), None, (AnswerBlock(NO_TOOL_ANSWER),))
    labels = [fact_label(atom, task.request) for atom in task.atoms]
    totals = Counter(labels)
    of_tool = _tool_labels(task)
    tools = {call.id: call.tool for call in task.calls}
    facts: list[str] = []
    sentences: list[str] = []
    for atom, label in zip(task.atoms, labels, strict=True):
        value = _read(results.get(atom.call), atom.path)
        if value is not None:
            whose = f" ({of_tool.get(tools[atom.call], 'other')})" if totals[label] > 1 else ""
            facts.append(f"the {label}{whose}")
            sentences.append(f"The {label}{whose} is {_said(value)}.")
    if not task.atoms and all(_went_well(results.get(change.call)) for change in task.state):
        return ParsedTurn(choices.choice(_CHANGED), None, (AnswerBlock("Done."),))
    think = choices.choice(_FOUND).format(facts=_listed(facts)) if facts else _MISSING
    return ParsedTurn(think, None, (AnswerBlock(" ".join(sentences) or _MISSING),))


def _went_well(response: Any) -> bool:
    result = response.get("result") if isinstance(response, dict) else {"error": None}
    return not (isinstance(result, dict) and "error" in result)


def _read(response: Any, path: str) -> str | int | float | bool | None:
    """The scalar at a dotted path of a response's result; None where there is none."""
    value = response.get("result") if isinstance(response, dict) else None
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value if isinstance(value, str | int | float) else None


def _said(value: str | int | float | bool) -> str:
    """A value as an answer says it, in the digits of the observation."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else compact(value)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
