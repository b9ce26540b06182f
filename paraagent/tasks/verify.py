"""What a task must withstand before it is kept; each check raises a counted `RejectionError`.

A target must be found by its slot among the episode's k, and no near-identical sibling may stand beside it: a regional
or version variant, or the list beside the get, which the request does not tell apart. The answer must hold in the
task's world, change with the world and with every argument, and not stand in the request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.config import EnvConfig, RewardConfig
from paraagent.retrieval.index import Hit
from paraagent.rewards.atoms import states
from paraagent.rewards.score import score
from paraagent.seeds import derive
from paraagent.task import ReferenceCall, Task
from paraagent.tasks.facts import answerable
from paraagent.tasks.play import does, play
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.target import literal
from paraagent.toolenv.identifiers import folded, singular, words

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex

READING = frozenset(
    [
        "get",
        "list",
        "describe",
        "find",
        "search",
        "fetch",
        "show",
        "read",
        "retrieve",
        "view",
        "query",
        "lookup",
        "by",
        "all",
        "batch",
        "index",
        "single",
        "detail",
        "details",
        "of",
        "the",
        "for",
    ]
)
"""Words of names and descriptions that say no more than that something is read."""
_VARIANT = re.compile(
    r"v?\d[\w.]*|alpha|beta|preview|legacy|new|us|eu|uk|ap|global|regional|region|zonal|central|east|west|north|south"
)
_SAME_TEXT = 0.75
"""Share of common words from which two descriptions say the same."""
_OTHER_WORLDS = 1
"""Further worlds in which the answer must read differently; eight were looked at when the facts were chosen."""
_REWARDS = RewardConfig()
MOST_WORDS = {0: 45, 1: 50, 2: 85, 3: 120}
"""Longest request by width, in words."""
_ALTERNATIVES = 2
"""Other values of an argument that are tried: each must give another answer."""


class Outline(NamedTuple):
    """What of a tool decides whether another one is its near-identical sibling."""

    name: str
    source_name: str
    effect: str
    description: str
    needs: frozenset[str]
    """Required parameters, by folded name."""
    takes: frozenset[str]
    """All parameters."""

    @classmethod
    def of(cls, tool: ToolInterface) -> Outline:
        needs, takes = (frozenset(map(folded, names)) for names in (tool.required, tool.properties))
        return cls(tool.name, tool.source_name, tool.effect, tool.description, needs, takes)


def check_found(
    tool: Outline, hits: Sequence[Hit], outlines: Mapping[str, Outline], targets: Collection[str] = ()
) -> None:
    """The hits of a slot hold the tool, and nothing that the request fits as well.

    The other `targets` of a task are no siblings: the request names what each of them is for.
    """
    if tool.name not in [hit.name for hit in hits]:
        raise RejectionError("slot does not find the tool")
    for hit in hits:
        if hit.name != tool.name and hit.name not in targets and is_sibling(tool, outlines[hit.name]):
            raise RejectionError("a near-identical sibling is found beside it")


def nearest(tool: Outline, hits: Sequence[Hit], outlines: Mapping[str, Outline]) -> tuple[str, float]:
    """The tool beside the target whose description is most like its own, and how much of their words they share."""
    wanted, best = _text(tool.description), ("", 0.0)
    for hit in hits:
        if hit.name != tool.name:
            other = _text(outlines[hit.name].description)
            likeness = len(wanted & other) / max(1, len(wanted | other))
            best = max(best, (hit.name, likeness), key=lambda pair: pair[1])
    return best


def difficulty(task: Task, likeness: float, optional: int) -> float:
    """0 … 1, from the layers and the calls, the likeness of the tools beside the targets, and optional parameters."""
    depth, width = min(1.0, (len(task.layers) - 1) / 2), min(1.0, (task.width - 1) / 2)
    parts = 0.3 * max(0.0, depth) + 0.25 * max(0.0, width) + 0.3 * likeness + 0.15 * min(1.0, optional / 12)
    return round(parts, 3)


def is_sibling(tool: Outline, other: Outline) -> bool:
    """Whether nothing in a request for a tool tells it from another one.

    The two do alike, differ in version, region or get/list alone or say the same of themselves, and what the request
    gives is just what the other one takes.
    """
    if other.effect != tool.effect or not (other.needs <= tool.needs <= other.takes):
        return False
    if _noun(tool.name) == _noun(other.name) or _noun(tool.source_name) == _noun(other.source_name):
        return True
    first, second = _text(tool.description), _text(other.description)
    return len(first & second) >= _SAME_TEXT * len(first | second)


def check_request(task: Task) -> None:
    """The request is short, carries every argument, and neither names a tool nor gives the answer away."""
    lowered = task.request.lower()
    if len(task.request.split()) > MOST_WORDS.get(task.width, MOST_WORDS[3]):
        raise RejectionError("request is too long")
    if any(tool.lower() in lowered for tool in task.targets):
        raise RejectionError("request names a tool")
    for call in task.calls:
        given = [value for name, value in call.arguments.items() if name not in call.references]
        if any(not states(task.request, value) for value in given if not isinstance(value, bool)):
            raise RejectionError("request lacks an argument")
    if any(states(task.request, atom.value) for atom in task.atoms):
        raise RejectionError("answer stands in the request")
    if len({str(atom.value).casefold() for atom in task.atoms}) < len(task.atoms):
        raise RejectionError("two answers are the same")


def check_answer(task: Task, tools: Mapping[str, ToolInterface], env: EnvConfig) -> None:
    """The reference calls, run in the task's world, do what is asked; other worlds and other arguments do not."""
    shown = play(task.calls, tools, task.seed, env.max_result_chars)
    if not all(answerable(atom.value) for atom in task.atoms) or not does(task, shown):
        raise RejectionError("answer does not hold in the task's world")
    for number in range(_OTHER_WORLDS if task.atoms else 0):
        if does(task, play(task.calls, tools, derive(task.seed, "other", number), env.max_result_chars)):
            raise RejectionError("answer is the same in another world")
    for place, call in enumerate(task.calls):
        for name in call.arguments:
            for number in range(_ALTERNATIVES):
                value = literal(tools[call.tool], name, derive(task.seed, "instead", number))
                if value == call.arguments[name]:
                    continue
                changed = call.model_copy(update={"arguments": {**call.arguments, name: value}})
                if _would_do(task, (*task.calls[:place], changed, *task.calls[place + 1 :]), tools, env):
                    guess = name in call.references
                    raise RejectionError("a guessed value does as well" if guess else "a value does not matter")


