"""OpenAPI as people have it: YAML, Swagger 2, several files, references in circles and out of the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.catalog.crawl import snapshot
from paraagent.catalog.spec import parse_spec

ROOT = """
openapi: 3.1.0
info: {title: Harbour, version: 2024-01-31, x-providerName: harbour.example}
paths:
  /ships/{id}:
    get:
      operationId: getShip
      description: Looks a ship up by its id.
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: flag, in: query, schema: {type: string, enum: [no, se], default: no}}
      responses:
        200:
          content:
            application/json:
              schema: {$ref: 'parts/ship.yaml#/Ship'}
"""
SHIP = """
Ship:
  type: object
  properties:
    id: {type: string}
    built: {type: string, format: date, example: 1999-12-31}
    tug: {$ref: '#/Ship'}
    port: {$ref: '../port.json'}
"""
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Post", "version": "1", "x-providerName": "post.example"},
    "securityDefinitions": {"key": {"type": "apiKey", "in": "query", "name": "ticket"}},
    "parameters": {"Trace": {"name": "trace", "in": "query", "type": "boolean", "description": "Follow it."}},
    "responses": {"Letter": {"description": "ok", "schema": {"$ref": "#/definitions/Letter"}}},
    "paths": {
        "/letters": {
            "parameters": [{"$ref": "#/parameters/Trace"}],
            "post": {
                "operationId": "sendLetter",
                "description": "Sends a letter to somebody.",
                "parameters": [
                    {"name": "ticket", "in": "query", "type": "string"},
                    {"name": "letter", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Letter"}},
                ],
                "responses": {"201": {"$ref": "#/responses/Letter"}},
            },
            "get": {
                "operationId": "listLetters",
                "description": "Lists the letters in a box.",
                "parameters": [
                    {
                        "name": "tags",
                        "in": "query",
                        "type": "array",
                        "items": {"type": "string"},
                        "collectionFormat": "multi",
                    }
                ],
                "responses": {"200": {"schema": {"type": "array", "items": {"$ref": "#/definitions/Letter"}}}},
            },
        },
        "/stamps": {
            "post": {
                "operationId": "uploadStamp",
                "description": "Uploads the picture of a stamp.",
                "consumes": ["multipart/form-data"],
                "parameters": [
                    {"name": "picture", "in": "formData", "type": "file", "required": True, "description": "A PNG."},
                    {"name": "price", "in": "formData", "type": "number", "maximum": 9},
                ],
                "responses": {"204": {"description": "done"}},
            }
        },
    },
    "definitions": {
        "Letter": {
            "type": "object",
            "required": ["to"],
            "properties": {
                "to": {"type": "string"},
                "reply": {"$ref": "#/definitions/Letter"},
                "id": {"type": "string", "readOnly": True},
            },
        }
    },
}


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    folder = tmp_path / "harbour"
    (folder / "parts").mkdir(parents=True)
    (folder / "root.yaml").write_text(ROOT)
    (folder / "parts" / "ship.yaml").write_text(SHIP)
    (folder / "port.json").write_text('{"type": "object", "properties": {"city": {"type": "string"}}}')
    return folder


@pytest.mark.parametrize("named", ["harbour", "harbour/root.yaml"])
def test_a_document_reads_the_files_of_its_folder(tmp_path: Path, harbour: Path, build: Any, named: str) -> None:
    built = build([f"openapi:{tmp_path / named}"])
    tool = built.tool("harbour_get_ship")
    ship = tool["returns"]["properties"]
    assert ship["port"]["properties"] == {"city": {"type": "string"}}
    assert ship["built"] == {"type": "string", "format": "date", "examples": ["1999-12-31"]}
    assert ship["tug"]["properties"]["tug"]["type"] == "object"
    assert tool["parameters"]["properties"]["flag"] == {"type": "string", "enum": ["no", "se"], "default": "no"}
    assert built.rows("SELECT * FROM quarantine") == []


def test_a_change_of_a_part_is_a_change_of_the_source(tmp_path: Path, harbour: Path) -> None:
    spec = parse_spec(f"openapi:{harbour / 'root.yaml'}")
    before = snapshot(spec, tmp_path)
    (harbour / "port.json").write_text("{}")
    assert snapshot(spec, tmp_path) != before


@pytest.mark.parametrize(
    "link", ["../secret.json#/A", "{outside}#/A", "https://elsewhere.example/a.json", "file:///a.json", "link.json"]
)
def test_a_reference_out_of_the_folder_is_never_followed(tmp_path: Path, build: Any, link: str) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"A": {"type": "object", "properties": {"password": {"type": "string"}}}}')
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "link.json").symlink_to(secret)
    link = link.format(outside=secret)
    text = ROOT.replace("parts/ship.yaml#/Ship", link)
    (folder / "root.yaml").write_text(text)
    built = build([f"openapi:{folder / 'root.yaml'}"])
    assert built.tool("harbour_get_ship")["returns"] is None
    [row] = built.rows("SELECT * FROM quarantine")
    assert (row["reason"], row["detail"]) == ("external reference", f"{link} was not followed")
    assert built.rows("SELECT * FROM fields WHERE name = 'password'") == []


def test_swagger_2_bodies_forms_and_responses(tmp_path: Path, build: Any) -> None:
    path = tmp_path / "post.json"
    path.write_bytes(orjson.dumps(SWAGGER))
    built = build([f"openapi:{path}"])
    send = built.tool("post_send_letter")
    assert set(send["parameters"]["properties"]) == {"trace", "to", "reply"}
    assert send["parameters"]["required"] == ["to"]
    assert set(send["returns"]["properties"]) == {"to", "reply", "id"}
    listed = built.tool("post_list_letters")
    assert listed["parameters"]["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert listed["returns"]["items"]["properties"]["to"] == {"type": "string"}
    upload = built.tool("post_upload_stamp")["parameters"]
    assert upload["properties"]["picture"] == {"description": "A PNG.", "type": "string"}
    assert upload["properties"]["price"] == {"type": "number", "maximum": 9}
    assert upload["required"] == ["picture"]


def test_references_in_circles_end(build_document: Any) -> None:
    schemas: dict[str, Any] = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    schemas["Tree"] = {"allOf": [{"$ref": "#/components/schemas/Tree"}], "properties": {"left": {"oneOf": []}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}}
    found = {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}
    operation = {"description": "Goes round in circles.", "requestBody": body, "responses": found}
    tool = build_document({"/round": {"post": operation}}, components={"schemas": schemas}).tool("cups_post_round")
    assert list(tool["parameters"]["properties"]) == ["left"]
    assert tool["returns"] is None
