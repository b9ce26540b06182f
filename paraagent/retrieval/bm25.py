"""BM25 over weighted fields, from postings that are kept: what every term adds to the score of every document.

A field's frequencies are measured against the length that this field usually has, so that a long description takes
nothing from a name. Raw postings are what an index is made from: a catalog with one more source is scored anew in
seconds, exactly as if it had been indexed at once, since rarity and lengths are those of the whole.

Formula (Robertson and Zaragoza 2009, BM25F): a term's frequency f is the sum over fields of
`weight * count / (1 - b + b * length / mean length)`; it adds `log(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


class Postings(NamedTuple):
    """Which terms stand how often in which field, document by document, sorted by term and field within each."""

    ends: npt.NDArray[np.int64]
    """(documents + 1,): document i has the entries ends[i] … ends[i + 1]."""
    terms: Ints
    """(entries,): ids of terms."""
    fields: npt.NDArray[np.uint8]
    """(entries,): positions of fields."""
    counts: npt.NDArray[np.uint16]
    """(entries,)"""

    def __len__(self) -> int:
        return len(self.ends) - 1

    def owners(self) -> npt.NDArray[np.int64]:
        """(entries,): the document of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.ends))


class Impacts(NamedTuple):
    """Scores by term: what each term adds to each document that has it."""

    ends: npt.NDArray[np.int64]
    """(terms + 1,): term t has the entries ends[t] … ends[t + 1]."""
    documents: Ints
    """(entries,), ascending within a term."""
    scores: Floats

    def add(self, terms: list[int], into: Floats) -> None:
        """Add the impacts of `terms` to `into` (documents,)."""
        for term in terms:
            part = slice(self.ends[term], self.ends[term + 1])
            into[self.documents[part]] += self.scores[part]


def impacts(postings: Postings, n_terms: int, weights: Sequence[float], k1: float, b: float) -> Impacts:
    """Score every term of every document; `weights` has one for each field."""
    owner = postings.owners()
    cell = owner * len(weights) + postings.fields
    lengths = np.bincount(cell, weights=postings.counts, minlength=len(postings) * len(weights))
    means = lengths.reshape(-1, len(weights)).mean(axis=0)
    damped = 1 - b + b * lengths[cell] / means[postings.fields]
    frequencies = np.asarray(weights)[postings.fields] * postings.counts / damped

    first = np.flatnonzero(np.diff(owner * n_terms + postings.terms, prepend=-1))
    frequencies = np.add.reduceat(frequencies, first)
    documents, terms = owner[first].astype(np.int32), postings.terms[first]
    holders = np.bincount(terms, minlength=n_terms)
    rarity = np.log1p((len(postings) - holders + 0.5) / (holders + 0.5))
    scores = (rarity[terms] * frequencies / (frequencies + k1)).astype(np.float32)
    order = np.argsort(terms, kind="stable")
    ends = np.concatenate([[0], np.cumsum(holders)]).astype(np.int64)
    return Impacts(ends, documents[order], scores[order])


def merge(postings: Postings, group_of: Ints, n_groups: int, n_terms: int) -> Postings:
    """One document a group, with a single field that says once what any of its documents says."""
    pairs = np.unique(group_of[postings.owners()].astype(np.int64) * n_terms + postings.terms)
    groups, terms = np.divmod(pairs, n_terms)
    ends = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n_groups))]).astype(np.int64)
    once = np.ones(len(pairs), dtype=np.uint16)
    return Postings(ends, terms.astype(np.int32), np.zeros(len(pairs), dtype=np.uint8), once)
