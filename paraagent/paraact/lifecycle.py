"""When a plan is due, what a given plan is worth, and which planned calls are ready.

Pure functions over the state of one phase, a maximal run of turns of one family. ToolEnv steps through them while an
episode runs, and the rewards replay them from its trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from paraagent.paraact.plan import (
    ExecutionPlan,
    Occurrence,
    Plan,
    PlanError,
    PlanGraph,
    SearchPlan,
    parse_plan,
    plan_graph,
)
from paraagent.paraact.protocol import ParsedTurn, call_identity, fold
from paraagent.paraact.references import levels, needs
from paraagent.trace import Call, Family, PlanKind, PlanRecord, PlanRule

MAX_ACCEPTED = 2
"""Accepted plans of one phase: the first and one refresh."""

DEFINITIVE = frozenset({"NotFoundError", "PermissionError", "StateConflictError"})
"""Errors that settle a planned call for good."""

Status = Literal["done", "negative"]
Identity = tuple[str, bytes]


@dataclass(frozen=True)
class Progress:
    """How far an execution plan has come. An occurrence without a status is unfinished."""

    graph: PlanGraph
    status: Mapping[str, Status] = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)
    """The last call that was bound to an occurrence."""

    @property
    def unfinished(self) -> list[Occurrence]:
        return [occurrence for occurrence in self.graph.occurrences if occurrence.id not in self.status]

    @property
    def ready(self) -> list[Occurrence]:
        """The frontier: unfinished occurrences whose predecessors all succeeded, in flow order."""
        done = {key for key, status in self.status.items() if status == "done"}
        return [occurrence for occurrence in self.unfinished if self.graph.predecessors[occurrence.id] <= done]

    @property
    def exhausted(self) -> bool:
        """Every occurrence is done, or blocked for good by a definitive negative, its own or that of a predecessor."""
        dead = {key for key, status in self.status.items() if status == "negative"}
        for occurrence in sorted(self.graph.occurrences, key=lambda occurrence: occurrence.layer):
            if self.graph.predecessors[occurrence.id] & dead:
                dead.add(occurrence.id)
        return all(occurrence.id in dead for occurrence in self.unfinished)


def bind(progress: Progress, calls: Sequence[tuple[str, Identity]]) -> list[str | None]:
    """The occurrence that each call (folded name, identity) of one turn stands for; None is outside the frontier.

    A call binds to the unfinished occurrence with its identity, else to the lowest ready one of its tool.
    """
    free = {occurrence.id: occurrence.tool for occurrence in progress.ready}
    bound: list[str | None] = [None] * len(calls)
    for place, (_, identity) in enumerate(calls):
        bound[place] = next((key for key in free if progress.identities.get(key) == identity), None)
        free.pop(bound[place] or "", None)
    for place, (name, _) in enumerate(calls):
        if bound[place] is None:
            bound[place] = next((key for key, tool in free.items() if tool == name), None)
            free.pop(bound[place] or "", None)
    return bound


def advance(progress: Progress, calls: Sequence[Call]) -> tuple[Progress, list[str | None]]:
    """The progress after the calls of one turn, and what each was bound to.

    A call that takes an argument from another one of the turn comes after it.
    """
    level = levels(needs([(call.name, call.references) for call in calls]))
    bound: list[str | None] = [None] * len(calls)
    for stage in sorted({each for each in level if each is not None}):
        places = [place for place, each in enumerate(level) if each == stage]
        progress, found = _advance(progress, [calls[place] for place in places])
        for place, key in zip(places, found, strict=True):
            bound[place] = key
    return progress, bound


def _advance(progress: Progress, calls: Sequence[Call]) -> tuple[Progress, list[str | None]]:
    named = [(fold(call.name), call_identity(call.name, call.arguments)) for call in calls]
    bound = bind(progress, named)
    status, identities = dict(progress.status), dict(progress.identities)
    for key, call, (_, identity) in zip(bound, calls, named, strict=True):
        if key is None:
            continue
        identities[key] = identity
        if call.ok:
            status[key] = "done"
        elif call.visible and call.error and call.error.type in DEFINITIVE and not call.injected:
            status[key] = "negative"
    return replace(progress, status=status, identities=identities), bound


@dataclass(frozen=True)
class Phase:
    """The state of the running phase; before the first turn, and after an answer or a broken turn, there is none."""

    family: Family | None = None
    plan: Plan | None = None
    accepted: int = 0
    progress: Progress | None = None
    """Beside an execution plan."""
    recovery: bool = False
    """The last turn failed a call or made one outside the frontier."""


def enter(phase: Phase, family: Family) -> Phase:
    """The phase that a turn of this family belongs to: the running one, or a new one."""
    return phase if phase.family == family and family in ("search", "call") else Phase(family)


def plan_rule(phase: Phase) -> PlanRule:
    """What a plan must be in a turn of this phase; the first matching row wins."""
    if phase.family not in ("search", "call"):
        return "forbidden"
    if phase.plan is None:
        return "required"
    if phase.accepted >= MAX_ACCEPTED:
        return "forbidden"
    if phase.family == "search":
        return "optional"
    if phase.progress and phase.progress.exhausted:
        return "required"
    return "optional" if phase.recovery else "forbidden"


def judge(phase: Phase, plan: Plan | None) -> PlanKind:
    """What a plan (None: an invalid one) given in this phase is."""
    if plan is None:
        return "invalid"
    if phase.plan is None:
        return "initial"
    if phase.accepted >= MAX_ACCEPTED:
        return "over_budget"
    if isinstance(plan, SearchPlan) and isinstance(phase.plan, SearchPlan):
        old, new = ({fold(slot) for slot in each.capacity_slots} for each in (phase.plan, plan))
        return "redundant" if new <= old else "revise"
    if plan_rule(phase) == "required":
        return "restart"
    if plan_rule(phase) == "forbidden" or plan == phase.plan:
        return "redundant"
    return _judge_revision(phase, plan)


def record_plan(parsed: ParsedTurn, phase: Phase) -> tuple[PlanRecord | None, Plan | None]:
    """What the plan of a turn of this phase is, and the plan itself where it is valid."""
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


def accept(phase: Phase, plan: Plan, kind: PlanKind) -> Phase:
    """The phase once an accepted plan is live; a revision keeps the progress of unchanged occurrences."""
    progress = None
    if isinstance(plan, ExecutionPlan):
        progress = Progress(plan_graph(plan))
        if kind == "revise" and phase.progress:
            progress = _carry(phase.progress, progress.graph)
    return replace(phase, plan=plan, accepted=phase.accepted + 1, progress=progress)


def after_calls(phase: Phase, calls: Sequence[Call]) -> tuple[Phase, list[str | None]]:
    """The phase after a turn's calls, and the planned call that each of them was."""
    progress, bound = phase.progress, list[str | None]([None] * len(calls))
    if progress:
        progress, bound = advance(progress, calls)
    failed = any(call.visible and call.error is not None for call in calls)
    outside = progress is not None and None in bound
    return replace(phase, progress=progress, recovery=failed or outside), bound


