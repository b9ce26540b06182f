"""Requests in plain words: a need, what is given, and the fact to report, in seeded variety.

Every request is an opening (need and givens) and an ask (the fact); a parallel request joins such pairs. Openings,
asks, pairs and frames combine freely, so that few sentences of a data set look alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple


class Given(NamedTuple):
    """One argument as a person says it."""

    word: str
    """`project id`."""
    value: str


class Item(NamedTuple):
    """One thing that is wanted."""

    need: str
    givens: tuple[Given, ...]
    fact: str
    """`the status`."""


OPENINGS = (
    "Please {need} for {given}.",
    "I need to {need}. The {given_is}.",
    "Could you {need}? The {given_is}.",
    "Can you {need} for {given}?",
    "{Need}, using {given}.",
    "For {given}, {need}.",
    "I want to {need}; the {given_is}.",
    "Help me {need}. I have {given}.",
    "I have {given}. Please {need}.",
    "We have to {need} for {given}.",
    "Given {given}, please {need}.",
    "The {given_is}. {Need} for me.",
    "I'd like to {need} with {given}.",
    "Someone asked me to {need} for {given}.",
)
ASKS = (
    "Tell me {fact}.",
    "What is {fact}?",
    "I need to know {fact}.",
    "Report {fact}.",
    "I only want {fact}.",
    "Just give me {fact}.",
    "Let me know {fact}.",
    "Then tell me {fact}.",
    "All I need is {fact}.",
    "Reply with {fact}.",
)
CLAUSES = (
    "{need} for {given} and tell me {fact}",
    "{need} with {given} and report {fact}",
    "{need} for {given} and give me {fact}",
    "{need} using {given} and let me know {fact}",
    "{need} with {given} and find out {fact}",
)
FRAMES = {
    2: (
        "Two things: {0}; and {1}.",
        "Please {0}. Also, {1}.",
        "I need two answers. First, {0}. Second, {1}.",
        "First, {0}. Separately, {1}.",
        "Could you {0}? And {1}.",
        "I have two jobs for you: {0}; then {1}.",
    ),
    3: (
        "Three things: {0}; {1}; and {2}.",
        "Please {0}. Also, {1}. And {2}.",
        "I need three answers. First, {0}. Second, {1}. Third, {2}.",
        "For my report: {0}; {1}; finally, {2}.",
        "Could you {0}? Then {1}. Last, {2}.",
    ),
}


def phrase(items: Sequence[Item], choices: random.Random) -> str:
    """The request for one to three items."""
    if len(items) == 1:
        fields = _fields(items[0])
        return f"{choices.choice(OPENINGS).format(**fields)} {choices.choice(ASKS).format(**fields)}"
    clauses = [
        clause.format(**_fields(item)) for clause, item in zip(_several(len(items), choices), items, strict=True)
    ]
    text = choices.choice(FRAMES[len(items)]).format(*clauses)
    return text[0].upper() + text[1:]


def _several(count: int, choices: random.Random) -> list[str]:
    return choices.sample(CLAUSES, count)


def _fields(item: Item) -> dict[str, str]:
    return {
        "need": item.need,
        "Need": item.need[0].upper() + item.need[1:],
        "given": _listed([f"{given.word} {given.value}" for given in item.givens]),
        "given_is": _listed([f"{given.word} is {given.value}" for given in item.givens], " and the "),
        "fact": item.fact,
    }


def _listed(parts: Sequence[str], last: str = " and ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
