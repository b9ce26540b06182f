"""Calls of one turn: together, in order, and each on its own when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.errors import ParaAgentError
from paraagent.paraact.executor import Outcome, Outcomes, ToolError, execute, schedule


def test_calls_run_together_and_results_keep_their_order() -> None:
    async def all_at_once() -> list[Outcome]:
        everyone = asyncio.Barrier(3)

        async def run(place: int, ended: Outcomes) -> Outcome:
            await everyone.wait()  # passes only when all three are under way
            await asyncio.sleep(0.01 * (3 - place))
            return Outcome(None, place, "test")

        return await asyncio.wait_for(execute([0, 1, 2], run, at_once=3), timeout=30)

    assert [outcome.result for outcome in asyncio.run(all_at_once())] == [0, 1, 2]


def test_changes_before_the_first_wait_apply_in_call_order() -> None:
    log: list[int] = []

    async def run(number: int, ended: Outcomes) -> Outcome:
        log.append(number)
        await asyncio.sleep(0.01 * (5 - number))
        return Outcome(None, number, "test")

    asyncio.run(execute(list(range(5)), run, at_once=5))
    assert log == [0, 1, 2, 3, 4]


def test_a_failing_call_becomes_an_observation_and_its_siblings_succeed() -> None:
    async def run(kind: str, ended: Outcomes) -> Outcome:
        if kind == "tool":
            raise ToolError("RateLimitError", "slow down")
        if kind == "bug":
            raise ZeroDivisionError
        return Outcome(None, "fine", "test")

    tool, bug, fine = asyncio.run(execute(["tool", "bug", "fine"], run, at_once=3))
    assert tool.error
    assert (tool.error.type, tool.error.msg) == ("RateLimitError", "slow down")
    assert bug.error
    assert bug.error.type == "ToolExecutionError"
    assert fine == Outcome(None, "fine", "test")


def test_only_the_kinds_of_the_method_exist() -> None:
    with pytest.raises(ValueError, match="no kind of tool error"):
        ToolError("KeyError", "m")


def test_no_more_calls_at_once_than_allowed() -> None:
    under_way: list[int] = []
    most = 0

    async def run(number: int, ended: Outcomes) -> Outcome:
        nonlocal most
        under_way.append(number)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(number)
        return Outcome(None, number, "test")

    outcomes = asyncio.run(execute(list(range(9)), run, at_once=3))
    assert most == 3
    assert [outcome.result for outcome in outcomes] == list(range(9))


def test_a_call_waits_for_those_it_needs_and_sees_what_became_of_them() -> None:
    async def run(number: int, ended: Outcomes) -> Outcome:
        await asyncio.sleep(0.01 if number == 2 else 0)
        return Outcome(None, {place: outcome.result for place, outcome in ended.items()}, "test")

    needs_the_last, free, _ = asyncio.run(execute([0, 1, 2], run, at_once=1, after=[{2}, (), ()]))
    assert free.result == {}
    assert set(needs_the_last.result) == {1, 2}


def test_cancellation_leaves_no_call_running() -> None:
    ended: list[int] = []

    async def interrupted() -> None:
        begun = asyncio.Barrier(4)

        async def run(number: int, _: Outcomes) -> Outcome:
            try:
                await begun.wait()
                await asyncio.Event().wait()  # for ever
            finally:
                await asyncio.sleep(0)  # tidying up takes a moment
                ended.append(number)
            raise AssertionError("cannot come here")

        others = asyncio.all_tasks()
        turn = asyncio.create_task(execute([0, 1, 2, 3], run, at_once=3, after=[(), (), (), {0}]))
        await begun.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert asyncio.all_tasks() == others

    asyncio.run(asyncio.wait_for(interrupted(), timeout=30))
    assert sorted(ended) == [0, 1, 2], "the fourth never began"


def test_what_only_a_person_can_mend_is_raised_once_the_others_have_ended() -> None:
    ended: list[str] = []

    async def run(kind: str, seen: Outcomes) -> Outcome:
        if kind == "broken":
            raise ParaAgentError("the server is gone: start it again")
        await asyncio.sleep(0.01)
        ended.append(kind)
        return Outcome(None, kind, "test")

    with pytest.raises(ParaAgentError, match="start it again"):
        asyncio.run(
            asyncio.wait_for(execute(["broken", "slow", "needs it"], run, at_once=2, after=[(), (), {0}]), timeout=30)
        )
    assert sorted(ended) == ["needs it", "slow"]


@pytest.mark.parametrize(
    ("seconds", "at_once", "after", "begins"),
    [
        ((2.0, 1.0, 3.0), 3, (), (0.0, 0.0, 0.0)),
        ((2.0, 1.0, 3.0), 2, (), (0.0, 0.0, 1.0)),
        ((2.0, 1.0, 3.0), 1, (), (0.0, 2.0, 3.0)),
        ((2.0, 1.0, 3.0), 3, ((), {0}, {0, 1}), (0.0, 2.0, 3.0)),
        ((1.0, 1.0, 1.0), 3, ({2}, (), ()), (1.0, 0.0, 0.0)),
        ((), 3, (), ()),
    ],
)
def test_simulated_calls_begin_as_real_ones_would(
    seconds: tuple[float, ...], at_once: int, after: tuple[Collection[int], ...], begins: tuple[float, ...]
) -> None:
    assert schedule(seconds, at_once, after) == list(begins)


@given(
    seconds=st.lists(st.floats(0, 100), max_size=12),
    at_once=st.integers(1, 5),
    picks=st.lists(st.sets(st.integers(0, 11), max_size=3), min_size=12, max_size=12),
)
def test_a_schedule_keeps_its_bounds(seconds: list[float], at_once: int, picks: list[set[int]]) -> None:
    after = [{other for other in picks[place] if other < place} for place in range(len(seconds))]
    begins = schedule(seconds, at_once, after)
    ends = [begin + took for begin, took in zip(begins, seconds, strict=True)]
    for place, begin in enumerate(begins):
        assert all(begin >= ends[other] for other in after[place])
        assert sum(start <= begin < end for start, end in zip(begins, ends, strict=True)) <= at_once
        # Nothing idles: a call begins at once, or the moment that another one ends.
        assert begin == 0 or begin in ends
