"""Identifiers as people read them: `createdTime`, `created_time` and `CreatedTime` are all the words *created time*."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_IRREGULAR = {
    "movies": "movie",
    "cookies": "cookie",
    "people": "person",
    "children": "child",
    "uses": "use",
    "analyses": "analysis",
    "diagnoses": "diagnosis",
    "ephemerides": "ephemeris",
    "hypotheses": "hypothesis",
    "aliases": "alias",
    "canvases": "canvas",
    "caches": "cache",
    "indices": "index",
    "matrices": "matrix",
    "quizzes": "quiz",
}
_UNCHANGED = frozenset(
    {
        "status",
        "address",
        "access",
        "bus",
        "news",
        "series",
        "species",
        "alias",
        "canvas",
        "atlas",
        "analytics",
        "https",
        "dns",
        "aws",
        "sms",
    }
)


@lru_cache(maxsize=65_536)
def words(name: str) -> tuple[str, ...]:
    """The lower-case words of an identifier, in order."""
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """The one form of all spellings of an identifier: `event_id`, `EventID` and `eventId` give `eventid`."""
    return "".join(words(name))


def singular(word: str) -> str:
    """A noun's singular by the regular rules: `policies` -> `policy`, `addresses` -> `address`, `sizes` -> `size`."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _UNCHANGED or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "uses", "xes", "ches", "shes", "zzes", "tzes")) and not word.endswith(("auses", "ouses")):
        return word[:-2]
    return word[:-1]
