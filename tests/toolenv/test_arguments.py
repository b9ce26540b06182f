"""A wrong call is told everything that is wrong with it, and what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.toolenv.arguments import check_arguments
from tests.toolenv.interfaces import tool

EVENT = tool(
    parameters={
        "type": "object",
        "properties": {
            "calendarId": {"type": "string"},
            "maxResults": {"type": "integer", "minimum": 1},
            "status": {"type": "string", "enum": ["confirmed", "cancelled"]},
            "filter": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "zone": {"type": "string", "enum": [*(f"Etc/GMT+{hour}" for hour in range(13)), "Africa/Cairo"]},
            "note": {"type": "string", "maxLength": 80},
        },
        "required": ["calendarId"],
    }
)


def message(arguments: dict[str, Any]) -> str:
    error = check_arguments(EVENT, arguments)
    assert error is not None
    assert error.type == "InvalidRequestError"
    return error.msg


def test_a_right_call_has_no_error() -> None:
    assert check_arguments(EVENT, {"calendarId": "cal_1", "maxResults": 2, "filter": {"city": "Lyon"}}) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing required parameter 'calendarId' (string)"),
        ({"calendarId": "c", "calendar": "c"}, "unknown parameter 'calendar', did you mean 'calendarId'?"),
        ({"calendarId": "c", "max_results": 1}, "unknown parameter 'max_results', did you mean 'maxResults'?"),
        ({"calendarId": "c", "zzz": 1}, "unknown parameter 'zzz', the parameters are calendarId, code, filter"),
        ({"calendarId": "c", "maxResults": "3"}, "'maxResults' must be of type integer, got string \"3\""),
        ({"calendarId": "c", "status": "gone"}, "'status' must be one of confirmed, cancelled, got string \"gone\""),
        ({"calendarId": "c", "filter": {}}, "missing required parameter 'filter.city'"),
        ({"calendarId": "c", "code": "x"}, "'code' must match the pattern ^[A-Z]{3}$"),
        ({"calendarId": "c", "maxResults": 0}, "'maxResults': 0 is less than the minimum of 1"),
        ({"calendarId": "c", "zone": "Afrika/Cairo"}, "'zone' must be one of Africa/Cairo, Etc/GMT+0, Etc/GMT+1"),
        ({"calendarId": "c", "note": "y" * 90}, f"'note': string \"{'y' * 58}… is longer than 80 characters"),
    ],
)
def test_a_fault_says_what_would_be_right(arguments: dict[str, Any], said: str) -> None:
    assert said in message(arguments)


def test_all_faults_are_told_at_once() -> None:
    told = message({"calendar": "c", "maxResults": "3", "status": "gone"})
    assert all(part in told for part in ("'calendarId'", "'calendar'", "'maxResults'", "'status'"))


def test_many_faults_are_counted() -> None:
    told = message({f"x{number}": 1 for number in range(30)})
    assert told.count("unknown parameter") == 20
    assert "; 10 more faults." in told


def test_a_missing_choice_names_what_may_be_chosen() -> None:
    schema = {"type": "object", "properties": {"order": {"enum": ["asc", "desc"]}}, "required": ["order"]}
    error = check_arguments(tool(parameters=schema), {})
    assert error is not None
    assert "missing required parameter 'order' (one of asc, desc)" in error.msg


def test_a_schema_that_allows_other_parameters_gets_them() -> None:
    free = tool(parameters={"type": "object", "properties": {}, "required": [], "additionalProperties": True})
    assert check_arguments(free, {"anything": 1}) is None


def test_a_changed_interface_under_the_same_identity_is_checked_anew() -> None:
    assert check_arguments(tool(), {"eventId": "evt_1"}) is None
    changed = tool(parameters={"type": "object", "properties": {"eventId": {"type": "integer"}}, "required": []})
    assert check_arguments(changed, {"eventId": "evt_1"}) is not None


def test_a_pattern_of_another_dialect_does_not_stop_a_call() -> None:
    schema = {"type": "string", "pattern": "[^/:|\\000-\\037]+"}
    odd = tool(parameters={"type": "object", "properties": {"pattern": schema}, "required": ["pattern"]})
    assert check_arguments(odd, {"pattern": "stream"}) is None
    assert check_arguments(odd, {"pattern": 3}) is not None
