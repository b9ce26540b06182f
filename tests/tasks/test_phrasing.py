"""Requests vary, and each says the need, the values and the fact."""

from __future__ import annotations

import random

import pytest

from paraagent.tasks.phrasing import (
    PHRASES,
    Given,
    Item,
    Source,
    clause,
    closing,
    contradicts,
    follow,
    opening,
    phrase,
    thing_of,
)

ITEMS = [
    Item("get the state of a shipment", (Given("tracking number", "278418"),), "the city"),
    Item(
        "list the orders of a customer",
        (Given("customer ID", "cus_1a2b3c"), Given("year", "2025")),
        "the total of the first order",
    ),
    Item("describe a cluster", (Given("cluster name", "orders-atlas"),), "the status"),
]
KINDS = ("first", "named", "entry", "single", "each")


@pytest.mark.parametrize("width", [1, 2, 3])
def test_every_family_has_hundreds_of_wordings(width: int) -> None:
    assert len(PHRASES["opening"]) >= 40
    assert len(PHRASES["ask"]) >= 40
    assert len(PHRASES["question"]) >= 40
    assert len({phrase(ITEMS[:width], random.Random(seed)) for seed in range(400)}) > 250


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_can_be_said_in_40_ways_with_its_opening(kind: str) -> None:
    source = Source("order ID", kind, "title", "Rapid Orchard")
    said = {
        f"{opening(ITEMS[1], choices)} {follow(source, clause(ITEMS[2], choices), choices)}"
        for choices in map(random.Random, range(200))
    }
    assert len(said) >= 40


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_request_holds_things_values_and_facts(width: int) -> None:
    for seed in range(100):
        request = phrase(ITEMS[:width], random.Random(seed))
        assert request[0].isupper()
        assert request[-1] in ".?"
        for item in ITEMS[:width]:
            *_, noun = item.need.split()
            assert noun in request
            assert item.fact.lower() in request.lower()
            assert all(given.value in request for given in item.givens)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_says_what_to_take_and_what_to_do(kind: str) -> None:
    source = Source("order ID", kind, "title", "Rapid Orchard")
    for seed in range(60):
        said = follow(source, "get an order", random.Random(seed))
        assert "get an order" in said.lower() or "Get an order" in said
        assert "order" in said
        assert "{" not in said
        assert kind != "named" or ("title" in said and "Rapid Orchard" in said)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            Item(
                "get a node template", (Given("node template", "atlas-7"), Given("region", "us-east-1")), "the status"
            ),
            "the status of the node template atlas-7 in region us-east-1",
        ),
        (
            Item(
                "list the disks in a storage pool", (Given("storage pool ID", "sp_1"),), "the name of the first result"
            ),
            "the name of the first of the disks in the storage pool sp_1",
        ),
        (
            Item("get a signin record", (Given("signin ID", "91"),), "the time"),
            "the time of a signin record with signin ID 91",
        ),
    ],
)
def test_a_value_is_said_with_the_thing_that_it_names(item: Item, said: str) -> None:
    requests = [phrase([item], random.Random(seed)) for seed in range(40)]
    assert any(said in request for request in requests)
    assert not [request for request in requests if "retrieve" in request or "describe" in request]


def test_what_changes_something_asks_for_no_fact() -> None:
    changed = Item("cancel an order", (Given("order ID", "ord_1"),), "")
    assert {closing(changed, random.Random(seed)) for seed in range(200)} == set(PHRASES["done"])


@pytest.mark.parametrize(
    ("word", "thing"), [("order ID", "order"), ("ID", "ID"), ("role ARN", "role"), ("latitude", "latitude")]
)
def test_an_identifier_stands_for_its_thing(word: str, thing: str) -> None:
    assert thing_of(word) == thing


def test_no_sentence_talks_of_tools_or_calls() -> None:
    groups = [*PHRASES["frames"].values(), *(group for name, group in PHRASES.items() if name != "frames")]
    words = {word for group in groups for text in group for word in text.lower().split()}
    assert not words & {"tool", "tools", "call", "calls", "api", "parameter"}


def test_the_same_choices_give_the_same_words() -> None:
    assert phrase(ITEMS, random.Random(4)) == phrase(ITEMS, random.Random(4))


@pytest.mark.parametrize(
    ("label", "given"),
    [
        ("the author", Given("author name", "Ivan Haddad")),
        ("the author name of the first book", Given("author", "Ivan Haddad")),
        ("the type of the first device", Given("device type", "phone")),
        ("the date of the first return", Given("from date", "2026-05-04")),
        ("the creation time", Given("year", "2024")),
        ("the creation time", Given("start time", "2026-05-04T10:00:00Z")),
    ],
)
def test_a_fact_that_the_request_has_said_already_contradicts_it(label: str, given: Given) -> None:
    assert contradicts(label, [given])


@pytest.mark.parametrize(
    ("label", "given"),
    [
        ("the name", Given("author ID", "7")),
        ("the author name", Given("author ID", "7")),
        ("the name of the first member", Given("club name", "North")),
        ("the creation time", Given("customer ID", "2024")),
    ],
)
def test_another_fact_does_not(label: str, given: Given) -> None:
    assert not contradicts(label, [given])


def test_what_was_said_before_is_said_to_be_the_same() -> None:
    givens = (Given("club ID", "7", again=True), Given("year", "2025", again=True))
    said = {clause(Item("get a member of a club", givens, ""), random.Random(seed)) for seed in range(20)}
    assert all(text.endswith("a member of the same club with the same year") for text in said)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Item("list awards", (), "the type of the first result"), "the type of the first of the awards"),
        (
            Item("list TV awards on Pims", (), "the type of the first TV award"),
            "the type of the first of the TV awards",
        ),
        (
            Item("list awards", (), "the type of the first award and the name of the first award"),
            "the type and name of the first of the awards",
        ),
        (Item("list a user's keys", (), "the name of the first result"), "the name of the first of a user's keys"),
    ],
)
def test_the_first_of_a_list_is_said_once(item: Item, said: str) -> None:
    assert any(said in phrase([item], random.Random(seed)) for seed in range(20))


def test_two_facts_are() -> None:
    two = Item("get an order", (Given("order ID", "7"),), "the status and the total")
    requests = [phrase([two, ITEMS[2]][:width], random.Random(seed)) for seed in range(300) for width in (1, 2)]
    assert not [text for text in requests if "hat is the status and" in text or "the total is" in text]
    assert any("what are the status and the total of" in text for text in requests)
