"""Plans: what an agent means to search for or to call, and the graph of an execution plan.

A tool planned several times has occurrences `name#1`, `name#2`, … in flow order; a dependency may name one of them or,
by the plain name, all of them. Unknown keys, and a flow that contradicts itself, make a plan invalid.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from paraagent.paraact.jsontext import JsonTextError, decode
from paraagent.paraact.protocol import fold

MAX_PLANNED = 256
"""Most occurrences that one plan may schedule."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Names = Annotated[list[Name], Field(min_length=1, max_length=MAX_PLANNED)]


class PlanError(ValueError):
    """Why a plan is invalid, in words for the model."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Subgoal(_Part):
    id: str | int
    subgoal: str


class SearchPlan(_Part):
    """The capabilities that an exploration phase looks for."""

    capacity_slots: Names
    subgoals: list[Subgoal] = []


class Step(_Part):
    step: int
    parallel: Names


class Dependency(_Part):
    sources: Names = Field(alias="from")
    to: Name


class ExecutionPlan(_Part):
    """The tools of an execution phase, in layers that run together, and who needs whom."""

    available_tools: Names
    execution_flow: Annotated[list[Step], Field(min_length=1, max_length=MAX_PLANNED)]
    dependencies: Annotated[list[Dependency], Field(max_length=MAX_PLANNED)]
    subgoals: list[Subgoal] = []


Plan = SearchPlan | ExecutionPlan
Edge = tuple[str, str]


@dataclass(frozen=True)
class Occurrence:
    """One planned call."""

    id: str
    """The folded name; with `#i` where the tool is planned more than once."""
    tool: str
    """The folded name."""
    layer: int
    """Position of its step, from 0."""


@dataclass(frozen=True)
class PlanGraph:
    """What an execution plan schedules."""

    occurrences: tuple[Occurrence, ...]
    """In flow order."""
    edges: frozenset[Edge]
    """Declared dependencies, between ids."""
    predecessors: Mapping[str, frozenset[str]]
    """What must succeed before an id is ready: declared edges, and earlier layers of the same tool."""


def parse_plan(raw: str, family: Literal["search", "call"]) -> Plan:
    """Read the text of a `<plan>` block for a turn of this family.

    Raises:
        PlanError: not JSON, not a plan of this family, or inconsistent.
    """
    try:
        body = decode(raw)
    except JsonTextError as error:
        raise PlanError(str(error)) from None
    model: type[Plan] = SearchPlan if family == "search" else ExecutionPlan
    try:
        plan = model.model_validate(body)
    except ValidationError as error:
        raise PlanError(_first_fault(error, family)) from None
    if isinstance(plan, ExecutionPlan):
        plan_graph(plan)
    return plan


def plan_graph(plan: ExecutionPlan) -> PlanGraph:
    """The occurrences of a plan and their dependencies.

    Raises:
        PlanError: steps do not count from 1, a scheduled tool is not available, or an edge does not lead to
            a later step.
    """
    numbers = [step.step for step in plan.execution_flow]
    if numbers != list(range(1, len(numbers) + 1)):
        raise PlanError("the steps of execution_flow must count 1, 2, 3, …")
    occurrences = _occurrences(plan)
    by_name: dict[str, list[Occurrence]] = defaultdict(list)
    for occurrence in occurrences:
        by_name[occurrence.tool].append(occurrence)
        if occurrence.id != occurrence.tool:
            by_name[occurrence.id].append(occurrence)
    edges: set[Edge] = set()
    for dependency in plan.dependencies:
        for target in _resolve(dependency.to, by_name):
            for name in dependency.sources:
                for source in _resolve(name, by_name):
                    if source.layer >= target.layer:
                        raise PlanError(f"`{dependency.to}` needs `{name}`, so it must stand in a later step")
                    edges.add((source.id, target.id))
    before: dict[str, set[str]] = {occurrence.id: set() for occurrence in occurrences}
    for source_id, target_id in edges:
        before[target_id].add(source_id)
    for same in by_name.values():
        for later in same:
            before[later.id] |= {earlier.id for earlier in same if earlier.layer < later.layer}
    return PlanGraph(occurrences, frozenset(edges), {key: frozenset(ids) for key, ids in before.items()})


def tool_of(occurrence_id: str) -> str:
    """The folded tool name of an occurrence's id."""
    name, mark, number = occurrence_id.rpartition("#")
    return name if mark and number.isdigit() else occurrence_id


def _occurrences(plan: ExecutionPlan) -> tuple[Occurrence, ...]:
    available = {fold(name) for name in plan.available_tools}
    scheduled = [(fold(name), layer) for layer, step in enumerate(plan.execution_flow) for name in step.parallel]
    if len(scheduled) > MAX_PLANNED:
        raise PlanError(f"execution_flow schedules more than {MAX_PLANNED} calls")
    for name, _ in scheduled:
        if name not in available:
            raise PlanError(f"execution_flow schedules `{name[:64]}`, which is not in available_tools")
    totals = Counter(name for name, _ in scheduled)
    seen: Counter[str] = Counter()
    found = []
    for name, layer in scheduled:
        seen[name] += 1
        found.append(Occurrence(name if totals[name] == 1 else f"{name}#{seen[name]}", name, layer))
    return tuple(found)


def _resolve(name: str, by_name: Mapping[str, list[Occurrence]]) -> Iterable[Occurrence]:
    if fold(name) not in by_name:
        raise PlanError(f"dependencies name `{name[:64]}`, which execution_flow does not schedule")
    return by_name[fold(name)]


def _first_fault(error: ValidationError, family: str) -> str:
    kind = (
        "a search turn takes a plan with capacity_slots"
        if family == "search"
        else ("a call turn takes a plan with available_tools, execution_flow and dependencies")
    )
    fault: Any = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part)[:40] for part in fault["loc"])
    return f"{where + ': ' if where else ''}{fault['msg']}; {kind}"
