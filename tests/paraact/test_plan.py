"""Plans: which are valid, and the graph that one means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.paraact.plan import ExecutionPlan, PlanError, SearchPlan, parse_plan, plan_graph


def execution(flow: list[list[str]], edges: list[tuple[list[str], str]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "available_tools": sorted({name for step in flow for name in step}),
        "execution_flow": [{"step": number, "parallel": step} for number, step in enumerate(flow, 1)],
        "dependencies": [{"from": sources, "to": target} for sources, target in edges or []],
        **more,
    }


def graph(flow: list[list[str]], edges: list[tuple[list[str], str]] | None = None) -> Any:
    return plan_graph(ExecutionPlan.model_validate(execution(flow, edges)))


@pytest.mark.parametrize(
    ("family", "body"),
    [
        ("search", {"capacity_slots": ["mail", "calendar"]}),
        ("search", {"capacity_slots": ["mail"], "subgoals": [{"id": 1, "subgoal": "find"}]}),
        ("call", execution([["a", "b"]])),
        ("call", execution([["a"], ["b"]], [(["a"], "b")], subgoals=[{"id": "s1", "subgoal": "x"}])),
    ],
)
def test_valid_plans(family: Any, body: dict[str, Any]) -> None:
    assert isinstance(parse_plan(json.dumps(body), family), SearchPlan if family == "search" else ExecutionPlan)


@pytest.mark.parametrize(
    ("family", "body", "says"),
    [
        ("search", {"capacity_slots": []}, "capacity_slots"),
        ("search", {"capacity_slots": ["a"], "why": "x"}, "why: Extra inputs are not permitted"),
        ("search", execution([["a"]]), "a search turn takes a plan with capacity_slots"),
        ("call", {"capacity_slots": ["a"]}, "a call turn takes a plan with available_tools"),
        ("call", [], "a call turn takes a plan with available_tools"),
        ("call", execution([["a"]], available_tools=["b"]), "schedules `a`, which is not in available_tools"),
        ("call", execution([["a", "b"]], [(["a"], "b")]), "`b` needs `a`, so it must stand in a later step"),
        ("call", execution([["b"], ["a"]], [(["a"], "b")]), "`b` needs `a`, so it must stand in a later step"),
        ("call", execution([["a"]], [(["a"], "a")]), "`a` needs `a`, so it must stand in a later step"),
        ("call", execution([["a"]], [(["z"], "a")]), "`z`, which execution_flow does not schedule"),
        ("call", execution([["a"]], execution_flow=[{"step": 2, "parallel": ["a"]}]), "must count 1, 2, 3"),
        ("call", execution([["a"]] * 257), "at most 256"),
        ("call", execution([["a"] * 200, ["a"] * 200]), "more than 256 calls"),
    ],
)
def test_invalid_plans_say_why(family: Any, body: Any, says: str) -> None:
    with pytest.raises(PlanError) as raised:
        parse_plan(json.dumps(body), family)
    assert says in str(raised.value)


def test_a_plan_that_is_not_json_says_where() -> None:
    with pytest.raises(PlanError, match="not valid JSON at character 1"):
        parse_plan("search first", "search")


def test_a_tool_planned_twice_has_numbered_occurrences() -> None:
    planned = graph([["a", "b"], ["A "]])
    assert [occurrence.id for occurrence in planned.occurrences] == ["a#1", "b", "a#2"]
    assert planned.predecessors == {"a#1": frozenset(), "b": frozenset(), "a#2": frozenset({"a#1"})}
    assert planned.edges == frozenset()


def test_a_dependency_names_one_occurrence_or_all() -> None:
    one = graph([["a"], ["b"], ["a"]], [(["a#1"], "b"), (["b"], "a#2")])
    assert one.edges == {("a#1", "b"), ("b", "a#2")}
    assert graph([["a", "a"], ["b"]], [(["a"], "b")]).edges == {("a#1", "b"), ("a#2", "b")}


@given(
    st.text()
    | st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_no_text_is_a_plan_of_both_families_and_every_refusal_has_a_reason(raw: str) -> None:
    reasons = []
    for family in ("search", "call"):
        try:
            parse_plan(raw, family)  # type: ignore[arg-type]
        except PlanError as error:
            reasons.append(str(error))
    assert reasons
    assert all(reasons)
