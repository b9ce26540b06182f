"""Requests in plain words: needs, what is given, how one thing leads to the next, and the facts to report.

The sentences stand in `phrases.toml`. A request joins several of them, so that few of a data set look alike.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

PHRASES: dict[str, Any] = tomllib.loads(files("paraagent.tasks").joinpath("phrases.toml").read_text("utf-8"))
_KEY_WORDS = frozenset({"ID", "IDs", "name", "key", "ARN", "number", "slug", "code", "uuid", "sid", "gid"})


class Given(NamedTuple):
    """One argument as a person says it."""

    word: str
    """`project ID`."""
    value: str


class Item(NamedTuple):
    """One thing that is wanted."""

    need: str
    givens: tuple[Given, ...]
    fact: str
    """`the status`; empty where nothing is to be reported."""


class Source(NamedTuple):
    """How a person says where a value comes from."""

    word: str
    """What the value is: `order ID`."""
    kind: str
    """first: of the first thing listed · named: of the thing with a certain label · entry: of the first entry ·
    single: the only one there · each: of the first two."""
    label: str = ""
    value: str = ""

    @property
    def thing(self) -> str:
        """`order` for an `order ID`; the word itself where nothing would be left."""
        return thing_of(self.word)


def thing_of(word: str) -> str:
    """What a word identifies: `order` for `order ID`."""
    *before, last = word.split()
    return " ".join(before) if before and last in _KEY_WORDS else word


def phrase(items: Sequence[Item], choices: random.Random) -> str:
    """The request for one to three independent items."""
    if len(items) == 1:
        return f"{opening(items[0], choices)} {closing(items[0], choices)}"
    asks = choices.sample(PHRASES["clause_ask"], len(items))
    clauses = [clause(item, choices, ask) for item, ask in zip(items, asks, strict=True)]
    return _sentence(choices.choice(PHRASES["frames"][str(len(items))]).format(*clauses))


def opening(item: Item, choices: random.Random) -> str:
    """A sentence that says the need and what is given."""
    if not item.givens:
        return _sentence(choices.choice(PHRASES["polite"]).format(item.need))
    return _sentence(choices.choice(PHRASES["opening"]).format(**_fields(item)))


def closing(item: Item, choices: random.Random) -> str:
    """A sentence that asks for the fact, or for no more than a word that it is done."""
    if not item.fact:
        return str(choices.choice(PHRASES["done"]))
    return _sentence(choices.choice(PHRASES["ask"]).format(fact=item.fact))


def clause(item: Item, choices: random.Random, ask: str = "") -> str:
    """Need, givens and fact within a longer sentence."""
    parts = ["{need}"]
    if item.givens:
        parts.append(choices.choice(PHRASES["clause_given"]))
    if item.fact:
        parts.append(ask or choices.choice(PHRASES["clause_ask"]))
    return " ".join(parts).format(**_fields(item))


def follow(source: Source, then: str, choices: random.Random) -> str:
    """A sentence that says what to do with a value of the result before."""
    thing = source.thing
    plural = f"{thing[:-1]}ies" if thing.endswith("y") and thing[-2:-1] not in "aeiou" else f"{thing}s"
    fields = {"thing": thing, "things": plural, "word": source.word, "label": source.label, "value": source.value}
    return _sentence(choices.choice(PHRASES[source.kind]).format(then=then, **fields))


def same(first: str, second: str, then: str, choices: random.Random) -> str:
    """A sentence that says what to do with a thing and one that was found within it."""
    return _sentence(choices.choice(PHRASES["same"]).format(first=first, second=second, then=then))


def together(first: str, second: str, then: str, choices: random.Random) -> str:
    """A sentence that says what to do with two values of two results."""
    return _sentence(choices.choice(PHRASES["pair"]).format(first=first, second=second, then=then))


def also(kind: str, then: str, choices: random.Random) -> str:
    """A further sentence: `second` about the same thing, `aside` about another."""
    return _sentence(choices.choice(PHRASES[kind]).format(then))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _fields(item: Item) -> dict[str, str]:
    return {
        "need": item.need,
        "Need": _sentence(item.need),
        "given": _listed([f"{given.word} {given.value}" for given in item.givens]),
        "given_is": _listed([f"{given.word} is {given.value}" for given in item.givens], " and the "),
        "fact": item.fact,
    }


def _listed(parts: Sequence[str], last: str = " and ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
