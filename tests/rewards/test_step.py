"""R_step and R_format by hand."""

from __future__ import annotations

import pytest

from paraagent.rewards.format import format_reward, turn_format
from paraagent.rewards.step import step_reward
from paraagent.trace import Turn
from tests.rewards.builders import CONFIG, call, episode, plan, search, task, turn


@pytest.mark.parametrize(
    ("turns", "reward"),
    [
        ([turn(search("a"), search("b")), turn(call("a"), call("b"))], 0.5),
        ([turn(search("a", "b", "c")), turn(call(" A "))], 0.4 / 2 + 0.1),
        ([turn(search("a")), turn(call("a", "NotFoundError"), call("b"))], 0.4 / 2 + 0.1 / 2),
        ([turn(search("a", visible=False)), turn(call("a", visible=False))], 0.0),
        ([turn(search("c")), turn(call("c"))], 0.0),
        ([], 0.0),
    ],
)
def test_found_and_called_targets_count(turns: list[Turn], reward: float) -> None:
    assert step_reward(task("a", "b"), episode(*turns), CONFIG) == pytest.approx(reward)


def test_an_equivalent_version_counts_as_the_target() -> None:
    alike = task("a", "b")
    slots = (alike.slots[0].model_copy(update={"equivalents": ("a_v2",)}), alike.slots[1])
    turns = turn(search("a_v2", "b")), turn(call("a_v2"), call("b"))
    assert step_reward(alike.model_copy(update={"slots": slots}), episode(*turns), CONFIG) == 0.5
    assert step_reward(alike, episode(*turns), CONFIG) == pytest.approx(0.4 / 2 + 0.1 / 2)


def test_a_target_called_twice_counts_once() -> None:
    turns = turn(search("a")), turn(call("a"), call("a", arguments={"x": 1}))
    assert step_reward(task("a", "a"), episode(*turns), CONFIG) == 0.5


def test_without_targets_silence_is_right() -> None:
    assert step_reward(task(), episode(turn(search("a"))), CONFIG) == 0.5
    assert step_reward(task(), episode(turn(call("a"))), CONFIG) == 0.0


@pytest.mark.parametrize(
    ("one", "value"),
    [
        (turn(rule="required", plan=plan([["a"]])), 1.0),
        (turn(rule="required"), 0.5),
        (turn(rule="required", plan=plan([["a"]], kind="invalid"), well_formed=False), 0.0),
        (turn(rule="forbidden"), 1.0),
        (turn(rule="forbidden", plan=plan([["a"]], kind="redundant")), 0.5),
        (turn(rule="optional"), 1.0),
        (turn(rule="optional", plan=plan([["a"]], kind="revise")), 1.0),
        (turn(rule="optional", plan=plan([["a"]], kind="unsupported")), 0.5),
        (turn(rule="forbidden", well_formed=False), 0.5),
    ],
)
def test_a_turn_is_scored_on_its_form_and_on_its_plan(one: Turn, value: float) -> None:
    assert turn_format(one) == value


def test_format_is_the_mean_over_turns() -> None:
    assert format_reward(episode(turn(rule="required"), turn(rule="forbidden"))) == 0.75
    assert format_reward(episode()) == 0.0
