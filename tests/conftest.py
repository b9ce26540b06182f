"""Fixtures that every package's tests share: thirty made-up tools in fifteen services, of all three splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from paraagent.agents.transcript import Transcriber
from paraagent.catalog.graph import build_edges
from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.retrieval.index import ToolIndex, build_index

ROOT = Path(__file__).parents[1]
WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]


def _explode(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(path, name, schema) of every field below an object or array schema."""
    if schema.get("type") == "array":
        yield from _explode(schema.get("items", {}), f"{prefix}[]")
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield path, name, field
        yield from _explode(field, path)


def _choices(schema: dict[str, Any]) -> str | None:
    return orjson.dumps(schema["enum"]).decode() if "enum" in schema else None


def _write_catalog(path: Path, tools: Iterable[ToolInterface]) -> Path:
    tools = list(tools)
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute((ROOT / "sql" / "schema.sql").read_text())
        for tool in tools:
            row = asdict(tool) | {
                "parameters": orjson.dumps(tool.parameters).decode(),
                "returns": None if tool.returns is None else orjson.dumps(tool.returns).decode(),
                "n_parameters": len(tool.properties),
                "n_required": len(tool.required),
            }
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO tools ({', '.join(row)}) VALUES ({marks})", list(row.values()))
            for name, schema in tool.properties.items():
                connection.execute(
                    "INSERT INTO parameters VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        tool.tool_id,
                        name,
                        schema.get("type", "any"),
                        name in tool.required,
                        schema.get("description", ""),
                        schema.get("format"),
                        _choices(schema),
                    ],
                )
            for where, name, schema in _explode(tool.returns or {}):
                values = [tool.tool_id, where, name, schema.get("type", "any"), schema.get("description", "")]
                connection.execute("INSERT INTO fields VALUES (?, ?, ?, ?, ?, ?)", [*values, schema.get("format")])
        connection.execute(
            "INSERT INTO quarantine VALUES ('npm:beta', 'ping', 'skyline.example', 'weather', 'no_description', '')"
        )
        connection.execute("INSERT INTO build_info VALUES ('tools', ?)", [str(len(tools))])
        build_edges(connection)
    return path


@pytest.fixture(scope="session")
def write_catalog() -> WriteCatalog:
    """Writes any tools as a catalog file of the real schema, and returns its path."""
    return _write_catalog


@pytest.fixture(scope="session")
def tiny_tools() -> list[ToolInterface]:
    rows = orjson.loads((ROOT / "tests" / "fixtures" / "tiny_catalog.json").read_bytes())
    return [ToolInterface(**row, quality=0.8) for row in rows]


@pytest.fixture(scope="session")
def tiny_catalog_path(tmp_path_factory: pytest.TempPathFactory, tiny_tools: list[ToolInterface]) -> Path:
    return _write_catalog(tmp_path_factory.mktemp("tiny") / "catalog.duckdb", tiny_tools)


@pytest.fixture(scope="session")
def tiny_catalog(tiny_catalog_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tiny_catalog_path) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def tiny_index(tmp_path_factory: pytest.TempPathFactory, tiny_catalog_path: Path) -> ToolIndex:
    directory = tmp_path_factory.mktemp("index")
    build_index(tiny_catalog_path, directory)
    return ToolIndex.load(directory)


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model on disk."""
    from paraagent.progress import Quiet
    from paraagent.training.pretrained import prepare_model

    folder = tmp_path_factory.mktemp("tiny-model")
    prepare_model("random:tiny", folder, folder / "model", seed=1, progress=Quiet())
    return folder / "model"


@pytest.fixture(scope="session")
def transcriber(tiny_model_dir: Path) -> Transcriber:
    """Its tokenizer as conversations are rendered with it."""
    from paraagent.agents.language_model import load_tokenizer

    return Transcriber(load_tokenizer(tiny_model_dir))
