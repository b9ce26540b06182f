"""The stage `catalog` with sources on top: what is there is kept, and the end is the same on every way."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import Profile
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from pipelines.catalog import _nearest
from pipelines.home import Home
from pipelines.plan import Request
from pipelines.runner import Outcome, Runner
from pipelines.settings import load_profile


def document(path: Path, *operations: str) -> str:
    """An OpenAPI file of one's own; returns its spec."""
    paths = {
        f"/{name}": {
            "get": {"operationId": name, "description": f"Reads the {name} of the lighthouse.", "responses": {}}
        }
        for name in operations
    }
    info = {"title": path.stem, "version": "1", "x-providerName": f"{path.stem}.example"}
    path.write_bytes(orjson.dumps({"openapi": "3.0.0", "info": info, "paths": paths}))
    return f"openapi:{path}"


def with_added(*specs: str) -> Profile:
    return load_profile("smoke", {"catalog.added": list(specs)})


def run(profile: Profile, home: Path) -> Outcome:
    (outcome,) = Runner(Request(profile, stages=("catalog",)), Home(home), Quiet()).run()
    return outcome


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("specs")
    return document(folder / "beam.json", "rotation", "colour"), document(folder / "fog.json", "horn")


def test_an_added_source_is_found_and_goes_on_top_of_the_nearest_catalog(
    tmp_path: Path, specs: tuple[str, str]
) -> None:
    one = run(with_added(specs[0]), tmp_path / "one")
    home = tmp_path / "both"
    plain = run(with_added(), home)
    assert _nearest(with_added(*specs), home) == (plain.path, 0)
    first = run(with_added(specs[0]), home)
    assert _nearest(with_added(*specs), home) == (first.path, 1)
    both = run(with_added(*specs), home)

    with Catalog.open(both.path / "catalog.duckdb") as catalog:
        index = ToolIndex.load(both.path / "index", catalog)
        assert index.search(["rotation of the lighthouse"], 1)[0][0].name == "beam_rotation"
        assert index.search(["horn of the lighthouse"], 1)[0][0].name == "fog_horn"
        tool = catalog.get("fog_horn")
        assert tool is not None
        assert tool.description == "Reads the horn of the lighthouse."
    assert both.manifest.rows["tools"] == plain.manifest.rows["tools"] + 3
    assert first.manifest.digest == one.manifest.digest


def test_without_the_source_the_catalog_that_was_there_is_reused(tmp_path: Path, specs: tuple[str, str]) -> None:
    before = run(with_added(), tmp_path)
    run(with_added(specs[0]), tmp_path)
    after = run(with_added(), tmp_path)
    assert (after.action, after.path) == ("reused", before.path)


def test_an_added_file_that_changed_is_read_again(tmp_path: Path) -> None:
    spec = document(tmp_path / "beam.json", "rotation")
    before = run(with_added(spec), tmp_path / "home")
    document(tmp_path / "beam.json", "rotation", "colour")
    after = run(with_added(spec), tmp_path / "home")
    assert after.manifest.rows["tools"] == before.manifest.rows["tools"] + 1
