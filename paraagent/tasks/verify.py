"""What a task must withstand before it is kept (design.md section 8); each check raises a counted `RejectionError`.

A target must be found by its slot among the episode's k, and no near-identical sibling may stand beside it: a regional
or version variant, or the list beside the get, which the request does not tell apart. The answer must hold in the
task's world, change with the world, and not stand in the request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.config import EnvConfig, RewardConfig
from paraagent.files import canonical_json
from paraagent.retrieval.index import Hit
from paraagent.rewards.atoms import states
from paraagent.rewards.score import score
from paraagent.seeds import derive
from paraagent.task import Split, Task
from paraagent.tasks.facts import answerable, value_at
from paraagent.tasks.target import RejectionError
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex

_READING = frozenset(
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
_VARIANT = re.compile(
    r"v?\d[\w.]*|alpha|beta|preview|legacy|new|us|eu|uk|ap|global|regional|region|zonal|central|east|west|north|south"
)
_SAME_TEXT = 0.75
"""Share of common words from which two descriptions say the same."""
_OTHER_WORLDS = 3
_REWARDS = RewardConfig()
MOST_WORDS = {1: 45, 2: 80, 3: 115}
"""Longest request by width, in words."""


class Outline(NamedTuple):
    """What of a tool decides whether another one is its near-identical sibling."""

    name: str
    source_name: str
    effect: str
    description: str


def check_found(tool: Outline, hits: Sequence[Hit], outlines: Mapping[str, Outline]) -> None:
    """The hits of a slot hold the tool, and nothing that the request fits as well."""
    if tool.name not in [hit.name for hit in hits]:
        raise RejectionError("slot does not find the tool")
    for hit in hits:
        if hit.name != tool.name and is_sibling(tool, outlines[hit.name]):
            raise RejectionError("a near-identical sibling is found beside it")


def is_sibling(tool: Outline, other: Outline) -> bool:
    """Whether two reading tools differ in version, region or get/list alone, or say the same of themselves."""
    if other.effect != "read":
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
        if any(not states(task.request, value) for value in call.arguments.values() if not isinstance(value, bool)):
            raise RejectionError("request lacks an argument")
    if any(states(task.request, atom.value) for atom in task.atoms):
        raise RejectionError("answer stands in the request")
    if len({str(atom.value).casefold() for atom in task.atoms}) < len(task.atoms):
        raise RejectionError("two answers are the same")


def check_answer(task: Task, tools: Mapping[str, ToolInterface], env: EnvConfig) -> None:
    """The reference calls, run in the task's world, show the answer; other worlds show another one."""
    for call in task.calls:
        tool = tools[call.tool]
        atoms = [atom for atom in task.atoms if atom.call == call.id]
        worlds = [task.seed, *(derive(task.seed, "other", number) for number in range(_OTHER_WORLDS))]
        results = [GroundedSimulator(seed).call(tool, call.arguments) for seed in worlds]
        if any(response.error is not None for response in results):
            raise RejectionError("call fails")
        shown = [fit_json(response.result, env.max_result_chars) for response in results]
        for atom in atoms:
            try:
                values = [value_at(result, atom.path) for result in shown]
            except (LookupError, ValueError):
                raise RejectionError("answer does not stand in every world") from None
            if values[0] != atom.value or not answerable(atom.value) or canonical_json(atom.value) == b"null":
                raise RejectionError("answer does not hold in the task's world")
            if all(value == atom.value for value in values[1:]):
                raise RejectionError("answer is the same in every world")


def solved_by_oracle(
    tasks: Sequence[Task], catalog: Catalog, index: ToolIndex, env: EnvConfig, split: Split | None
) -> list[bool]:
    """Whether the reference solution, played in the real environment, earns the full outcome.

    What the searches will show is read in one query first; the environments then find it in the catalog's cache.
    """
    from paraagent.agents.loop import run_episodes
    from paraagent.agents.oracle import OraclePolicy
    from paraagent.toolenv.env import ToolEnv

    shown = index.search([slot.text for task in tasks for slot in task.slots], env.k, split=split)
    catalog.get_many(hit.name for hits in shown for hit in hits)
    units = [(task, 0) for task in tasks]
    episodes = asyncio.run(run_episodes(OraclePolicy(), lambda: ToolEnv(catalog, index, env, split=split), units))
    return [score(task, episode, _REWARDS).solved for task, episode in zip(tasks, episodes, strict=True)]


def _noun(name: str) -> frozenset[str]:
    return frozenset(singular(word) for word in words(name) if word not in _READING and not _VARIANT.fullmatch(word))


def _text(description: str) -> frozenset[str]:
    return frozenset(singular(word) for word in re.findall(r"[a-z]+", description.lower()) if word not in _READING)
