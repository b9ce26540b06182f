"""Calls of one turn: together, in order, and each on its own when it fails."""

from __future__ import annotations

import asyncio

import pytest

from paraagent.paraact.executor import Outcome, Outcomes, ToolError, execute


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
