"""Identifiers, prose and slots meet in the same terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.retrieval.words import Terms, stop_words

STOP = stop_words()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("calendar.events.list", ["calendar", "event", "list"]),
        ("list_all_users", ["list", "user"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("eventId", ["event", "id", "eventid"]),
        ("GitHub", ["git", "hub", "github"]),
        ("EC2", ["ec", "2", "ec2"]),
        ("short URLs by IDs", ["short", "url", "id"]),
        ("/v1/{order_id}/items", ["v", "1", "v1", "order", "id", "item"]),
        ("the customer's orders", ["custom", "order"]),
        ("créer une tâche", ["créer", "une", "tâche"]),
        ("", []),
    ],
)
def test_a_text_comes_apart_into_terms(text: str, expected: list[str]) -> None:
    assert Terms(STOP)(text) == expected


def test_words_of_asking_say_nothing_of_the_need() -> None:
    request = "I would also like to know the prayer times, please."
    assert Terms(STOP, asking=True)(request) == ["prayer", "time", "prayertim"]
    assert Terms(STOP)(request) == ["would", "also", "like", "know", "prayer", "time", "pleas"]


def test_what_a_request_writes_as_two_words_also_counts_as_one() -> None:
    assert set(Terms(STOP)("timezones")) <= set(Terms(STOP, asking=True)("the current time in time zones"))


@given(st.text(max_size=80))
def test_terms_do_not_depend_on_what_was_seen_before(text: str) -> None:
    terms = Terms(STOP)
    assert terms(text) == terms(text) == Terms(STOP)(text)


@given(st.text(max_size=80), st.text(max_size=80))
def test_terms_of_two_texts_are_the_terms_of_each(first: str, second: str) -> None:
    terms = Terms(STOP)
    assert terms(f"{first} {second}") == terms(first) + terms(second)
