"""How well a search finds the tools that a request needs: recall and NDCG, with intervals.

Each labelled query is a whole request; a ranking is judged by the tools that people marked as relevant. The baseline
is what everyone would start with: bm25s as it comes, over name and description of the same tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2
from typing import Any, NamedTuple

import numpy as np

from paraagent.catalog.store import Catalog
from paraagent.evaluation.intervals import Interval, paired_bootstrap
from paraagent.retrieval.index import ToolIndex

DEPTH = 10
CUTOFFS = (3, 5, 10)
METRICS = (*(f"recall@{k}" for k in CUTOFFS), f"ndcg@{DEPTH}")
_CONFIDENCE = 0.95

Search = Callable[[str], list[str]]
"""A request -> names of tools, best first, at most `DEPTH`."""


class LabelledQuery(NamedTuple):
    group: str
    text: str
    relevant: frozenset[str]
    """Names of the tools that it needs."""


def score(found: Sequence[str], relevant: frozenset[str]) -> tuple[float, ...]:
    """`METRICS` of one ranking: the share of the relevant tools among the first k, and NDCG with a gain of 1 each
    (Järvelin and Kekäläinen 2002)."""
    gains = [name in relevant for name in found[:DEPTH]]
    gained = sum(gain / log2(rank + 2) for rank, gain in enumerate(gains))
    best = sum(1 / log2(rank + 2) for rank in range(min(DEPTH, len(relevant))))
    return (*(sum(gains[:k]) / len(relevant) for k in CUTOFFS), gained / best)


def compare(queries: Sequence[LabelledQuery], search: Search, baseline: Search, seed: int) -> dict[str, Any]:
    """Both searches on all queries: means with bootstrap intervals over queries, the paired difference, and the mean of
    recall@5 by group."""
    ours, theirs = (
        np.array([score(one(query.text), query.relevant) for query in queries]) for one in (search, baseline)
    )
    groups = sorted({query.group for query in queries})
    member = {group: [query.group == group for query in queries] for group in groups}
    at_five = METRICS.index("recall@5")
    return {
        "queries": len(queries),
        **_means(ours),
        "intervals": _intervals(ours, np.zeros_like(ours), seed),
        "baseline": {**_means(theirs), "intervals": _intervals(theirs, np.zeros_like(theirs), seed)},
        "difference": _intervals(ours, theirs, seed),
        "groups": {
            group: {
                "queries": sum(rows),
                "recall@5": round(float(ours[rows, at_five].mean()), 4),
                "baseline": round(float(theirs[rows, at_five].mean()), 4),
            }
            for group, rows in member.items()
        },
    }


def _means(scores: np.ndarray[Any, Any]) -> dict[str, float]:
    return {metric: round(float(mean), 4) for metric, mean in zip(METRICS, scores.mean(axis=0), strict=True)}


def _intervals(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], seed: int) -> dict[str, list[float]]:
    """[mean, low, high] of each metric's difference."""
    found: dict[str, list[float]] = {}
    for column, metric in enumerate(METRICS):
        interval: Interval = paired_bootstrap(first[:, column].tolist(), second[:, column].tolist(), _CONFIDENCE, seed)
        found[metric] = [round(value, 4) for value in interval]
    return found


def indexed(index: ToolIndex) -> Search:
    """The product's own search, the whole request as one slot."""
    return lambda request: [hit.name for hit in index.search([request], DEPTH)[0]]


def out_of_the_box(catalog: Catalog) -> Search:
    """bm25s as its documentation shows it: its tokenizer, English stop words and stemming, its default method."""
    import bm25s
    import Stemmer

    rows = catalog.rows("SELECT name, name || ' ' || description FROM tools ORDER BY name")
    names = [row[0] for row in rows]
    stemmer = Stemmer.Stemmer("english")
    engine = bm25s.BM25()
    texts = [row[1] for row in rows]
    engine.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)

    def search(request: str) -> list[str]:
        words = bm25s.tokenize(request, stopwords="en", stemmer=stemmer, show_progress=False)
        ids, _ = engine.retrieve(words, k=min(DEPTH, len(names)), show_progress=False, n_threads=1)
        return [names[number] for number in ids[0]]

    return search
