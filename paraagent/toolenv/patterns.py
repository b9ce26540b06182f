"""Strings that match a regular expression and still look like something a person would write.

The expression is parsed once by the standard library; a repeated class that allows letters becomes a word, others the
plainest characters that they allow. Look-arounds are ignored: the caller validates what comes out.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any

from paraagent.toolenv.words import NOUNS

_parser: Any = getattr(re, "_parser")  # noqa: B009  (private module without type stubs)

Draw = Callable[[int, list[str]], int]
"""Append text to the list, using up some of the key's randomness; returns the key for what follows."""

_MULTIPLIER = 0x5851F42D4C957F2D
_MASK = (1 << 64) - 1
_PLAIN = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-_. " + string.punctuation
_PLAINEST = frozenset(string.ascii_lowercase + string.digits)
_ALL = frozenset(_PLAIN)
_WORD_LENGTH = 6
_CATEGORIES = {
    "CATEGORY_DIGIT": frozenset(string.digits),
    "CATEGORY_WORD": frozenset(string.ascii_letters + string.digits + "_"),
    "CATEGORY_SPACE": frozenset(" "),
}


def compile_pattern(pattern: str, minimum: int = 0) -> Callable[[int], str] | None:
    """A function from a 64-bit key to a string that matches `pattern`, or None where Python cannot read the expression.

    `minimum` is a length that open repetitions try to reach.
    """
    try:
        draw = _sequence(_parser.parse(pattern), minimum)
    except (re.error, OverflowError, RecursionError, ValueError):
        return None

    def generate(key: int) -> str:
        parts: list[str] = []
        draw(key, parts)
        return "".join(parts)

    return generate


def _next(key: int) -> int:
    return ((key ^ (key >> 29)) * _MULTIPLIER + 1442695040888963407) & _MASK


def _sequence(nodes: Any, minimum: int) -> Draw:
    draws = [draw for draw in (_node(str(op), value, minimum) for op, value in nodes) if draw is not None]

    def run(key: int, parts: list[str]) -> int:
        for draw in draws:
            key = draw(key, parts)
        return key

    return run


def _node(op: str, value: Any, minimum: int) -> Draw | None:
    if op == "LITERAL":
        return _constant(chr(value))
    if op in ("NOT_LITERAL", "ANY", "IN", "CATEGORY"):
        return _class(_members(op, value), 1, 1, 1)
    if op == "SUBPATTERN":
        return _sequence(value[3], minimum)
    if op == "ATOMIC_GROUP":
        return _sequence(value, minimum)
    if op == "BRANCH":
        return _branch([_sequence(nodes, minimum) for nodes in value[1]])
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _repeat(value, minimum)
    return None


def _constant(text: str) -> Draw:
    def run(key: int, parts: list[str]) -> int:
        parts.append(text)
        return key

    return run


def _branch(draws: list[Draw]) -> Draw:
    def run(key: int, parts: list[str]) -> int:
        return draws[(key >> 11) % len(draws)](_next(key), parts)

    return run


def _repeat(value: Any, minimum: int) -> Draw:
    low, high, nodes = int(value[0]), int(value[1]), list(value[2])
    if len(nodes) == 1 and str(nodes[0][0]) in ("NOT_LITERAL", "ANY", "IN", "CATEGORY"):
        members = _members(str(nodes[0][0]), nodes[0][1])
        wanted = max(low, min(high, max(_WORD_LENGTH, minimum)))
        return _class(members, low, high, wanted)
    inner = _sequence(nodes, 0)
    low = max(low, min(high, minimum))
    most = min(high, low + 1) if low else min(high, 1)

    def run(key: int, parts: list[str]) -> int:
        for _ in range(low + (key >> 13) % (most - low + 1)):
            key = inner(_next(key), parts)
        return _next(key)

    return run


def _class(members: frozenset[str], low: int, high: int, wanted: int) -> Draw:
    allowed = [character for character in _PLAIN if character in members] or ["?"]
    letters = [character for character in allowed if character in string.ascii_lowercase]
    plain = (
        [c for c in allowed if c in string.ascii_lowercase + string.digits]
        or [c for c in allowed if c.isalnum()]
        or allowed
    )
    wordlike = len(letters) == len(string.ascii_lowercase) and low <= _WORD_LENGTH <= high

    def run(key: int, parts: list[str]) -> int:
        text = ""
        if wordlike:
            text = NOUNS[(key >> 7) % len(NOUNS)][:high]
            if "-" in members and len(text) + 3 <= high:
                text += "-"
            if "0" in members and len(text) + 2 <= high:
                text += str(10 + (key >> 17) % 90)
        while len(text) < wanted:
            key = _next(key)
            text += plain[(key >> 23) % len(plain)]
        parts.append(text)
        return _next(key)

    return run


def _members(op: str, value: Any) -> frozenset[str]:
    if op == "ANY":
        return _ALL
    if op == "NOT_LITERAL":
        return _ALL - {chr(value)}
    if op == "CATEGORY":
        name = str(value)
        if name.startswith("CATEGORY_NOT_"):
            return _ALL - _CATEGORIES.get(name.replace("NOT_", ""), frozenset())
        return _CATEGORIES.get(name, _ALL)
    found: set[str] = set()
    negated = False
    for inner, argument in value:
        kind = str(inner)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            found.add(chr(argument))
        elif kind == "RANGE":
            found.update(chr(code) for code in range(argument[0], min(argument[1], 0x17F) + 1))
        elif kind == "CATEGORY":
            found |= _members("CATEGORY", argument)
    return _ALL - found if negated else frozenset(found)
