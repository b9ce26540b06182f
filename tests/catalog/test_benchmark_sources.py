"""ToolBench and API-Bank as sources: every API once, found again by its own names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.catalog.crawl import fetch
from paraagent.catalog.spec import parse_spec
from paraagent.errors import UsageError
from paraagent.progress import Quiet

API: dict[str, Any] = {
    "category_name": "Weather",
    "tool_name": "Sky Watch 2",
    "api_name": "/forecast/{city}",
    "api_description": "What the sky will do in a city.",
    "required_parameters": [{"name": "city", "type": "STRING", "description": "Its name.", "default": "Oslo"}],
    "optional_parameters": [
        {"name": "days", "type": "NUMBER", "description": "", "default": "3"},
        {"name": "from", "type": "DATE (YYYY-MM-DD)", "description": "", "default": ""},
        {"name": "metric", "type": "BOOLEAN", "description": "", "default": "true"},
        {"name": "unit", "type": "ENUM", "description": "c or f", "default": "c"},
        {"name": "strange", "type": "MAP?", "description": "", "default": ""},
    ],
    "method": "get",
    "template_response": '{"id": "int", "days": [{"sky": "str", "_list_length": 3}],'
    ' "tags": ["list of str with length 2"]}',
}
OTHER = {**API, "api_name": "Alarms", "template_response": "not json", "required_parameters": []}


def _queries(folder: Path, **files: list[dict[str, Any]]) -> str:
    folder.mkdir()
    for name, apis in files.items():
        (folder / f"{name}.json").write_bytes(orjson.dumps([{"api_list": apis, "query": "?", "query_id": 1}]))
    return f"toolbench:{folder}"


def test_every_api_of_all_files_comes_once_under_its_own_names(tmp_path: Path, build: Any) -> None:
    built = build([_queries(tmp_path / "q", G1=[API, OTHER, API], G2=[API])])
    rows = built.rows("SELECT source, provider, service, source_name, category FROM tools ORDER BY source_name")
    assert [(row["service"], row["source_name"]) for row in rows] == [
        ("Sky Watch 2", "/forecast/{city}"),
        ("Sky Watch 2", "Alarms"),
    ]
    assert {(row["source"], row["provider"], row["category"]) for row in rows} == {
        ("toolbench:q", "rapidapi.com", "Weather")
    }
    assert built.rows("SELECT * FROM quarantine") == []


def test_types_defaults_and_the_template_become_schemas(tmp_path: Path, build: Any) -> None:
    built = build([_queries(tmp_path / "q", G1=[API, OTHER])])
    [name] = [row["name"] for row in built.rows("SELECT name FROM tools WHERE source_name LIKE '/%'")]
    tool = built.tool(name)
    properties = tool["parameters"]["properties"]
    assert properties["city"] == {"description": "Its name.", "type": "string", "default": "Oslo"}
    assert properties["days"] == {"type": "number", "default": 3}
    assert properties["from"] == {"type": "string", "format": "date"}
    assert properties["metric"] == {"type": "boolean", "default": True}
    assert properties["unit"]["type"] == properties["strange"]["type"] == "string"
    assert tool["parameters"]["required"] == ["city"]
    assert tool["http_method"] == "GET"
    returns = tool["returns"]["properties"]
    assert returns["id"] == {"type": "integer"}
    assert returns["days"]["items"]["properties"] == {"sky": {"type": "string"}}
    assert returns["tags"] == {"type": "array", "items": {"type": "string"}}
    assert built.rows("SELECT returns FROM tools WHERE source_name = 'Alarms'") == [{"returns": None}]


def test_api_bank_tools_come_out_of_tool_searcher_once(tmp_path: Path, build: Any) -> None:
    schema = {
        "name": "BookTable",
        "description": "Books a table in a restaurant.",
        "input_parameters": {"guests": {"type": "int", "description": "How many."}, "at": {"type": "list(str)"}},
        "output_parameters": {"table": {"type": "str", "description": "Where."}},
    }
    search = {"api_name": "ToolSearcher", "output": {"output": schema, "exception": None}}
    several = {"api_name": "ToolSearcher", "output": {"output": [schema, {"description": "no name"}]}}
    broken = {"api_name": "ToolSearcher", "output": {"output": "nothing found"}}
    path = tmp_path / "level-3.json"
    path.write_bytes(orjson.dumps([{"apis": [search, {"api_name": "BookTable", "output": {}}, broken, several]}]))
    built = build([f"apibank:{path}"])
    [row] = built.rows("SELECT name, source_name, source, service FROM tools")
    assert row == {
        "name": "api_bank_book_table",
        "source_name": "BookTable",
        "source": "apibank:level-3.json",
        "service": "api-bank",
    }
    tool = built.tool("api_bank_book_table")
    assert tool["parameters"]["properties"]["guests"] == {"description": "How many.", "type": "integer"}
    assert tool["parameters"]["properties"]["at"] == {"type": "array", "items": {"type": "string"}}
    assert tool["parameters"]["required"] == ["guests", "at"]
    assert tool["returns"]["properties"] == {"table": {"description": "Where.", "type": "string"}}
    assert [row["reason"] for row in built.rows("SELECT reason FROM quarantine")] == ["malformed"]


@pytest.mark.parametrize(("spec", "says"), [("toolbench:{}", r"holds no \.json"), ("apibank:{}/x", "does not exist")])
def test_a_folder_without_files_says_what_belongs_there(tmp_path: Path, spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        fetch(parse_spec(spec.format(tmp_path)), tmp_path, Quiet())
