"""The channels together, by hand."""

from __future__ import annotations

import pytest

from paraagent.rewards.phase import PhaseScore
from paraagent.rewards.score import Rewards, score
from tests.rewards.builders import CONFIG, call, episode, plan, search, task, turn

FOUND = turn(search("a"), search("b", query="q2"), rule="required", plan=plan([["x"]]))


def test_a_perfect_episode() -> None:
    called = turn(call("a"), call("b"), plan=plan([["a", "b"]]), rule="required")
    assert score(task("a", "b"), episode(FOUND, called, turn(rule="forbidden")), CONFIG) == Rewards(
        outcome=1.5,
        step=0.5,
        penalty=0.0,
        trajectory=2.0,
        phase=0.5,
        format=1.0,
        solved=True,
        turn_formats=(1.0, 1.0, 1.0),
        phases=(PhaseScore(1, 1, 1.0),),
    )


def test_half_an_episode() -> None:
    called = turn(call("a"), plan=plan([["a", "b"]]), rule="required")
    rewards = score(task("a", "b", atoms=["Ada", "Bob"]), episode(FOUND, called, turn(rule="required")), CONFIG)
    assert (rewards.outcome, rewards.solved, rewards.penalty) == (0.25, False, 0.0)
    assert rewards.step == pytest.approx(0.3)
    assert rewards.trajectory == pytest.approx(0.55)
    assert rewards.phase == pytest.approx(0.5 * 0.75 * 0.25 / 1.5)
    assert rewards.format == pytest.approx((1 + 1 + 0.5) / 3)


def test_the_worst_that_an_episode_can_be() -> None:
    """A guess without a tool, every kind of repeat, every edge broken."""
    chain = task("a", "b", hard=[("a", "b")])
    both = turn(
        *[call("b", "NotFoundError"), call("a", "NotFoundError")] * 10, *[], family="invalid", well_formed=False
    )
    repeated = [turn(plan=plan([["a"]], kind="invalid"), rule="forbidden", well_formed=False) for _ in range(9)]
    rewards = score(chain, episode(both, *repeated), CONFIG)
    assert rewards.trajectory == pytest.approx(-0.5 - 0.25 * (0.5 + 0.4 + 0.3))
    assert rewards.phase == 0.0
    assert rewards.format == pytest.approx(0.05)
