"""Words of tool texts and of requests: identifiers come apart, common words go, English endings are cut.

`calendar.events.listV2` and "list the calendar's events" must meet. A word is looked at once and its terms are kept,
since eighty thousand tools repeat the same few ten thousand words.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import Stemmer

_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_APOSTROPHE = re.compile(r"['’]s?\b")
_ASKING = frozenset(
    [
        *("additionally", "also", "api", "apis", "appreciate", "assist", "assistance", "besides", "could", "currently"),
        *("ensure", "finally", "firstly", "furthermore", "give", "great", "greatly", "hello", "help", "helpful", "hi"),
        *("interested", "kindly", "know", "lastly", "let", "like", "looking", "lot", "may", "might", "moreover"),
        *("need", "needs", "please", "plan", "planning", "provide", "recently", "secondly", "show", "soon", "suggest"),
        *(
            "tell",
            "thank",
            "thanks",
            "then",
            "tool",
            "tools",
            "try",
            "trying",
            "us",
            "use",
            "using",
            "want",
            "wants",
            "would",
        ),
    ]
)
"""Words of asking: rare in the texts of tools, so they would weigh much, and they say nothing of the need."""
_JOINED_PARTS = 2
"""`GitHub`, `EC2` and `eventId` also count as one word; longer compounds name one tool and would fill the index."""

_COMPOUND_PART = 3
"""Letters of a word that may be joined with its neighbour."""


def stop_words() -> list[str]:
    """Words that say nothing, sorted; an index keeps those that it was made without."""
    from bm25s.stopwords import STOPWORDS_EN_PLUS  # brings all of scipy

    return sorted(STOPWORDS_EN_PLUS)


class Terms:
    """Turns text into terms. Not shared between threads."""

    def __init__(self, stop: Collection[str], *, asking: bool = False) -> None:
        """`asking` reads requests, not texts of tools: it leaves out the words of asking as well, and adds neighbours
        joined, since a tool may write "timezone" where a person writes "time zone"."""
        self._asking = asking
        self._stop = _ASKING.union(stop) if asking else frozenset(stop)
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
        if self._asking:
            terms.extend(self._compounds(text))
        return terms

    def _compounds(self, text: str) -> list[str]:
        """Neighbours as one word each; an index knows few of them, and what it does not know counts for nothing."""
        found = [word.lower() for word in _WORD.findall(_APOSTROPHE.sub("", text))]
        plain = [len(word) >= _COMPOUND_PART and word.isalpha() and word not in self._stop for word in found]
        pairs = zip(found, found[1:], plain, plain[1:], strict=False)
        return list(self._stemmer.stemWords([first + second for first, second, *both in pairs if all(both)]))

    def _split(self, word: str) -> tuple[str, ...]:
        parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [word.lower()]
        if len(parts) == _JOINED_PARTS:
            parts.append("".join(parts))
        return tuple(self._stemmer.stemWords([part for part in parts if part not in self._stop]))
