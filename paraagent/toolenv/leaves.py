"""What all values are made of: a 64-bit key scattered, a pool picked from, a moment around the world's clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from paraagent.toolenv import words as w

Leaf = Callable[[int, int], Any]
"""(key, now in seconds since 1970) -> value."""
Text = Callable[[int, int], str]

MASK = (1 << 64) - 1
_DAY = 86_400
_BEGINNING = dt.datetime(1970, 1, 1)


def mix(key: int) -> int:
    """Scatter a 64-bit key (the finaliser of SplitMix64): neighbouring keys give unrelated values."""
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
    return key ^ (key >> 31)


@cache
def pick(pool: tuple[str, ...]) -> Text:
    size = len(pool)
    return lambda key, now: pool[key % size]


def pair(first: Sequence[str], second: Sequence[str], pattern: str) -> Text:
    a, b = len(first), len(second)
    return lambda key, now: pattern.format(first[key % a], second[(key >> 16) % b], key >> 32 & 0xFFFF)


@lru_cache(maxsize=8_192)
def iso(seconds: int) -> str:
    return f"{(_BEGINNING + dt.timedelta(seconds=seconds)).isoformat()}Z"


def moment_of(names: frozenset[str]) -> Callable[[int, int], int]:
    """Seconds since 1970 around the clock, ordered by what the name says happened."""
    if names & {"birth", "birthday", "birthdate", "born", "dob"}:
        return lambda key, now: key % 14_000 * _DAY - 5_000 * _DAY
    if names & w.RECENT_EVENTS and "first" not in names:
        low, high = -29, -1
    elif names & w.PAST_EVENTS or "first" in names:
        low, high = -900, -30
    elif names & w.LATER_EVENTS:
        low, high = 21, 200
    elif names & w.COMING_EVENTS:
        low, high = 1, 20
    else:
        low, high = -60, 0
    span = (high - low) * 96
    return lambda key, now: (now // 900 + low * 96 + key % span) * 900


def date_time(names: frozenset[str]) -> Text:
    moment = moment_of(names)
    return lambda key, now: iso(moment(key, now))


def date(names: frozenset[str]) -> Text:
    moment = moment_of(names)
    return lambda key, now: iso(moment(key, now))[:10]
