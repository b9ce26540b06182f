"""R_phase by hand: windows, four levels, weights, and the outcome gate."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.paraact.plan import ExecutionPlan, plan_graph
from paraagent.rewards.phase import PhaseScore, edges_right, layers_right, phase_reward, phase_scores
from paraagent.task import Task
from paraagent.trace import Turn
from tests.paraact.test_plan import execution
from tests.rewards.builders import CONFIG, call, episode, plan, search, task, turn

PAIR = task("a", "b")
CHAIN = task("a", "b", "c", hard=[("a", "b"), ("b", "c")], soft=[("a", "b"), ("b", "c"), ("a", "c")])
FOUND = turn(search("a", "b", "c"))
BOTH = plan([["a", "b"]])


def scores(of: Task, *turns: Turn) -> list[float]:
    return [round(phase.score, 6) for phase in phase_scores(of, episode(*turns), CONFIG)]


def test_a_perfect_phase_scores_one() -> None:
    assert phase_scores(PAIR, episode(FOUND, turn(call("a"), call("b"), plan=BOTH), turn()), CONFIG) == (
        PhaseScore(1, 1, 1.0),
    )


def test_l1_gates_the_phase() -> None:
    done = turn(call("a"), call("b"), plan=BOTH)
    assert scores(PAIR, turn(search("a")), done) == [0.0]
    assert scores(PAIR, turn(search("a", "b", visible=False)), done) == [0.0]
    assert scores(PAIR, done, FOUND) == [0.0]
    twice = plan([["a", "b"]], available_tools=["a", "A", "b"])
    assert scores(PAIR, FOUND, turn(call("a"), call("b"), plan=twice)) == [0.0]


@pytest.mark.parametrize(
    ("flow", "edges", "right"),
    [
        ([["a"], ["b"], ["c"]], [(["a"], "b"), (["b"], "c")], True),
        ([["a"], ["b"], ["c"]], [(["a"], "b"), (["a", "b"], "c")], True),
        ([["a"], ["b"], ["c"]], [(["a"], "b")], False),
        ([["a"], ["b"]], [(["a"], "b")], True),
        ([["a"], ["c"]], [(["a"], "c")], True),
        ([["a"], ["c"]], [], True),
        ([["b"], ["a"]], [(["b"], "a")], False),
        ([["a"], ["d"]], [(["a"], "d")], False),
    ],
)
def test_l2_wants_every_hard_edge_and_no_invented_one(flow: Any, edges: Any, right: bool) -> None:
    body = ExecutionPlan.model_validate(execution(flow, edges))
    assert edges_right(body, plan_graph(body), CHAIN) is right


@pytest.mark.parametrize(
    ("of", "flow", "edges", "right"),
    [
        (PAIR, [["a", "b"]], [], True),
        (PAIR, [["a"], ["b"]], [], False),
        (PAIR, [["a"], ["b"]], [(["a"], "b")], True),
        (CHAIN, [["a"], ["b"], ["c"]], [], True),
        (CHAIN, [["a", "b"], ["c"]], [], False),
        (CHAIN, [["b"], ["a"]], [], False),
        (CHAIN, [["a"], ["b", "d"]], [], False),
        (CHAIN, [["a", "d"], ["b"]], [], True),
        (task("a", "a", hard=[("a", "a2")]), [["a"], ["a"]], [], True),
        (task("a", "a", hard=[("a", "a2")]), [["a", "a"]], [], False),
        (task("a", "a"), [["a", "a"]], [], True),
        (task("a", "a"), [["a"], ["a"]], [], False),
    ],
)
def test_l3_wants_each_occurrence_at_its_longest_path_level(of: Task, flow: Any, edges: Any, right: bool) -> None:
    body = ExecutionPlan.model_validate(execution(flow, edges))
    assert layers_right(body, plan_graph(body), of) is right


def test_l3_wants_every_available_tool_scheduled() -> None:
    body = ExecutionPlan.model_validate(execution([["a"]], available_tools=["a", "b"]))
    assert not layers_right(body, plan_graph(body), PAIR)


def test_l4_counts_what_was_closed() -> None:
    assert scores(PAIR, FOUND, turn(call("a"), plan=BOTH)) == [0.75]
    assert scores(PAIR, FOUND, turn(call("a"), call("b", "NotFoundError"), plan=BOTH)) == [1.0]
    assert scores(PAIR, FOUND, turn(call("a"), call("b", "NotFoundError", injected=True), plan=BOTH)) == [0.75]
    assert scores(PAIR, FOUND, turn(call("a"), call("b", "InvalidRequestError"), plan=BOTH)) == [0.75]
    assert scores(PAIR, FOUND, turn(call("a"), call("b", visible=False), plan=BOTH)) == [0.75]
    assert scores(PAIR, FOUND, turn(call("a"), plan=BOTH), turn(call("b"))) == [1.0]


def test_l4_counts_only_ready_work() -> None:
    chain = plan([["a"], ["b"]], [(["a"], "b")])
    assert scores(CHAIN, FOUND, turn(call("a"), call("b"), plan=chain)) == [0.75]
    assert scores(CHAIN, FOUND, turn(call("a"), plan=chain), turn(call("b"))) == [1.0]


def test_a_phase_without_an_accepted_plan_scores_nothing() -> None:
    assert scores(PAIR, FOUND, turn(call("a"))) == [0.0]
    assert scores(PAIR, FOUND, turn(call("a"), plan=plan([["a"]], kind="invalid"))) == [0.0]
    assert scores(PAIR, FOUND) == []


def test_windows_weigh_by_planned_work() -> None:
    first = turn(call("a"), call("b", "NetworkError"), call("c", "NetworkError"), plan=plan([["a", "b", "c"]]))
    second = turn(call("d"), plan=plan([["d"]], kind="restart"))
    three = task("a", "b", "c", "d")
    one = 0.5 + 0.5 / 3
    assert scores(three, turn(search("a", "b", "c", "d")), first, second) == [round((3 * one + 1 * 1.0) / 4, 6)]


def test_a_revision_carries_over_what_was_done() -> None:
    first = turn(call("a"), call("b", "NetworkError"), plan=BOTH)
    second = turn(call("c"), plan=plan([["a", "c"]], kind="revise"))
    assert scores(task("a", "b", "c"), FOUND, first, second) == [round((2 * 0.75 + 2 * 1.0) / 4, 6)]


def test_each_run_of_call_turns_is_a_phase() -> None:
    good = turn(call("a"), call("b"), plan=BOTH)
    assert scores(PAIR, FOUND, good, turn(search("c")), turn(call("c")), turn()) == [1.0, 0.0]


@pytest.mark.parametrize(("outcome", "gate"), [(1.5, 1.0), (0.25, 1 / 6), (0.0, 0.0), (-0.5, 0.0)])
def test_the_outcome_gates_the_reward(outcome: float, gate: float) -> None:
    phases = [PhaseScore(1, 1, 1.0), PhaseScore(3, 3, 0.5)]
    assert phase_reward(phases, outcome, CONFIG) == pytest.approx(0.5 * 0.75 * gate)
    assert phase_reward([], 1.5, CONFIG) == 0.0
