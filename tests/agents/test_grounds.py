"""Grounds: what stands in the request or in an observation was seen, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.agents.grounds import ungrounded, unseen
from paraagent.paraact.protocol import compact
from paraagent.trace import Episode
from tests.rewards import builders

TEXTS = st.text(st.characters(codec="utf-8"), min_size=3, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_what_stands_in_a_result_is_seen(value: Any) -> None:
    assert unseen({"argument": value}, [compact(value)]) == []


@given(JSON)
def test_without_a_text_only_trifles_are_seen(value: Any) -> None:
    def scalars(part: Any) -> list[Any]:
        if isinstance(part, dict | list):
            return [each for inner in (part.values() if isinstance(part, dict) else part) for each in scalars(inner)]
        return [part]

    telling = [
        part for part in scalars(value) if isinstance(part, str) or (type(part) in (int, float) and abs(part) >= 10)
    ]
    assert unseen({"argument": value}, []) == [compact(part) for part in telling]


@given(TEXTS, st.text("abzAXZ019-_.", min_size=3), TEXTS)
def test_a_part_of_a_text_is_seen_whatever_its_case(before: str, value: str, after: str) -> None:
    assert unseen([value], ["nothing", f"{before} {value.swapcase()}, {after}"]) == []


@pytest.mark.parametrize("value", ["ord_7", 42, -17, 10.5, "ab c", {"deep": [["ord_7"]]}])
def test_what_stands_nowhere_is_unseen(value: Any) -> None:
    assert unseen({"a": value}, ["the request", "the result"])


@pytest.mark.parametrize("value", [True, None, "", "de", 9, 0, -3, 2.5, [], {}])
def test_trifles_need_no_ground(value: Any) -> None:
    assert unseen({"a": value}, []) == []


def shown(*hits: str, request: str = "Look up ord_1.", **changes: Any) -> Episode:
    """A search with these hits, then a call of `get_order` for ord_1."""
    search = builders.turn(builders.search(*hits, **changes))
    called = builders.turn(builders.call("get_order", arguments={"id": "ord_1"}))
    return builders.episode(search, called, builders.turn()).model_copy(update={"request": request})


def test_an_episode_that_used_what_it_saw_is_grounded() -> None:
    assert ungrounded(shown("other", "Get_Order")) == ""


@pytest.mark.parametrize(
    ("episode", "used"),
    [
        (shown("other"), "tool get_order"),
        (shown("get_order", visible=False), "tool get_order"),
        (shown("get_order", request="Look up my order."), 'value "ord_1"'),
    ],
)
def test_what_was_used_unseen_is_named(episode: Episode, used: str) -> None:
    assert ungrounded(episode) == used


def test_what_a_turn_finds_is_no_ground_for_the_same_turn() -> None:
    both = builders.turn(builders.search("get_order"), builders.call("get_order"), family="mixed")
    assert ungrounded(builders.episode(both)) == "tool get_order"
    assert ungrounded(builders.episode(both, builders.turn(builders.call("get_order")))) == "tool get_order"


def test_an_opening_search_shows_its_tools() -> None:
    episode = builders.episode(builders.turn(builders.call("get_order")))
    assert ungrounded(episode.model_copy(update={"opening": (builders.search("get_order"),)})) == ""


def test_values_of_earlier_observations_are_grounds() -> None:
    first = builders.turn(builders.search("get_order")).model_copy(update={"observation": '{"id":"ord_1"}'})
    episode = builders.episode(first, builders.turn(builders.call("get_order", arguments={"id": "ord_1"})))
    assert ungrounded(episode) == ""


@pytest.mark.parametrize(
    ("value", "text"), [(12, "id 812345"), ("123", "order 991234"), ("art", "party"), ("ord_1", "ord_12")]
)
def test_a_part_of_a_longer_word_is_not_seen(value: Any, text: str) -> None:
    assert unseen([value], [text])
