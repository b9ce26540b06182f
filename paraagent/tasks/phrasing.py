"""Requests in plain words: needs, what is given, how one thing leads to the next, and the facts to report.

The sentences stand in `phrases.toml`. A request joins several of them, so that few of a data set look alike.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

PHRASES: dict[str, Any] = tomllib.loads(files("paraagent.tasks").joinpath("phrases.toml").read_text("utf-8"))
_LOOKING = frozenset({"get", "list"})
"""Verbs of needs that say no more than that somebody wants to see something."""
_PLACES = frozenset({"project", "region", "zone", "location", "workspace", "organization", "country", "city", "team"})
_AFTER = "in|of|for|on|from|with|at|to|by|and"
_ASKED, _SHORT = 0.4, 0.4
"""Shares of requests for one thing that are a question about it, and of openings that say everything in a row."""
_PERIODS = frozenset({"year", "month", "day", "date", "since", "until", "from", "to"})
_TIMES = frozenset(
    {"date", "time", "timestamp", "start", "end", "year", "created", "updated", "modified", "due", "expiry"}
)
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?\b")
_DETERMINERS = frozenset({"a", "an", "the", "all", "my", "any", "one", "each", "every", "some"})
_KEY_WORDS = frozenset({"ID", "IDs", "name", "key", "ARN", "number", "slug", "code", "uuid", "sid", "gid"})


class Given(NamedTuple):
    """One argument as a person says it."""

    word: str
    """`project ID`."""
    value: str
    again: bool = False
    """Whether the request has said it before, so that it is `the same project`."""

    def said(self, link: str = "") -> str:
        """`project ID 7`, `project ID is 7`, `the same project`."""
        return f"the same {thing_of(self.word)}" if self.again else f"{self.word} {link}{self.value}"


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


def contradicts(label: str, givens: Sequence[Given]) -> bool:
    """Whether a fact makes no sense beside what is given.

    That is the `author` where an `author name` is given, or a date where the request says which dates it is about.
    """
    text, _, holder = label.removeprefix("the ").partition(" of the first ")
    dated = any(given.word.split()[-1] in _PERIODS or _DATE.match(given.value) for given in givens)
    if dated and set(text.split()) & _TIMES:
        return True
    for word in (given.word for given in givens):
        if text in (word, thing_of(word), f"{word} name") or f"{holder} {text}" == word:
            return True
        if text not in _KEY_WORDS and word.endswith(f" {text}"):
            return True
    return False


def phrase(items: Sequence[Item], choices: random.Random) -> str:
    """The request for one to three independent items."""
    if len(items) == 1:
        return alone(items[0], choices)
    asks = choices.sample(PHRASES["clause_ask"], len(items))
    clauses = [clause(item, choices, ask) for item, ask in zip(items, asks, strict=True)]
    return _sentence(choices.choice(PHRASES["frames"][str(len(items))]).format(*clauses))


def alone(item: Item, choices: random.Random) -> str:
    """A request for one thing: a question about it, or what to do and then what to say."""
    verb, thing, rest = _wanted(item)
    if item.fact and verb in _LOOKING and choices.random() < _ASKED:
        fact, thing = _of_the_first(_joined(item.fact), thing)
        asked = _agreeing(choices.choice(PHRASES["question"]), item.fact)
        return _sentence(asked.format(fact=fact, thing=_with(thing, rest)))
    return f"{opening(item, choices)} {closing(item, choices)}"


def _of_the_first(fact: str, thing: str) -> tuple[str, str]:
    """`the name of the first order` of `orders of a customer` is that of the first of `the orders of a customer`."""
    text, first, holder = fact.rpartition(" of the first ")
    listed = thing.split(" ")
    bare = " ".join(listed[listed[0] in ("the", "all") :]).removeprefix("the ")
    if not first or " of the first " in text:
        return fact, thing
    if holder != "result" and not bare.lower().startswith(_plural(holder).lower()):
        return fact, thing
    owned = listed[0] in _DETERMINERS or listed[0].endswith(("'s", "s'"))
    return f"{text} of the first", thing if owned else f"the {thing}"


def _agreeing(sentence: str, fact: str) -> str:
    """`What is` one fact, `what are` two."""
    if " and the " not in fact:
        return sentence
    return re.sub(
        r"(?<=[Ww]hat)(?:'s| is)(?= \{fact\})|(?<=\{fact\}) is\b|(?<=\{fact\} of \{thing\}) is\b", " are", sentence
    )


def _joined(fact: str) -> str:
    """`the name of the first order and the total of the first order`: `the name and total of the first order`."""
    parts = [text.partition(" of the first ") for text in fact.split(" and ")]
    if len(parts) == 2 and parts[0][2] and parts[0][2] == parts[1][2]:
        return f"{parts[0][0]} and {parts[1][0].removeprefix('the ')} of the first {parts[0][2]}"
    return fact


def opening(item: Item, choices: random.Random) -> str:
    """A sentence that says the need and what is given."""
    verb, thing, rest = _wanted(item)
    need = f"{_spoken(verb, choices)} {thing}"
    if not rest or choices.random() < _SHORT:
        return _sentence(choices.choice(PHRASES["polite"]).format(_with(need, rest)))
    return _sentence(choices.choice(PHRASES["opening"]).format(**_fields(need, rest)))


def closing(item: Item, choices: random.Random) -> str:
    """A sentence that asks for the fact, or for no more than a word that it is done."""
    if not item.fact:
        return str(choices.choice(PHRASES["done"]))
    return _sentence(_agreeing(choices.choice(PHRASES["ask"]), item.fact).format(fact=_joined(item.fact)))


def clause(item: Item, choices: random.Random, ask: str = "") -> str:
    """Need, givens and fact within a longer sentence."""
    verb, thing, rest = _wanted(item)
    said = _with(f"{_spoken(verb, choices)} {thing}", rest)
    if item.fact:
        said += " " + _agreeing(ask or choices.choice(PHRASES["clause_ask"]), item.fact).format(fact=_joined(item.fact))
    return said


def _wanted(item: Item) -> tuple[str, str, list[Given]]:
    """What is to be done, to what, and the givens that are not said with it.

    `get a node template` with `node template` atlas is about `the node template atlas`.
    """
    verb, _, thing = item.need.partition(" ")
    for given in item.givens:
        noun = re.compile(
            rf"\b(?:a|an|the|one) ({re.escape(thing_of(given.word))})(?=$| (?:{_AFTER})\b)", re.IGNORECASE
        )
        if noun.search(thing):
            named = noun.sub(r"the same \g<1>" if given.again else rf"the \g<1> {given.value}", thing, count=1)
            return verb, named, [other for other in item.givens if other != given]
    return verb, thing, list(item.givens)


def _spoken(verb: str, choices: random.Random) -> str:
    """`retrieve` is what documentation says; a person looks something up."""
    return str(choices.choice(PHRASES["look_verbs"])) if verb in _LOOKING else verb


def follow(source: Source, then: str, choices: random.Random) -> str:
    """A sentence that says what to do with a value of the result before."""
    thing = source.thing
    fields = {
        "thing": thing,
        "things": _plural(thing),
        "word": source.word,
        "label": source.label,
        "value": source.value,
    }
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


def _plural(thing: str) -> str:
    """`analyses` for `analysis`, `entries` for `entry`, `boxes` for `box`."""
    if thing.endswith("sis"):
        return f"{thing[:-2]}es"
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}es" if thing.endswith(("s", "x", "z", "ch", "sh")) else f"{thing}s"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _with(said: str, givens: Sequence[Given]) -> str:
    """What is wanted, and after it what is given: where it lies, then the rest."""
    places = [given.said() for given in givens if given.word in _PLACES]
    others = [given.said() for given in givens if given.word not in _PLACES]
    if places:
        said += f" in {', '.join(places)}"
    return f"{said} with {_listed(others)}" if others else said


def _fields(need: str, givens: Sequence[Given]) -> dict[str, str]:
    return {
        "need": need,
        "Need": _sentence(need),
        "given": _listed([given.said() for given in givens]),
        "given_is": _listed([given.said("is ") for given in givens], " and the "),
    }


def _listed(parts: Sequence[str], last: str = " and ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
