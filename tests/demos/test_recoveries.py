"""Recoveries and mistakes, read from traces made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.demos.recoveries import mistakes, recoveries
from paraagent.task import Task
from paraagent.trace import Episode, Note, PlanKind, Turn
from tests.rewards.builders import call, episode, plan, search, task, turn

TASK = task("get")
ANSWER = turn()


def kinds(*turns: Turn, wants: Task = TASK) -> list[str]:
    return [*recoveries(episode(*turns, ANSWER), wants)]


def calls(*some: Any) -> Turn:
    return turn(*some)


def test_a_straight_way_recovers_from_nothing() -> None:
    assert kinds(turn(search("get")), calls(call("get"))) == []


def test_a_second_search_before_a_call_is_searching_again() -> None:
    assert kinds(turn(search("other")), turn(search("get")), calls(call("get"))) == ["search again"]


def test_searching_for_something_else_later_is_no_recovery() -> None:
    first, later = search("get").model_copy(update={"slot": "a"}), search("other").model_copy(update={"slot": "b"})
    assert kinds(turn(first), calls(call("get")), turn(later), calls(call("get"))) == []


def test_two_searches_in_one_turn_are_one() -> None:
    assert kinds(turn(search("other"), search("get")), calls(call("get"))) == []


def test_searching_on_without_a_call_recovers_nothing() -> None:
    assert kinds(turn(search("other")), turn(search("other"))) == []
    assert kinds(turn(search("get")), calls(call("get")), turn(search("other"))) == []


def test_a_right_tool_after_a_wrong_one_is_another_tool() -> None:
    assert kinds(calls(call("other")), calls(call("GET"))) == ["other tool"]


def test_a_right_tool_beside_a_wrong_one_is_no_recovery() -> None:
    assert kinds(calls(call("other"), call("get"))) == []
    assert kinds(calls(call("get")), calls(call("other"))) == []


def test_a_right_tool_that_fails_recovers_nothing() -> None:
    assert kinds(calls(call("other")), calls(call("get", error="NotFoundError"))) == []


def test_another_version_of_the_tool_is_as_right() -> None:
    slot = TASK.slots[0].model_copy(update={"equivalents": ("get_v2",)})
    either = TASK.model_copy(update={"slots": (slot,)})
    assert kinds(calls(call("get_v2")), calls(call("get")), wants=either) == []
    assert kinds(calls(call("other")), calls(call("get_v2")), wants=either) == ["other tool"]


def test_the_same_call_after_an_injected_fault_is_a_fault_retried() -> None:
    failed = call("get", error="NetworkError", injected=True, arguments={"a": 1, "b": 2})
    assert kinds(calls(failed), calls(call("get", arguments={"b": 2, "a": 1}))) == ["fault retried"]
    assert kinds(calls(failed), calls(call("get", arguments={"a": 1}))) == []


def test_a_fault_that_never_passes_is_not_retried() -> None:
    failed = call("get", error="NetworkError", injected=True)
    assert kinds(calls(failed), calls(failed)) == []


def test_a_call_that_works_with_other_arguments_is_corrected() -> None:
    failed = call("get", error="InvalidRequestError")
    assert kinds(calls(failed), calls(call("get", arguments={"id": 1}))) == ["corrected call"]
    assert kinds(calls(failed), calls(call("other", arguments={"id": 1}))) == []


def test_a_result_that_was_not_shown_recovers_nothing() -> None:
    failed = call("get", error="InvalidRequestError")
    assert kinds(calls(failed), calls(call("get", arguments={"id": 1}, visible=False))) == []


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("initial", []),
        ("revise", ["plan revised"]),
        ("restart", ["plan restarted"]),
        ("redundant", []),
        ("over_budget", []),
        ("invalid", []),
        ("unsupported", []),
    ],
)
def test_only_accepted_changes_of_a_plan_count(kind: PlanKind, shown: list[str]) -> None:
    assert kinds(turn(call("get"), plan=plan([["get"]], kind=kind))) == shown


def test_kinds_come_once_and_in_one_order() -> None:
    revised = plan([["get"]], kind="revise")
    fault = call("get", error="NetworkError", injected=True, arguments={"id": 1})
    wrong = call("get", error="InvalidRequestError")
    assert kinds(
        turn(search("other")),
        turn(search("get")),
        turn(call("other"), wrong, fault, plan=revised),
        turn(call("get", arguments={"id": 1}), call("get", arguments={"id": 2}), plan=revised),
        turn(call("get", arguments={"id": 3})),
    ) == ["search again", "other tool", "corrected call", "fault retried", "plan revised"]


def noted(*roles: str) -> Turn:
    return ANSWER.model_copy(update={"notes": tuple(Note(role=role, text="x") for role in roles)})


@pytest.mark.parametrize(
    ("turns", "places"),
    [
        ([], []),
        ([noted("planner", "critic")], []),
        ([noted("slip"), noted("planner"), noted("writer", "slip")], [2, 6]),
        ([noted("slip", "slip")], [2]),
    ],
)
def test_the_place_of_a_mistake_is_that_of_its_message(turns: list[Turn], places: list[int]) -> None:
    made: Episode = episode(*turns)
    assert mistakes(made) == places
