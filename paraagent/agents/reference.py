"""What a task's reference says, in the words of its request: for the oracle and for the scripted team.

Labels and fact names are words of the request, so that a model can copy them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from paraagent.paraact.protocol import compact, fold
from paraagent.task import Atom, ReferenceCall, Task
from paraagent.toolenv.identifiers import words

_EMPTY_WORD = re.compile(
    "a|about|all|an|and|any|as|at|be|by|details?|find|for|from|get|given?|in|info|information|into|is|it|its|list|me|my|"
    "of|on|one|or|our|retrieve|search|show|single|some|specific|that|the|their|this|to|up|with|your",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<!['’])\b[\w-]+")
_LABEL_WORDS = 2


def slot_labels(task: Task) -> dict[str, str]:
    """A short, distinct label for each different slot text: its first telling words after the verb."""
    labels: dict[str, str] = {}
    for slot in task.slots:
        telling = [word for word in _WORD.findall(slot.text)[1:] if not _EMPTY_WORD.fullmatch(word)]
        label = " ".join(telling[:_LABEL_WORDS]) or "need"
        if slot.text not in labels:
            taken = {fold(other) for other in labels.values()}
            labels[slot.text] = label if fold(label) not in taken else f"{label} {len(labels) + 1}"
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


def tool_labels(task: Task) -> dict[str, str]:
    """The label of the need that each target serves."""
    labels = slot_labels(task)
    return {slot.tool: labels[slot.text] for slot in task.slots}


def numbered(calls: Sequence[ReferenceCall]) -> dict[str, str]:
    """`name#i` of each call of one turn, by id."""
    seen: Counter[str] = Counter()
    found = {}
    for call in calls:
        seen[call.tool] += 1
        found[call.id] = f"{call.tool}#{seen[call.tool]}"
    return found


def plan_of(
    layers: Sequence[Sequence[ReferenceCall]],
    edges: Iterable[tuple[str, str]],
    tool: Callable[[ReferenceCall], str] = lambda call: call.tool,
) -> dict[str, Any]:
    """The execution plan of calls in layers, edges between their ids; the i-th planned call of a tool is its i-th call.

    `tool` says which tool a call goes to, where it is not the reference's own.
    """
    calls = [call for layer in layers for call in layer]
    totals, seen, names = Counter(map(tool, calls)), Counter[str](), dict[str, str]()
    for call in calls:
        seen[tool(call)] += 1
        names[call.id] = tool(call) if totals[tool(call)] == 1 else f"{tool(call)}#{seen[tool(call)]}"
    before = {
        call.id: [names[first] for first, second in edges if second == call.id and first in names] for call in calls
    }
    return {
        "available_tools": list(dict.fromkeys(map(tool, calls))),
        "execution_flow": [
            {"step": number, "parallel": [tool(call) for call in layer]} for number, layer in enumerate(layers, 1)
        ],
        "dependencies": [{"from": first, "to": names[key]} for key, first in before.items() if first],
    }


def facts(task: Task, results: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, value) of each fact that is asked for and that the results hold, as an answer says them."""
    labels = [fact_label(atom, task.request) for atom in task.atoms]
    totals, of_tool = Counter(labels), tool_labels(task)
    tools = {call.id: call.tool for call in task.calls}
    found = []
    for atom, label in zip(task.atoms, labels, strict=True):
        value = read(results.get(atom.call), atom.path)
        if value is not None:
            whose = f" ({of_tool.get(tools[atom.call], 'other')})" if totals[label] > 1 else ""
            found.append((f"{label}{whose}", said(value)))
    return found


def went_well(response: Any) -> bool:
    """Whether a response of a call is there and no error."""
    result = response.get("result") if isinstance(response, dict) else {"error": None}
    return not (isinstance(result, dict) and "error" in result)


def read(response: Any, path: str) -> str | int | float | bool | None:
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


def said(value: str | int | float | bool) -> str:
    """A value as an answer says it, in the digits of the observation."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else compact(value)


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
