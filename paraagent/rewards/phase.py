"""R_phase: how well each execution phase was planned, and how much of its plan it closed.

A phase is a maximal run of call turns. Accepted plans split it into windows; a window is scored on four levels:
L1 the tools were found before, L2 the declared edges are the task's, L3 the layers are as parallel as the edges allow,
L4 the planned work got done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from paraagent.config import RewardConfig
from paraagent.paraact.lifecycle import Phase, accept, after_calls
from paraagent.paraact.plan import Edge, ExecutionPlan, PlanGraph, tool_of
from paraagent.paraact.protocol import fold
from paraagent.task import Task
from paraagent.trace import Episode, Turn


class PhaseScore(NamedTuple):
    """One call phase."""

    first_turn: int
    last_turn: int
    """Both inclusive, from 0."""
    score: float
    """0 … 1, before the outcome gate."""


class _Window(NamedTuple):
    """What happened under one accepted plan."""

    plan: ExecutionPlan
    graph: PlanGraph
    first_turn: int
    closed: int
    """Occurrences closed by its end, by success or a definitive negative."""


def phase_reward(phases: Sequence[PhaseScore], outcome: float, config: RewardConfig) -> float:
    """0.5 · mean(phase scores) · clip(R_outcome / 1.5, 0, 1)."""
    if not phases:
        return 0.0
    mean = sum(phase.score for phase in phases) / len(phases)
    return config.phase * mean * outcome_gate(outcome, config)


def outcome_gate(outcome: float, config: RewardConfig) -> float:
    """clip(R_outcome / 1.5, 0, 1): a fine plan for a wrong answer earns nothing."""
    return min(1.0, max(0.0, outcome / config.outcome_full))


def phase_scores(task: Task, episode: Episode, config: RewardConfig) -> tuple[PhaseScore, ...]:
    """The score of every call phase, in order; a phase without an accepted plan scores 0."""
    found = []
    for family, run in groupby(enumerate(episode.turns), key=lambda numbered: numbered[1].family):
        if family == "call":
            turns = list(run)
            value = _score_windows(task, episode, list(_windows(turns)), config)
            found.append(PhaseScore(turns[0][0], turns[-1][0], value))
    return tuple(found)


def tools_found(plan: ExecutionPlan, discovered: set[str]) -> bool:
    """L1: names are unique, and every available tool was returned by an earlier visible search."""
    names = [fold(name) for name in plan.available_tools]
    return len(set(names)) == len(names) and set(names) <= discovered


def edges_right(plan: ExecutionPlan, graph: PlanGraph, task: Task) -> bool:
    """L2: every hard edge among the available tools is declared, and every declared edge is hard or soft."""
    available = {fold(name) for name in plan.available_tools}
    hard, soft = _tool_edges(task, task.hard_edges), _tool_edges(task, task.soft_edges)
    declared = {(tool_of(source), tool_of(target)) for source, target in graph.edges}
    needed = {(source, target) for source, target in hard if source in available and target in available}
    return needed <= declared <= hard | soft


def layers_right(plan: ExecutionPlan, graph: PlanGraph, task: Task) -> bool:
    """L3: every available tool is scheduled, each occurrence at its longest-path level by hard and declared edges."""
    layer = {occurrence.id: occurrence.layer for occurrence in graph.occurrences}
    if {occurrence.tool for occurrence in graph.occurrences} != {fold(name) for name in plan.available_tools}:
        return False
    edges = graph.edges | _hard_edges_of(graph, task)
    if any(layer[source] >= layer[target] for source, target in edges):
        return False
    level: dict[str, int] = {}
    for occurrence in sorted(graph.occurrences, key=lambda occurrence: occurrence.layer):
        before = [level[source] for source, target in edges if target == occurrence.id]
        level[occurrence.id] = 1 + max(before, default=-1)
    return level == layer


def _score_windows(task: Task, episode: Episode, windows: Sequence[_Window], config: RewardConfig) -> float:
    """Mean of the windows, weighted by planned work; 0 where one of them fails L1."""
    first, second, third, fourth = config.phase_levels
    total, work = 0.0, 0
    for window in windows:
        searches = (search for turn in episode.turns[: window.first_turn] for search in turn.searches if search.visible)
        if not tools_found(window.plan, {fold(name) for search in searches for name in search.hits}):
            return 0.0
        planned = len(window.graph.occurrences)
        value = first + second * edges_right(window.plan, window.graph, task)
        value += third * layers_right(window.plan, window.graph, task) + fourth * window.closed / planned
        total, work = total + planned * value, work + planned
    return total / work if work else 0.0


def _windows(turns: Sequence[tuple[int, Turn]]) -> Iterator[_Window]:
    """Replay one phase: each accepted plan with what was closed under it."""
    phase = Phase("call")
    started = 0
    for number, turn in turns:
        if turn.plan and turn.plan.accepted:
            yield from _window(phase, started)
            plan = ExecutionPlan.model_validate(turn.plan.body)
            phase, started = accept(phase, plan, turn.plan.kind), number
        phase, _ = after_calls(phase, turn.calls)
    yield from _window(phase, started)


def _window(phase: Phase, started: int) -> Iterator[_Window]:
    if isinstance(phase.plan, ExecutionPlan) and phase.progress:
        yield _Window(phase.plan, phase.progress.graph, started, len(phase.progress.status))


def _tool_edges(task: Task, edges: Sequence[Edge]) -> set[Edge]:
    """Edges between calls, as edges between folded tool names."""
    tools = {call.id: fold(call.tool) for call in task.calls}
    return {(tools[source], tools[target]) for source, target in edges}


def _hard_edges_of(graph: PlanGraph, task: Task) -> set[Edge]:
    """The task's hard edges between occurrences: the i-th planned one of a tool stands for its i-th reference call."""
    planned: dict[str, list[str]] = defaultdict(list)
    for occurrence in graph.occurrences:
        planned[occurrence.tool].append(occurrence.id)
    meant = {call.id: planned[fold(call.tool)].pop(0) for call in task.calls if planned[fold(call.tool)]}
    return {(meant[source], meant[target]) for source, target in task.hard_edges if source in meant and target in meant}
