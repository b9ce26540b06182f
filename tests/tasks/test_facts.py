"""Facts are scalars that one phrase names without doubt."""

from __future__ import annotations

import pytest

from paraagent.tasks.facts import answerable, facts_of, value_at

RESULT = {
    "event": {
        "id": "evt_1",
        "status": "confirmed",
        "createdAt": "2026-01-02T10:00:00Z",
        "owner": {"name": "Mara Novak"},
        "etag": "8f3a",
        "public": True,
    }
}


def labels(result: object) -> dict[str, str]:
    return {fact.label: fact.path for fact in facts_of(result)}


def test_a_wrapper_adds_nothing_to_a_name_and_another_thing_does() -> None:
    assert labels(RESULT) == {
        "the status": "event.status",
        "the created time": "event.createdAt",
        "the owner name": "event.owner.name",
    }


def test_a_list_is_asked_about_its_first_element() -> None:
    result = {"orders": [{"orderTotal": 12.5, "id": "ord_1"}, {"orderTotal": 3.5, "id": "ord_2"}]}
    assert labels(result) == {
        "the order total of the first order".replace("order total", "total"): "orders.0.orderTotal"
    }


def test_two_fields_of_one_name_are_no_fact() -> None:
    assert labels({"due_date": "2026-01-01", "dueDate": "2026-02-01"}) == {}


@pytest.mark.parametrize("value", [True, None, "", "x" * 41, "two\nlines", [], {}])
def test_what_is_long_or_guessed_is_no_answer(value: object) -> None:
    assert not answerable(value)


def test_a_path_leads_through_objects_and_lists() -> None:
    assert value_at({"a": [{"b": 3}]}, "a.0.b") == 3
    with pytest.raises(LookupError):
        value_at({"a": []}, "a.0.b")


@pytest.mark.parametrize(
    ("result", "label"),
    [
        ({"sizes": [{"height": 3}]}, "the height of the first size"),
        ({"content": [{"height": 3}]}, "the height of the first result"),
        ({"analyses": [{"status": "done"}]}, "the status of the first analysis"),
        ({"antennaList": [{"name": "North"}]}, "the name of the first antenna"),
        ({"expires_at": "2026-01-01T00:00:00Z"}, "the expiry time"),
        ({"expires": "2026-01-01T00:00:00Z"}, "the expiry time"),
        ({"date_created": "2026-01-01T00:00:00Z"}, "the created date"),
        ({"maxSize": 7}, "the maximum size"),
        ({"spec": {"mode": "calm"}, "kind": "job"}, "the mode"),
    ],
)
def test_a_fact_is_named_as_people_say_it(result: object, label: str) -> None:
    assert label in labels(result)


@pytest.mark.parametrize(
    "result",
    [
        {"public": [{"name": "North"}]},
        {"status": 200},
        {"status": {"version": "1.0"}, "a": 1, "b": 2, "c": 3},
        {"totalPages": 4},
        {"modified_by": "Mara Novak"},
    ],
)
def test_what_nobody_asks_for_is_no_fact(result: object) -> None:
    assert labels(result) == {}
