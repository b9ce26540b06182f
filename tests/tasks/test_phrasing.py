"""Requests vary, and each says the need, the values and the fact."""

from __future__ import annotations

import random

import pytest

from paraagent.tasks.phrasing import ASKS, CLAUSES, FRAMES, OPENINGS, Given, Item, phrase

ITEMS = [
    Item("get the state of a shipment", (Given("tracking number", "278418"),), "the city"),
    Item(
        "list the orders of a customer",
        (Given("customer ID", "cus_1a2b3c"), Given("year", "2025")),
        "the total of the first order",
    ),
    Item("describe a cluster", (Given("cluster name", "orders-atlas"),), "the status"),
]


def test_there_are_more_than_25_templates_to_combine() -> None:
    assert len(OPENINGS) + len(ASKS) + len(CLAUSES) + sum(map(len, FRAMES.values())) >= 25
    assert len({phrase(ITEMS[:1], random.Random(seed)) for seed in range(400)}) > 100


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_request_holds_needs_values_and_facts_word_for_word(width: int) -> None:
    for seed in range(100):
        request = phrase(ITEMS[:width], random.Random(seed))
        assert request[0].isupper()
        assert request[-1] in ".?"
        for item in ITEMS[:width]:
            assert item.need.lower() in request.lower()
            assert item.fact in request
            assert all(given.value in request and given.word in request for given in item.givens)


def test_the_same_choices_give_the_same_words() -> None:
    assert phrase(ITEMS, random.Random(4)) == phrase(ITEMS, random.Random(4))
