"""The plan lifecycle: every row of its table, every kind of plan, and the ready frontier."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.paraact import lifecycle
from paraagent.paraact.lifecycle import Phase, accept, enter, judge, plan_rule
from paraagent.paraact.plan import ExecutionPlan, SearchPlan
from paraagent.trace import Call, ErrorInfo, PlanKind
from tests.paraact.test_plan import execution


def plan(flow: list[list[str]], edges: list[tuple[list[str], str]] | None = None) -> ExecutionPlan:
    return ExecutionPlan.model_validate(execution(flow, edges))


def call(name: str, error: str | None = None, **more: Any) -> Call:
    info = ErrorInfo(type=error, msg="m") if error else None
    return Call(name=name, arguments=more.pop("arguments", {}), error=info, **more)


def after_calls(phase: Phase, calls: list[Call]) -> Phase:
    return lifecycle.after_calls(phase, calls)[0]


def started(flow: list[list[str]], edges: list[tuple[list[str], str]] | None = None) -> Phase:
    return accept(Phase("call"), plan(flow, edges), "initial")


def ready(phase: Phase) -> list[str]:
    assert phase.progress
    return [occurrence.id for occurrence in phase.progress.ready]


SEARCHING = accept(Phase("search"), SearchPlan(capacity_slots=["mail", "map"]), "initial")


@pytest.mark.parametrize("family", ["answer", "mixed", "invalid"])
def test_a_turn_that_neither_searches_nor_calls_takes_no_plan(family: Any) -> None:
    assert plan_rule(enter(SEARCHING, family)) == "forbidden"


@pytest.mark.parametrize("family", ["search", "call"])
def test_a_new_phase_requires_a_plan(family: Any) -> None:
    assert plan_rule(enter(Phase(), family)) == "required"


def test_a_phase_without_an_accepted_plan_still_requires_one() -> None:
    assert plan_rule(after_calls(Phase("call"), [call("a")])) == "required"


def test_a_plan_dies_with_its_phase() -> None:
    assert plan_rule(enter(enter(SEARCHING, "call"), "search")) == "required"
    assert plan_rule(enter(enter(SEARCHING, "invalid"), "search")) == "required"


def test_a_search_phase_may_refresh_its_plan_once() -> None:
    assert plan_rule(SEARCHING) == "optional"
    again = SearchPlan(capacity_slots=["mail", "rail"])
    assert judge(SEARCHING, again) == "revise"
    assert judge(SEARCHING, SearchPlan(capacity_slots=["Map"])) == "redundant"
    refreshed = accept(SEARCHING, again, "revise")
    assert plan_rule(refreshed) == "forbidden"
    assert judge(refreshed, SearchPlan(capacity_slots=["new"])) == "over_budget"


def test_a_call_phase_in_good_order_takes_no_new_plan() -> None:
    phase = after_calls(started([["a", "b"]]), [call("a")])
    assert plan_rule(phase) == "forbidden"
    assert judge(phase, plan([["b", "c"]])) == "redundant"


def test_an_exhausted_plan_requires_a_restart() -> None:
    phase = after_calls(started([["a"]]), [call("a")])
    assert plan_rule(phase) == "required"
    assert judge(phase, plan([["c"]])) == "restart"
    assert plan_rule(after_calls(accept(phase, plan([["c"]]), "restart"), [call("c")])) == "forbidden"


@pytest.mark.parametrize("error", ["NotFoundError", "PermissionError", "StateConflictError"])
def test_a_definitive_negative_blocks_what_depends_on_it_for_good(error: str) -> None:
    phase = after_calls(started([["a"], ["b"], ["c"]], [(["a"], "b"), (["b"], "c")]), [call("a", error)])
    assert ready(phase) == []
    assert plan_rule(phase) == "required"


def test_an_injected_error_settles_nothing() -> None:
    phase = after_calls(started([["a"]]), [call("a", "NotFoundError", injected=True)])
    assert ready(phase) == ["a"]
    assert plan_rule(phase) == "optional"


def test_a_failed_call_lets_the_plan_be_revised() -> None:
    assert plan_rule(after_calls(started([["a"]]), [call("a", "NetworkError")])) == "optional"


def test_a_failure_that_the_model_did_not_see_is_no_trigger() -> None:
    phase = after_calls(started([["a"]]), [call("a", "NetworkError", visible=False)])
    assert plan_rule(phase) == "forbidden"


def test_a_call_outside_the_frontier_lets_the_plan_be_revised() -> None:
    phase = after_calls(started([["a"], ["b"]], [(["a"], "b")]), [call("b")])
    assert ready(phase) == ["a"]
    assert plan_rule(phase) == "optional"


def test_layers_alone_do_not_block() -> None:
    assert ready(started([["a"], ["b"]])) == ["a", "b"]


def test_occurrences_of_one_tool_in_later_layers_wait_for_the_earlier_ones() -> None:
    phase = started([["a", "a"], ["a"]])
    assert ready(phase) == ["a#1", "a#2"]
    phase = after_calls(phase, [call("a", arguments={"x": 1}), call("A", arguments={"x": 2})])
    assert ready(phase) == ["a#3"]


def test_a_retry_binds_to_the_occurrence_of_its_identity() -> None:
    phase = started([["a", "a"]])
    phase = after_calls(phase, [call("a", "NetworkError", arguments={"x": 1}), call("a", arguments={"x": 2})])
    assert ready(phase) == ["a#1"]
    phase = started([["a", "a"]])
    phase = after_calls(phase, [call("a", "NetworkError", arguments={"x": n}) for n in (1, 2)])
    phase = after_calls(phase, [call("a", arguments={"x": 2})])
    assert ready(phase) == ["a#1"]


@pytest.mark.parametrize(
    ("flow", "edges", "kind"),
    [
        ([["a", "c"]], None, "revise"),
        ([["a"], ["b"]], None, "redundant"),
        ([["c"]], None, "unsupported"),
        ([["b"], ["a"], ["c"]], [(["b"], "a")], "revise"),
    ],
)
def test_a_revision_must_not_drop_more_than_it_adds(flow: Any, edges: Any, kind: PlanKind) -> None:
    phase = after_calls(started([["a"], ["b"]]), [call("a", "NetworkError")])
    assert judge(phase, plan(flow, edges)) == kind


def test_a_revision_keeps_the_progress_of_unchanged_occurrences() -> None:
    phase = after_calls(started([["a", "b"]]), [call("a"), call("b", "NetworkError")])
    revised = accept(phase, plan([["a", "c"]]), "revise")
    assert ready(revised) == ["c"]
    assert ready(accept(phase, plan([["a", "c"]]), "restart")) == ["a", "c"]
