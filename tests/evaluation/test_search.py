"""Figures of a search: recall, NDCG, intervals, and the baseline beside it."""

from __future__ import annotations

import math

import pytest

from paraagent.catalog.store import Catalog
from paraagent.evaluation.search import METRICS, LabelledQuery, compare, indexed, out_of_the_box, score
from paraagent.retrieval.index import ToolIndex
from paraagent.retrieval.speed import speed

QUERIES = [
    LabelledQuery("easy", "current temperature and humidity in a city", frozenset({"weather_current"})),
    LabelledQuery("easy", "track a parcel by its tracking number", frozenset({"shipping_track_parcel"})),
    LabelledQuery(
        "hard",
        "What is the weather in Oslo? I also need the gate of a flight.",
        frozenset({"weather_current", "flights_status"}),
    ),
]


@pytest.mark.parametrize(
    ("found", "relevant", "expected"),
    [
        (["a", "b"], {"a"}, (1.0, 1.0, 1.0, 1.0)),
        (["x", "a"], {"a"}, (1.0, 1.0, 1.0, 1 / math.log2(3))),
        (["x", "y", "z", "a"], {"a", "b"}, (0.0, 0.5, 0.5, (1 / math.log2(5)) / (1 + 1 / math.log2(3)))),
        ([], {"a"}, (0.0, 0.0, 0.0, 0.0)),
        (["x"] * 10 + ["a"], {"a"}, (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_ranking_is_scored_as_defined(found: list[str], relevant: set[str], expected: tuple[float, ...]) -> None:
    assert score(found, frozenset(relevant)) == pytest.approx(expected)


def test_a_comparison_has_means_intervals_and_the_paired_difference(tiny_index: ToolIndex) -> None:
    nothing: list[str] = []
    figures = compare(QUERIES, indexed(tiny_index), lambda request: nothing, seed=3)
    assert figures["queries"] == 3
    assert set(METRICS) <= figures.keys() & figures["baseline"].keys()
    mean, low, high = figures["intervals"]["recall@5"]
    assert mean == figures["recall@5"] > 0.8
    assert low <= mean <= high
    assert figures["difference"] == figures["intervals"]
    assert {name: group["queries"] for name, group in figures["groups"].items()} == {"easy": 2, "hard": 1}
    assert figures == compare(QUERIES, indexed(tiny_index), lambda request: nothing, seed=3)


def test_the_baseline_is_bm25s_over_name_and_description(tiny_catalog: Catalog) -> None:
    search = out_of_the_box(tiny_catalog)
    assert "weather_current" in search("current temperature and humidity in a city")
    assert len(search("get")) == min(10, len(tiny_catalog))


def test_speed_is_measured_for_each_number_of_slots(tiny_index: ToolIndex) -> None:
    figures = speed(tiny_index.directory, [query.text for query in QUERIES], widths=(1, 2))
    assert figures["p50_ms"].keys() == figures["p99_ms"].keys() == {"1", "2"}
    assert all(0 < figures["p50_ms"][width] <= figures["p99_ms"][width] for width in ("1", "2"))
    assert 0 < figures["shared_bytes"] < figures["rss_bytes"]