def with_equivalents(
    task: Task,
    tools: Mapping[str, ToolInterface],
    found: Mapping[str, Sequence[ToolInterface]],
    versions: Mapping[str, Sequence[ToolInterface]],
    env: EnvConfig,
) -> Task:
    """The task, with the other versions of its targets that are as right as these.

    Args:
        found: by slot text, the tools that its search shows beside the targets; none of them may do as well.
        versions: by target, its other versions in the catalog; each must do as well, since a search may show it.
    """
    slots = []
    for slot in task.slots:
        others = {other.name: other for other in versions.get(slot.tool, ())}
        for other in [*others.values(), *found.get(slot.text, ())]:
            known = {**tools, other.name: other}
            alike = _would_do(task, swapped(task, tools[slot.tool], other).calls, known, env)
            if alike and other.name not in others:
                raise RejectionError("another tool that is found does as well")
            if not alike and other.name in others:
                raise RejectionError("another version of the tool does otherwise")
        slots.append(slot.model_copy(update={"equivalents": tuple(others)}))
    return task.model_copy(update={"slots": tuple(slots)})


def swapped(task: Task, tool: ToolInterface, other: ToolInterface) -> Task:
    """The task with another tool in a target's place, called with those of the arguments that it takes."""
    calls = tuple(
        call.model_copy(update={"tool": other.name, "arguments": _as_taken(call.arguments, other)})
        if call.tool == tool.name
        else call
        for call in task.calls
    )
    slots = tuple(
        slot.model_copy(update={"tool": other.name}) if slot.tool == tool.name else slot for slot in task.slots
    )
    return task.model_copy(update={"calls": calls, "slots": slots})


def _as_taken(arguments: Mapping[str, Any], other: ToolInterface) -> dict[str, Any]:
    """The arguments that another tool knows by name; what it requires beyond them gets the others in turn."""
    taken = {name: value for name, value in arguments.items() if name in other.properties}
    spare = [value for name, value in arguments.items() if name not in other.properties]
    return taken | dict(zip([name for name in other.required if name not in taken], spare, strict=False))


def _would_do(task: Task, calls: Sequence[ReferenceCall], tools: Mapping[str, ToolInterface], env: EnvConfig) -> bool:
    try:
        return does(task, play(calls, tools, task.seed, env.max_result_chars))
    except RejectionError:
        return False


def solved_by_oracle(tasks: Sequence[Task], catalog: Catalog, index: ToolIndex, env: EnvConfig) -> list[bool]:
    """Whether the reference solution, played in the real environment, earns the full outcome.

    What the searches will show is read at once first; the environments then find it in the catalog's cache.
    """
    from paraagent.agents.loop import run_episodes
    from paraagent.agents.oracle import OraclePolicy
    from paraagent.toolenv.env import ToolEnv

    if not tasks:
        return []
    for within in dict.fromkeys(task.within for task in tasks):
        slots = [slot.text for task in tasks if task.within == within for slot in task.slots]
        catalog.get_many(hit.name for hits in index.search(slots, env.k, split=within) for hit in hits)
    units = [(task, 0) for task in tasks]
    episodes = asyncio.run(run_episodes(OraclePolicy(), lambda: ToolEnv(catalog, index, env.calm), units))
    return [score(task, episode, _REWARDS).solved for task, episode in zip(tasks, episodes, strict=True)]


def _noun(name: str) -> frozenset[str]:
    return frozenset(singular(word) for word in words(name) if word not in READING and not _VARIANT.fullmatch(word))


def _text(description: str) -> frozenset[str]:
    return frozenset(singular(word) for word in re.findall(r"[a-z]+", description.lower()) if word not in READING)
