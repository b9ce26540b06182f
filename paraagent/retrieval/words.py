"""Words of tool texts and of slots: identifiers come apart, common words go, English endings are cut.

`calendar.events.listV2` and "list the calendar's events" must meet. A word is looked at once and its terms are kept,
since eighty thousand tools repeat the same few ten thousand words.
"""

from __future__ import annotations

import re

import Stemmer
from bm25s.stopwords import STOPWORDS_EN_PLUS

_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_APOSTROPHE = re.compile(r"['’]s?\b")
_STOP = frozenset(STOPWORDS_EN_PLUS)
_JOINED_PARTS = 2
"""`GitHub`, `EC2` and `eventId` also count as one word; longer compounds name one tool and would fill the index."""


class Terms:
    """Turns text into terms. Not shared between threads."""

    def __init__(self) -> None:
        self._stemmer = Stemmer.Stemmer("english")
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(self, text: str) -> list[str]:
        """The terms of a text, in order, repeated as often as they occur."""
        terms: list[str] = []
        known = self._known
        for word in _WORD.findall(_APOSTROPHE.sub("", text)):
            found = known.get(word)
            if found is None:
                found = known[word] = self._split(word)
            terms.extend(found)
        return terms

    def _split(self, word: str) -> tuple[str, ...]:
        parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [word.lower()]
        if len(parts) == _JOINED_PARTS:
            parts.append("".join(parts))
        return tuple(self._stemmer.stemWords([part for part in parts if part not in _STOP]))
