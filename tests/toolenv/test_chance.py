"""Faults and latency: drawn from the episode's seed, the call and its attempt, and from nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.paraact.observation import read_responses
from paraagent.paraact.protocol import CallBlock, ParsedTurn, call_identity, compact, render
from paraagent.retrieval.index import ToolIndex
from paraagent.task import ReferenceCall
from paraagent.toolenv.env import Step, ToolEnv
from paraagent.toolenv.faults import draw_fault
from paraagent.toolenv.latency import draw_latency
from paraagent.trace import Episode
from tests.toolenv.test_env import TASK as ONE

T = TypeVar("T")
CALLS = [call_identity("orders_get_order", {"order_id": f"ord_{number}"}) for number in range(4_000)]
KNOWN = {"calendars": ["cal_1"], "orders": [f"ord_{number}" for number in range(16)]}
TASK = ONE.model_copy(update={"calls": (ReferenceCall(id="c1", tool="orders_get_order", arguments=KNOWN),)})
"""A task that gives away the ids that the tests use."""


class FakeClock(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer, so that hours of waiting take no time."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = self._scheduled[0].when()
        super()._run_once()


def timed(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """The result of a coroutine, and the seconds that it waited."""
    loop = FakeClock()
    try:
        return loop.run_until_complete(main), loop.now
    finally:
        loop.close()


def turn(*calls: tuple[str, dict[str, Any]]) -> Completion:
    return Completion(render(ParsedTurn("t", None, tuple(CallBlock(name, arguments) for name, arguments in calls))))


async def play(env: ToolEnv, seed: int, *turns: Completion) -> Episode:
    env.reset(TASK, seed)
    for each in (*turns, Completion("<think>t</think><answer>end</answer>")):
        await env.step(each)
    return env.episode("test")


@pytest.fixture
def env(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Any:
    return lambda **config: ToolEnv(tiny_catalog, tiny_index, EnvConfig(**config))


def test_faults_come_at_their_rate_and_by_their_weights() -> None:
    config = EnvConfig(fault_rate=0.2, fault_weights={"RateLimitError": 3.0, "NotFoundError": 1.0})
    drawn = [draw_fault(config, 1, call, 0) for call in CALLS]
    kinds = Counter(fault.type for fault in drawn if fault)
    assert set(kinds) == {"RateLimitError", "NotFoundError"}
    assert 0.17 < kinds.total() / len(CALLS) < 0.23
    assert 2.3 < kinds["RateLimitError"] / kinds["NotFoundError"] < 3.9


def test_seed_call_and_attempt_decide_a_fault_and_nothing_else() -> None:
    config = EnvConfig(fault_rate=0.5)
    first = [draw_fault(config, 1, call, 0) for call in CALLS]
    assert [draw_fault(config, 1, call, 0) for call in CALLS] == first
    assert [draw_fault(config, 2, call, 0) for call in CALLS] != first
    assert [draw_fault(config, 1, call, 1) for call in CALLS] != first


def test_by_default_nothing_fails_and_nothing_waits(env: Any) -> None:
    episode, waited = timed(play(env(), 1, turn(*[("orders_get_order", {"order_id": "ord_1"})] * 16)))
    assert waited == 0.0
    assert all(call.ok and not call.injected and call.seconds == 0.0 for call in episode.calls)


def test_a_fault_is_flagged_changes_nothing_and_a_retry_may_succeed(env: Any) -> None:
    event = {"calendarId": "cal_1", "summary": "Lunch", "startTime": "2026-03-01T12:00:00Z"}
    call = ("calendar_events_insert", event)
    config = {"fault_rate": 0.5, "fault_weights": {"ServiceUnavailable": 1.0}}
    for seed in range(40):
        episode = asyncio.run(play(env(**config), seed, *[turn(call)] * 3))
        failed = [each for each in episode.calls if each.error]
        if [each.ok for each in episode.calls] == [False, False, True]:
            break
    assert [each.ok for each in episode.calls] == [False, False, True]
    assert all(each.injected and each.error and each.error.type == "ServiceUnavailable" for each in failed)
    assert [each.backend for each in episode.calls] == ["", "", "grounded"]
    assert len(episode.changes) == 1
    assert asyncio.run(play(env(**config), seed, *[turn(call)] * 3)) == episode


def test_what_is_wrong_is_told_before_chance_has_a_say(env: Any) -> None:
    wrong = turn(("orders_get_order", {"id": "ord_1"}), ("no_such_tool", {}))
    episode = asyncio.run(play(env(fault_rate=1.0), 1, wrong))
    assert [call.error.type for call in episode.calls if call.error] == ["InvalidRequestError", "ToolNotFoundError"]
    assert not any(call.injected for call in episode.calls)


def test_an_injected_not_found_leaves_the_planned_call_open(env: Any) -> None:
    name = "orders_get_order"
    plan = {
        "available_tools": [name],
        "execution_flow": [{"step": 1, "parallel": [name]}],
        "dependencies": [],
    }
    block = CallBlock(name, {"order_id": "ord_1"})
    planned = Completion(render(ParsedTurn("t", compact(plan), (block,))))
    config = {"fault_rate": 1.0, "fault_weights": {"NotFoundError": 1.0}}
    toolenv = env(**config)
    asyncio.run(play(toolenv, 1, planned, turn((name, {"order_id": "ord_1"}))))
    assert [each.plan_rule for each in toolenv.episode("me").turns[:2]] == ["required", "optional"]


def test_a_turn_takes_as_long_as_its_slowest_call(env: Any) -> None:
    calls = [("orders_get_order", {"order_id": f"ord_{number}"}) for number in range(16)]
    episode, waited = timed(play(env(latency="lognormal", latency_seconds=2.0), 3, turn(*calls)))
    taken = [call.seconds for call in episode.calls]
    assert len(set(taken)) == 16
    assert waited == pytest.approx(max(taken))
    assert waited < sum(taken) / 4


def test_changes_apply_in_call_order_whatever_finishes_first(env: Any) -> None:
    place = {"calendarId": "cal_1", "startTime": "2026-03-01T12:00:00Z"}
    calls = [("calendar_events_insert", {**place, "summary": f"Event {number}"}) for number in range(8)]
    for seed in range(5):
        episode, waited = timed(play(env(latency="lognormal"), seed, turn(*calls)))
        plain, _ = timed(play(env(), seed, turn(*calls)))
        assert waited > 0
        assert [call.result for call in episode.calls] == [call.result for call in plain.calls]
        assert episode.changes == plain.changes
        order = sorted(range(8), key=lambda number: episode.calls[number].seconds)
        assert order != list(range(8))


@pytest.mark.parametrize("latency", ["fixed", "lognormal", "few-slow"])
def test_latency_follows_from_seed_call_and_attempt(latency: Any) -> None:
    config = EnvConfig(latency=latency, latency_seconds=0.4)
    taken = [draw_latency(config, 1, call, 0) for call in CALLS[:200]]
    assert [draw_latency(config, 1, call, 0) for call in CALLS[:200]] == taken
    assert all(seconds > 0 for seconds in taken)
    assert (len(set(taken)) == 1) == (latency != "lognormal")


def test_a_few_tools_are_slow() -> None:
    config = EnvConfig(latency="few-slow", latency_seconds=1.0, latency_slow=20.0)
    tools = [call_identity(f"tool_{number}", {}) for number in range(2_000)]
    taken = Counter(draw_latency(config, 1, call, 0) for call in tools)
    assert set(taken) == {1.0, 20.0}
    assert 0.07 < taken[20.0] / 2_000 < 0.13


def test_a_call_beyond_the_timeout_changes_nothing_and_may_be_tried_again(env: Any) -> None:
    event = {"calendarId": "cal_1", "summary": "Lunch", "startTime": "2026-03-01T12:00:00Z"}
    slow = env(latency="fixed", latency_seconds=9.0, call_timeout=4.0)
    episode, waited = timed(play(slow, 1, turn(("calendar_events_insert", event))))
    [call] = episode.calls
    assert call.error
    assert (call.error.type, call.error.msg) == ("TimeoutError", "no answer came within 4 seconds: call again")
    assert (waited, call.seconds, call.injected) == (4.0, 4.0, True)
    assert episode.changes == ()


def test_many_episodes_wait_together(env: Any) -> None:
    async def many() -> list[Episode]:
        one = turn(("orders_get_order", {"order_id": "ord_1"}))
        return await asyncio.gather(*(play(env(latency="fixed", latency_seconds=3.0), seed, one) for seed in range(50)))

    _, waited = timed(many())
    assert waited == pytest.approx(3.0)


def test_the_model_reads_a_fault_as_any_other_error(env: Any) -> None:
    async def one() -> Step:
        toolenv = env(fault_rate=1.0, fault_weights={"RateLimitError": 1.0})
        toolenv.reset(TASK, 1)
        return await toolenv.step(turn(("orders_get_order", {"order_id": "ord_1"})))

    [response] = read_responses(asyncio.run(one()).observation)
    assert response["result"]["error"]["type"] == "RateLimitError"
