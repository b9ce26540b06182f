"""Realistic numbers: within the schema's bounds, and inside them of the size that the name suggests."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.catalog.nouns import word_set
from paraagent.toolenv.identifiers import words
from paraagent.toolenv.leaves import Leaf, moment_of


def whole_of(names: frozenset[str]) -> Leaf:
    """An integer of the size that the name suggests."""
    moments = {"timestamp", "ts", "epoch", "at", "created", "updated", "modified", "datetime"}
    fine = bool(names & {"ms", "millis", "milliseconds"})
    if (names & moments or (fine and names & {"time", "date"})) and not names & {"count", "total", "by"}:
        moment, factor = moment_of(names), 1_000 if fine else 1
        return lambda key, now: moment(key, now) * factor
    if names >= {"status", "code"}:
        return lambda key, now: (200, 201, 202, 204)[key % 4]
    low, high = _natural(names)
    return lambda key, now: low + key % (high - low + 1)


def is_number(names: frozenset[str]) -> bool:
    """Whether these words name a number, even where it is written as text."""
    return any(names & family for family, _, _ in _RANGES)


def _natural(names: frozenset[str]) -> tuple[int, int]:
    """Least and most; a `min` and a `max` of the same thing get the two halves, so that neither overtakes the other."""
    low, high = next(((low, high) for family, low, high in _RANGES if names & family), (1, 1_000))
    if names & _LEAST and high - low > 1:
        return low, (low + high) // 2
    return ((low + high) // 2 + 1, high) if names & _MOST and high - low > 1 else (low, high)


_LEAST = frozenset({"min", "minimum", "lowest"})
_MOST = frozenset({"max", "maximum", "highest"})


_COUNTED = word_set(
    """
    id ids number year month day hour count quantity port page size bytes limit ts connections items services targets
    users members files requests certificates servers cores cpus views likes clicks visits sessions attempts
    """
)
"""Words of numbers that are whole even where the schema allows fractions."""
_RANGES: tuple[tuple[frozenset[str], int, int], ...] = (
    (frozenset({"percent", "percentage", "progress", "pct", "humidity", "rh", "clouds", "cloudcover"}), 1, 99),
    (frozenset({"probability", "pop", "confidence"}), 1, 99),
    (frozenset({"pressure", "pres"}), 985, 1_035),
    (frozenset({"temperature", "temp", "dewpoint", "dewpt"}), -10, 36),
    (frozenset({"wind", "gust", "gusts"}), 0, 30),
    (frozenset({"precipitation", "precip", "rain", "snow"}), 0, 40),
    (frozenset({"lat", "latitude"}), -60, 70),
    (frozenset({"lon", "lng", "long", "longitude"}), -170, 170),
    (frozenset({"year"}), 2000, 2026),
    (frozenset({"month"}), 1, 12),
    (frozenset({"day"}), 1, 28),
    (frozenset({"hour", "hours"}), 0, 23),
    (frozenset({"minute", "minutes"}), 0, 59),
    (frozenset({"age"}), 18, 85),
    (frozenset({"rating", "stars"}), 1, 5),
    (frozenset({"score", "rank", "position"}), 1, 100),
    (frozenset({"port"}), 1_024, 49_151),
    (frozenset({"bytes", "capacity"}), 10_000, 90_000_000),
    (frozenset({"limit", "page", "per"}), 1, 50),
    (frozenset({"seconds", "duration", "timeout", "latency", "ttl"}), 5, 3_600),
    (frozenset({"price", "amount", "cost", "fee", "total", "balance", "salary", "revenue", "budget"}), 12, 9_500),
    (frozenset({"id", "number", "code"}), 1_000, 99_999),
    (frozenset({"count", "quantity", "size", "length", "num"}), 1, 400),
)


def number_leaf(name: str, schema: Schema, whole: bool) -> Leaf:
    """A number within the schema's bounds; inside them, of the size that the name suggests."""
    whole = whole or not _COUNTED.isdisjoint(words(name)) or name.lower().endswith("id")
    return _number(name, whole, *_bounds(schema, whole), schema.get("multipleOf"), schema.get("format") == "int32")


@lru_cache(maxsize=16_384, typed=True)
def _number(name: str, whole: bool, low: Any, high: Any, step: Any, narrow: bool) -> Leaf:
    names = frozenset(words(name))
    if low is None and high is None and whole and not step:
        leaf = whole_of(names)
        return (lambda key, now: leaf(key, now) & 0x7FFFFFFF) if narrow else leaf
    first, last = _natural(names)
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    if first > last:
        first, last = (high - 999 if low is None else low), (low + 999 if high is None else high)
    if step:
        bottom, top = -(-first // step), last // step
        span = max(int(top - bottom), 0) + 1
        digits = 10 if isinstance(step, float) else None
        if whole:
            return lambda key, now: int((bottom + key % span) * step)
        return lambda key, now: round((bottom + key % span) * step, digits)
    if whole:
        bottom_, span = int(first), int(last) - int(first) + 1
        return lambda key, now: bottom_ + key % max(span, 1)
    width = last - first
    digits = 2 if width >= 1 else 6
    return lambda key, now: round(first + width * ((key % 999_983 + 1) / 1_000_000), digits)


def _bounds(schema: Schema, whole: bool) -> tuple[Any, Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    margin = 1 if whole else 0.01
    if (strict := schema.get("exclusiveMinimum")) is not None:
        low = strict + margin if low is None else max(low, strict + margin)
    if (strict := schema.get("exclusiveMaximum")) is not None:
        high = strict - margin if high is None else min(high, strict - margin)
    if whole:
        low, high = (None if low is None else -int(-low // 1)), (None if high is None else int(high // 1))
    return low, high
