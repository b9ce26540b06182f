"""The catalog as its readers see it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog, pack_catalog
from paraagent.errors import RunError

WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]


def test_a_tool_comes_back_as_it_was_written(tiny_catalog: Catalog, tiny_tools: list[ToolInterface]) -> None:
    assert [tiny_catalog.get(tool.name) for tool in tiny_tools] == tiny_tools


def test_an_unknown_name_is_none_and_is_left_out_of_many(tiny_catalog: Catalog) -> None:
    assert tiny_catalog.get("no_such_tool") is None
    found = tiny_catalog.get_many(["weather_current", "no_such_tool", "flights_status", "weather_current"])
    assert list(found) == ["weather_current", "flights_status"]


def test_names_are_exact_and_never_sql(tiny_catalog: Catalog) -> None:
    assert tiny_catalog.get("Weather_Current") is None
    assert tiny_catalog.get("' OR 1=1 --") is None


def test_names_are_sorted_and_complete(tiny_catalog: Catalog, tiny_tools: list[ToolInterface]) -> None:
    assert tiny_catalog.names() == sorted(tool.name for tool in tiny_tools)
    assert len(tiny_catalog) == len(tiny_tools)


def test_a_repeated_get_is_answered_from_the_cache(tiny_catalog: Catalog) -> None:
    assert tiny_catalog.get("weather_current") is tiny_catalog.get("weather_current")


def test_the_nearest_name_repairs_a_typo(tiny_catalog: Catalog) -> None:
    assert tiny_catalog.nearest("weather_curent", 1) == ["weather_current"]
    assert len(tiny_catalog.nearest("x", 5)) == 5


def test_a_frame_holds_the_columns_asked_for_in_order_of_name(tiny_catalog: Catalog) -> None:
    frame = tiny_catalog.frame(["name", "provider"])
    assert frame.columns == ["name", "provider"]
    assert frame["name"].to_list() == tiny_catalog.names()


def test_a_pickled_catalog_is_its_path(tiny_catalog: Catalog) -> None:
    copy = pickle.loads(pickle.dumps(tiny_catalog))
    assert copy.path == tiny_catalog.path
    assert copy.get("music_get_track") == tiny_catalog.get("music_get_track")
    copy.close()


def test_two_open_catalogs_do_not_lock_each_other_out(tiny_catalog: Catalog) -> None:
    with Catalog.open(tiny_catalog.path) as second:
        assert second.names() == tiny_catalog.names()


def test_the_build_hash_depends_on_texts_alone(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_catalog: Catalog, tiny_tools: list[ToolInterface]
) -> None:
    with Catalog.open(write_catalog(tmp_path / "same.duckdb", reversed(tiny_tools))) as same:
        assert same.build_hash == tiny_catalog.build_hash
    with Catalog.open(write_catalog(tmp_path / "fewer.duckdb", tiny_tools[1:])) as fewer:
        assert fewer.build_hash != tiny_catalog.build_hash


def test_a_missing_catalog_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no tool catalog at .*: run `paraagent catalog build`"):
        Catalog.open(tmp_path / "catalog.duckdb")


def test_a_damaged_catalog_says_so(tmp_path: Path, tiny_catalog_path: Path) -> None:
    damaged = tmp_path / "catalog.duckdb"
    damaged.write_bytes(b"\0" * 5_000 + tiny_catalog_path.read_bytes()[5_000:])
    with pytest.raises(RunError, match="cannot be read"):
        Catalog.open(damaged)


def test_another_database_is_not_a_catalog(tmp_path: Path) -> None:
    other = tmp_path / "catalog.duckdb"
    duckdb.connect(str(other)).close()
    with pytest.raises(RunError, match="cannot be read"):
        Catalog.open(other)


def test_a_packed_catalog_gives_the_same_tools(tmp_path: Path, tiny_catalog: Catalog) -> None:
    path = Path(shutil.copy(tiny_catalog.path, tmp_path / "catalog.duckdb"))
    first = pack_catalog(path).read_bytes()
    assert pack_catalog(path).read_bytes() == first
    with Catalog.open(path) as packed:
        assert packed.get_many(packed.names()) == tiny_catalog.get_many(tiny_catalog.names())
        assert packed.get("no_such_tool") is None
        assert pickle.loads(pickle.dumps(packed)).get("weather_current") == tiny_catalog.get("weather_current")


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 4_000])
def test_a_pack_that_does_not_belong_is_not_used(damage: bytes, tmp_path: Path, tiny_catalog: Catalog) -> None:
    path = Path(shutil.copy(tiny_catalog.path, tmp_path / "catalog.duckdb"))
    (tmp_path / "catalog.pack").write_bytes(damage)
    with Catalog.open(path) as catalog:
        assert catalog.get("weather_current") == tiny_catalog.get("weather_current")


def test_a_pack_of_another_catalog_is_not_used(tmp_path: Path, tiny_catalog: Catalog) -> None:
    path = Path(shutil.copy(tiny_catalog.path, tmp_path / "catalog.duckdb"))
    pack_catalog(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE tools SET title = repeat(md5(title), 50_000) WHERE name = 'weather_current'")
    with Catalog.open(path) as catalog:
        tool = catalog.get("weather_current")
    assert tool is not None
    assert len(tool.title) == 1_600_000
