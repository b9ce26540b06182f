"""Documents of a person's own that are broken or mean harm: a reason in the quarantine, and all others are taken in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

GOOD: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "Buoys", "version": "1"},
    "paths": {
        "/buoys": {
            "get": {"operationId": "listBuoys", "description": "Lists all buoys of the harbour.", "responses": {}}
        }
    },
}


def _text(**changes: Any) -> bytes:
    return orjson.dumps(GOOD | changes)


def _with_schema(schema: dict[str, Any], **components: Any) -> bytes:
    body = {"content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "put", "description": "Puts a buoy to sea.", "requestBody": body, "responses": {}}
    return _text(paths={"/buoys": {"post": operation}}, components={"schemas": components})


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("bad.json", b'{"openapi": "3.0.0", "paths": {', "unexpected end of data"),
        ("bad.json", b'{"openapi": "3.0.0", "x": "\xff\xfe"}', "UTF-8"),
        ("bad.yaml", b"openapi: 3.0.0\nx: \xff\xfe\n", "UTF-8|utf-8|utf8"),
        ("bad.json", b'{"openapi": "3.0.0", "paths": {}, "paths": {}}', "the key 'paths' stands twice in one object"),
        (
            "bad.yaml",
            b"openapi: 3.0.0\npaths: {}\npaths: {}\n",
            "the key 'paths' stands twice, the second time in line 3",
        ),
        ("bad.json", b'{"openapi": "3.0.0", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "depth|recursion|nest"),
        ("bad.yaml", b"x: &a [" + b"[" * 600 + b"]" * 600 + b"]", "nested more than"),
        (
            "bad.yaml",
            b"a: &a [x,x,x,x,x,x,x,x,x]\n"
            + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 108)),
            "aliases repeat more than",
        ),
    ],
)
def test_a_document_that_cannot_be_read_is_quarantined_and_the_next_is_read(
    tmp_path: Path, build: Any, name: str, data: bytes, says: str
) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / name).write_bytes(data)
    (folder / "good.json").write_bytes(_text())
    built = build([f"openapi:{folder}"])
    assert [row["source_name"] for row in built.rows("SELECT source_name FROM tools")] == ["listBuoys"]
    (row,) = built.rows("SELECT source_name, reason, detail FROM quarantine")
    assert (row["source_name"], row["reason"]) == (name, "unreadable")
    assert re.search(says, row["detail"]), row["detail"]


def test_a_description_of_50_megabytes_is_cut(tmp_path: Path, build: Any) -> None:
    paths = {
        "/buoys": {"get": {"operationId": "listBuoys", "description": "Lists buoys. " * 4_000_000, "responses": {}}}
    }
    (tmp_path / "long.json").write_bytes(_text(paths=paths))
    tool = build([f"openapi:{tmp_path / 'long.json'}"]).tool("long_list_buoys")
    assert tool["description"].startswith("Lists buoys. Lists buoys.")
    assert len(tool["description"]) < 5_000


def test_schemas_in_circles_end_within_their_bound(tmp_path: Path, build: Any) -> None:
    schemas = {
        "Rope": {"type": "object", "properties": {"knot": {"$ref": "#/components/schemas/Knot"}}},
        "Knot": {
            "type": "object",
            "properties": {"rope": {"$ref": "#/components/schemas/Rope"}, "id": {"type": "string"}},
        },
        "Self": {"$ref": "#/components/schemas/Self"},
        "Both": {"allOf": [{"$ref": "#/components/schemas/Both"}, {"$ref": "#/components/schemas/Rope"}]},
    }
    root = {"type": "object", "properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in schemas}}
    (tmp_path / "circle.json").write_bytes(_with_schema(root, **schemas))
    parameters = build([f"openapi:{tmp_path / 'circle.json'}"]).tool("circle_put")["parameters"]
    assert set(parameters["properties"]) == set(schemas)
    assert b"$ref" not in orjson.dumps(parameters)
    assert len(orjson.dumps(parameters)) <= 16_000


def test_ten_thousand_branches_stay_within_the_bound(tmp_path: Path, build: Any) -> None:
    wide = {
        f"f{i}": {"type": "object", "properties": {f"g{j}": {"type": "string"} for j in range(100)}} for i in range(100)
    }
    (tmp_path / "wide.json").write_bytes(_with_schema({"type": "object", "properties": wide}))
    parameters = build([f"openapi:{tmp_path / 'wide.json'}"]).tool("wide_put")["parameters"]
    assert len(orjson.dumps(parameters)) <= 16_000


def test_two_sources_with_the_same_tool_keep_the_first_one_s_name(tmp_path: Path, build: Any) -> None:
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "buoys.json").write_bytes(
            _text(info={"title": "Buoys", "version": "1", "x-providerName": f"{folder}.example"})
        )
    north, south = (f"openapi:{tmp_path / folder / 'buoys.json'}" for folder in ("north", "south"))
    alone = build([north]).rows("SELECT name FROM tools")
    both = build([north, south]).rows("SELECT name, provider FROM tools ORDER BY provider")
    assert [row["name"] for row in both if row["provider"] == "north.example"] == [row["name"] for row in alone]
    assert len({row["name"].lower() for row in both}) == 2
