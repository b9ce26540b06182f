"""Sketch: a few numbers by which two episodes are told to say nearly the same (bottom-k MinHash over word shingles)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from paraagent.trace import Episode

_SIZE = 64
"""Numbers of a sketch: the likeness is right to about one part in eight."""
_WORDS = 4
"""Words of one shingle."""
_VALUE = re.compile(r"[\w.:/-]*\d[\w.:/-]*")


def sketch(episode: Episode) -> list[int]:
    """The smallest hashes of the shingles of request and turns; values with digits count as one and the same."""
    text = "\n".join([episode.request, *(turn.text for turn in episode.turns)])
    words = _VALUE.sub("0", text.casefold()).split()
    shingles = {" ".join(words[start : start + _WORDS]) for start in range(max(1, len(words) - _WORDS + 1))}
    return sorted(_hash(shingle) for shingle in shingles)[:_SIZE]


def likeness(first: Sequence[int], second: Sequence[int]) -> float:
    """Share of shingles that two episodes have in common, 0 … 1, as their sketches tell."""
    union = sorted({*first, *second})[:_SIZE]
    both = {*first} & {*second}
    return sum(value in both for value in union) / len(union) if union else 1.0


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).digest(), "big")
