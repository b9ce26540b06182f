"""The penalties by hand."""

from __future__ import annotations

import pytest

from paraagent.rewards.penalties import (
    dag_penalty,
    penalty,
    protocol_penalty,
    repeat_penalty,
    repeated_calls,
)
from paraagent.trace import Call, Turn
from tests.rewards.builders import CONFIG, call, episode, plan, search, task, turn

FOUND, CALLED = turn(search("a")), turn(call("a"))
CHAIN = task("a", "b", hard=[("a", "b")], soft=[("a", "b")])


@pytest.mark.parametrize(
    ("turns", "answer", "value"),
    [
        ([FOUND, CALLED], "x", 0.0),
        ([FOUND], "x", 0.5),
        ([CALLED], "x", 0.5),
        ([CALLED], None, 0.5),
        ([], "x", 0.5),
        ([], None, 0.0),
        ([FOUND], None, 0.0),
        ([FOUND, turn(call("", "InvalidRequestError"), family="invalid")], "x", 0.5),
    ],
)
def test_protocol(turns: list[Turn], answer: str | None, value: float) -> None:
    assert protocol_penalty(task("a"), episode(*turns, answer=answer), CONFIG) == value


def test_protocol_is_waived_where_the_right_behaviour_makes_no_call() -> None:
    assert protocol_penalty(task(), episode(), CONFIG) == 0.0
    assert protocol_penalty(task(), episode(FOUND), CONFIG) == 0.0
    assert protocol_penalty(task(), episode(CALLED), CONFIG) == 0.5


@pytest.mark.parametrize(
    ("calls", "repeats"),
    [
        ([call("a")], 0),
        ([call("a"), call("a", arguments={"x": 1})], 0),
        ([call("a"), call(" A ")], 0),
        ([call("a"), call("a"), call("a")], 1),
        ([call("a", "NetworkError"), call("a")], 0),
        ([call("a", "NotFoundError"), call("a")], 1),
        ([call("a", "InvalidRequestError"), call("a"), call("a")], 2),
        ([call("a", "NotFoundError", injected=True), call("a")], 0),
        ([call("", "InvalidRequestError"), call("", "InvalidRequestError")], 0),
        ([call("a"), call("a"), call("b"), call("b")], 0),
    ],
)
def test_one_repeat_of_a_call_is_free_unless_it_failed_for_good(calls: list[Call], repeats: int) -> None:
    assert repeated_calls(episode(turn(*calls))) == repeats


def test_repeats_of_each_kind_count_up_to_seven() -> None:
    searches = turn(*[search("a", query=query) for query in ("find it", " Find  IT", "other")])
    assert repeat_penalty(episode(searches), CONFIG) == pytest.approx(0.2 / 7)
    assert repeat_penalty(episode(turn(*[search("a")] * 20)), CONFIG) == pytest.approx(0.2)
    planned = turn(call("a"), plan=plan([["a"]]))
    assert repeat_penalty(episode(planned, planned), CONFIG) == pytest.approx(0.2 / 7)
    assert repeat_penalty(episode(turn(*[search("a")] * 9, *[call("a")] * 9)), CONFIG) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("turns", "value"),
    [
        ([turn(call("a")), turn(call("b"))], 0.0),
        ([turn(call("a"), call("b"))], 0.3),
        ([turn(call("b"), call("a"))], 0.3),
        ([turn(call("a"), call("b")), turn(call("b"))], 0.0),
        ([turn(call("a"))], 0.0),
        ([turn(call("b"))], 0.0),
        ([], 0.0),
    ],
)
def test_dependent_calls_in_one_turn_are_a_violation(turns: list[Turn], value: float) -> None:
    assert dag_penalty(CHAIN, episode(*turns), CONFIG) == value


def test_reversed_hard_edge_is_a_violation() -> None:
    assert dag_penalty(CHAIN, episode(turn(call("b")), turn(call("a"))), CONFIG) == 0.3


def test_the_dag_penalty_is_a_share_of_the_hard_edges() -> None:
    three = task("a", "b", "c", hard=[("a", "b"), ("b", "c")])
    assert dag_penalty(three, episode(turn(call("a")), turn(call("b"), call("c"))), CONFIG) == 0.15


def test_independent_calls_have_no_edges_to_break() -> None:
    assert dag_penalty(task("a", "b"), episode(turn(call("b"), call("a"))), CONFIG) == 0.0


def test_the_penalty_is_a_quarter_of_the_sum() -> None:
    both = turn(call("a"), call("b"), call("b"), call("b"))
    assert penalty(CHAIN, episode(both), CONFIG) == pytest.approx(0.25 * (0.5 + 0.2 / 7 + 0.3))
