"""`paraagent bench env` sets warm calls beside their floor, and draws calls that tools accept."""

from __future__ import annotations

from pathlib import Path

from paraagent.catalog.store import Catalog
from paraagent.progress import Quiet
from paraagent.retrieval.index import build_index
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.bench import bench_env, draw_calls


def test_drawn_calls_are_valid_and_follow_from_the_seed(tiny_catalog: Catalog) -> None:
    drawn = list(draw_calls(tiny_catalog, 12, 5))
    assert len(drawn) == 12
    assert [check_arguments(tool, arguments) for tool, arguments in drawn] == [None] * 12
    assert drawn == list(draw_calls(tiny_catalog, 12, 5)) != list(draw_calls(tiny_catalog, 12, 6))


def test_the_benchmark_sets_calls_beside_their_floor(tiny_catalog_path: Path, tmp_path: Path) -> None:
    build_index(tiny_catalog_path, tmp_path / "index")
    measured = bench_env(tiny_catalog_path, tmp_path / "index", 10, 5, 0, Quiet())
    assert measured["floor_calls_per_second"] > measured["calls_per_second"] > 0
    assert 0 < measured["p50_ms"] <= measured["p99_ms"]
    assert 0 < measured["cold_p50_ms"] <= measured["cold_p99_ms"]
    assert (measured["tools"], measured["episodes"]) == (10, 5)