def refused(phase: Phase, calls: Sequence[tuple[str, Identity, frozenset[int]]]) -> list[bool]:
    """Which calls (folded name, identity, places of the turn's calls that it refers to) of one turn the plan has not
    ready, as far as can be told before they run: what a call refers to is taken to succeed."""
    if phase.progress is None:
        return [False] * len(calls)
    progress, outside = phase.progress, [True] * len(calls)
    level = levels([set(before) for _, _, before in calls])
    for stage in sorted({each for each in level if each is not None}):
        places = [place for place, each in enumerate(level) if each == stage]
        bound = bind(progress, [calls[place][:2] for place in places])
        for place, key in zip(places, bound, strict=True):
            outside[place] = key is None
        done: dict[str, Status] = {key: "done" for key in bound if key is not None}
        progress = replace(progress, status={**progress.status, **done})
    return outside


def _judge_revision(phase: Phase, plan: Plan) -> PlanKind:
    if phase.progress is None or not isinstance(plan, ExecutionPlan):
        return "unsupported"
    graph = plan_graph(plan)
    kept = {occurrence.id for occurrence in _unchanged(phase.progress.graph, graph)}
    dropped = sum(occurrence.id not in kept for occurrence in phase.progress.unfinished)
    added = sum(occurrence.id not in kept for occurrence in graph.occurrences)
    return "unsupported" if dropped > added else "revise"


def _unchanged(old: PlanGraph, new: PlanGraph) -> list[Occurrence]:
    """Occurrences of `new` that `old` has with the same predecessors."""
    return [
        occurrence
        for occurrence in new.occurrences
        if old.predecessors.get(occurrence.id) == new.predecessors[occurrence.id]
    ]


def _carry(progress: Progress, graph: PlanGraph) -> Progress:
    kept = {occurrence.id for occurrence in _unchanged(progress.graph, graph)}
    status = {key: value for key, value in progress.status.items() if key in kept}
    identities = {key: value for key, value in progress.identities.items() if key in kept}
    return Progress(graph, status, identities)
