"""Requests that need no tool, and requests that no tool can meet.

The first kind holds everything that its answer is worked out from. The second asks for a deed in somebody's home or
office; it is kept only if no tool that its search shows is about such a thing.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import NamedTuple

from paraagent.catalog.text import words
from paraagent.tasks.phrasing import PHRASES
from paraagent.tasks.rejection import RejectionError

_WORDS = words(
    "harbor willow copper lantern meadow glacier orchard velvet canyon marble thistle beacon cedar falcon ember saddle "
    "pebble ribbon walnut tunnel barley cobalt dahlia maple quarry sparrow timber violet"
)
_ASKS = (
    "What is {}?",
    "Tell me {}.",
    "Please work out {}.",
    "I need to know {}.",
    "Could you tell me {}?",
    "Quick question: what is {}?",
    "Without looking anything up: what is {}?",
    "For my notes, what is {}?",
    "My daughter asks: what is {}?",
    "Just the result, please: {}.",
)
_DEEDS = (
    "water the {} on my balcony",
    "carry the {} up to the attic",
    "wipe the dust off the {} in my hallway",
    "paint the {} behind my house",
    "glue the handle back on my {}",
    "sew a button on my {}",
    "fold the {} on my bed",
    "move the {} from the left shelf to the right one by hand",
    "scrub the {} in my kitchen",
    "sharpen the {} in my drawer",
    "wrap the {} for my niece in paper",
    "hang the {} on the wall above my sofa",
)
_THINGS = (
    "ferns",
    "basil pots",
    "oak wardrobe",
    "grandfather clock",
    "garden fence",
    "porcelain teapot",
    "tweed jacket",
    "woollen blankets",
    "cookbooks",
    "cast-iron pan",
    "bread knife",
    "wooden train",
    "brass lamp",
    "watercolour",
    "rocking chair",
    "straw hat",
)
_WHEN = (
    "",
    " this afternoon",
    " before my guests arrive",
    " while I am away",
    " by tomorrow evening",
    " over the weekend",
)


class Question(NamedTuple):
    """A request without a tool."""

    request: str
    answer: str | int | float


def question(choices: random.Random) -> Question:
    """A question that can be answered from its own words."""
    text, answer = choices.choice(_QUESTIONS)(choices)
    sentence = choices.choice(_ASKS).format(text)
    return Question(sentence, answer)


def deed(choices: random.Random) -> tuple[str, str]:
    """(request, need) of something that no tool of a catalog does."""
    need = choices.choice(_DEEDS).format(choices.choice(_THINGS))
    return choices.choice(PHRASES["polite"]).format(need + choices.choice(_WHEN)), need


def check_unmet(need: str, texts: list[str]) -> None:
    """No text of a found tool shares both what is done and what it is done to. Raises `RejectionError`."""
    wanted = set(words(need)) - _COMMON
    if any(len(wanted & set(words(text))) >= max(2, len(wanted) - 1) for text in texts):
        raise RejectionError("a tool may do what none should")


_COMMON = frozenset(words("the a on my in up to off of for from at by and back one with above behind"))


def _sum(choices: random.Random) -> tuple[str, int]:
    numbers = [choices.randint(112, 9_899) for _ in range(choices.choice((2, 3)))]
    return "the sum of " + " and ".join(map(str, numbers)), sum(numbers)


def _product(choices: random.Random) -> tuple[str, int]:
    first, second = choices.randint(12, 98), choices.randint(103, 989)
    return f"{first} times {second}", first * second


def _difference(choices: random.Random) -> tuple[str, int]:
    first, second = choices.randint(5_000, 9_999), choices.randint(120, 4_900)
    return f"{first} minus {second}", first - second


def _share(choices: random.Random) -> tuple[str, float | int]:
    percent, whole = choices.randint(3, 48), choices.randint(21, 190) * 100
    return f"{percent} percent of {whole}", percent * whole // 100


def _later(choices: random.Random) -> tuple[str, str]:
    start = dt.date(2026, 1, 1) + dt.timedelta(days=choices.randrange(360))
    days = choices.randint(9, 60)
    return f"the date {days} days after {start.isoformat()}", (start + dt.timedelta(days=days)).isoformat()


def _reversed(choices: random.Random) -> tuple[str, str]:
    word = choices.choice(_WORDS)
    return f"the word {word} spelled backwards", word[::-1]


def _minutes(choices: random.Random) -> tuple[str, int]:
    hours, minutes = choices.randint(3, 40), choices.randint(1, 59)
    return f"the number of minutes in {hours} hours and {minutes} minutes", hours * 60 + minutes


_QUESTIONS: tuple[Callable[[random.Random], tuple[str, str | int | float]], ...] = (
    _sum,
    _product,
    _difference,
    _share,
    _later,
    _reversed,
    _minutes,
)
