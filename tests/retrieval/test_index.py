"""The search index over a small catalog."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.splits import split_of
from paraagent.catalog.store import Catalog
from paraagent.errors import RunError
from paraagent.retrieval.index import Filter, ToolIndex, build_index

WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]
SLOTS = st.lists(
    st.sampled_from(["weather", "get an order", "eventId", "the", "", "zzz", "delete a bucket"]), max_size=6
)


def names(index: ToolIndex, slot: str, k: int = 3) -> list[str]:
    return [hit.name for hit in index.search([slot], k)[0]]


@pytest.mark.parametrize(
    ("slot", "tool"),
    [
        ("look up the delivery status of a customer order", "orders_get_order"),
        ("current temperature and humidity in a city", "weather_current"),
        ("find a contact's email address by name", "contacts_people_search"),
        ("how many support tickets have a priority", "tickets_CountTickets"),
        ("departure gate and delay of a flight", "flights_status"),
        ("tracking number", "shipping_track_parcel"),
        ("BucketName", "storage_DescribeBucket"),
    ],
)
def test_a_slot_finds_its_tool(tiny_index: ToolIndex, slot: str, tool: str) -> None:
    assert tool in names(tiny_index, slot)


def test_many_slots_are_answered_in_order_as_if_asked_alone(tiny_index: ToolIndex) -> None:
    slots = ["weather in a city", "cancel an order", "weather in a city"]
    together = tiny_index.search(slots, 3)
    assert together == [tiny_index.search([slot], 3)[0] for slot in slots]


@given(slots=SLOTS, k=st.integers(0, 40))
def test_hits_are_positive_sorted_and_at_most_k(tiny_index: ToolIndex, slots: list[str], k: int) -> None:
    for hits in tiny_index.search(slots, k):
        assert len(hits) <= k
        assert all(hit.score > 0 for hit in hits)
        assert [(-hit.score, hit.name) for hit in hits] == sorted((-hit.score, hit.name) for hit in hits)


@given(slots=SLOTS, k=st.integers(1, 40))
def test_fewer_hits_are_the_first_of_more(tiny_index: ToolIndex, slots: list[str], k: int) -> None:
    assert tiny_index.search(slots, k) == [hits[:k] for hits in tiny_index.search(slots, 100)]


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_split_finds_only_its_own_services(tiny_index: ToolIndex, tiny_catalog: Catalog, split: str) -> None:
    hits = tiny_index.search(["get list create identifier name"], 100, split=split)[0]  # type: ignore[arg-type]
    found = tiny_catalog.get_many(hit.name for hit in hits)
    assert found
    assert {split_of(tool.provider, tool.service) for tool in found.values()} == {split}


def test_nothing_in_common_finds_nothing(tiny_index: ToolIndex) -> None:
    assert tiny_index.search(["qwertyuiop", "", "the of and"], 3) == [[], [], []]


def test_equal_scores_are_ordered_by_name(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    tool = tiny_tools[0]
    twins = [
        replace(tool, tool_id=f"{tool.tool_id}/{n}", name=f"twin_tool_{n}", source_name=f"{n}.twin")
        for n in (4, 2, 3, 1)
    ]
    build_index(write_catalog(tmp_path / "catalog.duckdb", [*twins, *tiny_tools]), tmp_path / "index")
    found = ToolIndex.load(tmp_path / "index").search(["twin"], 3)[0]
    assert [hit.name for hit in found] == ["twin_tool_1", "twin_tool_2", "twin_tool_3"]
    assert len({hit.score for hit in found}) == 1


def test_the_same_catalog_gives_the_same_bytes(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    for name, tools in (("first", tiny_tools), ("second", tiny_tools[::-1])):
        build_index(write_catalog(tmp_path / f"{name}.duckdb", tools), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert [(tmp_path / "first" / name).read_bytes() for name in files] == [
        (tmp_path / "second" / name).read_bytes() for name in files
    ]


def test_an_index_that_reuses_another_is_the_same_to_the_byte(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    more, fewer = [*tiny_tools, *_versions(tiny_tools[0])], tiny_tools[3:]
    earlier = tmp_path / "earlier"
    build_index(write_catalog(tmp_path / "earlier.duckdb", tiny_tools), earlier)
    for name, tools in (("more", more), ("fewer", fewer)):
        path = write_catalog(tmp_path / f"{name}.duckdb", tools)
        build_index(path, tmp_path / "anew")
        build_index(path, tmp_path / "reused", reuse=earlier)
        for file in sorted((tmp_path / "anew").iterdir()):
            assert file.read_bytes() == (tmp_path / "reused" / file.name).read_bytes(), file.name


def test_versions_of_one_method_count_once(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    build_index(
        write_catalog(tmp_path / "catalog.duckdb", [*tiny_tools, *_versions(tiny_tools[0])]), tmp_path / "index"
    )
    found = ToolIndex.load(tmp_path / "index").search(["get an entry of the almanac"], 20)[0]
    assert sum(hit.name.startswith("almanac") for hit in found) == 1


def _versions(tool: ToolInterface) -> list[ToolInterface]:
    return [
        replace(
            tool,
            tool_id=f"almanac/{version}/entries.get",
            name=f"almanac_entries_get_{version}",
            description="Get an entry of the almanac.",
            provider="almanac.example",
            service=f"almanac-{version}",
            source_name="entries.get",
        )
        for version in ("v1", "v2", "v2beta")
    ]


@pytest.mark.parametrize("column", ["provider", "service", "effect", "source"])
def test_a_filter_keeps_to_its_tools(tiny_index: ToolIndex, tiny_catalog: Catalog, column: str) -> None:
    wanted = getattr(tiny_catalog.get("orders_get_order"), column)
    hits = tiny_index.search(["get list create identifier name"], 100, where=Filter(**{column: wanted}))[0]
    assert hits
    assert {getattr(tool, column) for tool in tiny_catalog.get_many(hit.name for hit in hits).values()} == {wanted}


def test_a_filter_for_what_is_not_there_finds_nothing(tiny_index: ToolIndex) -> None:
    assert tiny_index.search(["weather"], 5, where=Filter(provider="nobody.example")) == [[]]


def test_a_request_finds_the_tools_of_all_its_sentences(tiny_index: ToolIndex) -> None:
    request = "What is the weather in Oslo now? I also need the gate and the delay of a flight. And track my parcel."
    assert {"weather_current", "flights_status", "shipping_track_parcel"} <= set(names(tiny_index, request, 6))


def test_a_service_lifts_its_tools(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    tool, other = tiny_tools[0], tiny_tools[1]
    made = [
        replace(
            tool,
            tool_id=f"{service}/{name}",
            name=f"{service}_{name}",
            service=service,
            provider=service,
            source_name=name,
            title=name,
            description=text,
        )
        for service, name, text in (
            ("solat", "time", "Daily times."),
            ("solat", "zones", "Zones in which prayer is announced."),
            ("trains", "time", "Daily times."),
            ("trains", "zones", "Zones of fares."),
        )
    ]
    build_index(write_catalog(tmp_path / "catalog.duckdb", [*made, other]), tmp_path / "index")
    found = [hit.name for hit in ToolIndex.load(tmp_path / "index").search(["times of prayer"], 4)[0]]
    assert found.index("solat_time") < found.index("trains_time")


def test_a_pickled_index_maps_the_same_files(tiny_index: ToolIndex) -> None:
    copy = pickle.loads(pickle.dumps(tiny_index))
    assert copy.search(["weather"], 3) == tiny_index.search(["weather"], 3)


def test_an_index_of_another_catalog_is_refused(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_index: ToolIndex, tiny_tools: list[ToolInterface]
) -> None:
    path = write_catalog(tmp_path / "other.duckdb", tiny_tools[1:])
    with Catalog.open(path) as other, pytest.raises(RunError, match="another catalog: run `paraagent catalog build`"):
        ToolIndex.load(tiny_index.directory, other)


def test_a_missing_index_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no search index at .*: run `paraagent catalog build`"):
        ToolIndex.load(tmp_path)


def test_a_damaged_index_says_so(tmp_path: Path, tiny_catalog_path: Path) -> None:
    build_index(tiny_catalog_path, tmp_path)
    (tmp_path / "names.json").write_bytes(b"[")
    with pytest.raises(RunError, match="damaged"):
        ToolIndex.load(tmp_path)


def test_an_empty_catalog_cannot_be_indexed(tmp_path: Path, write_catalog: WriteCatalog) -> None:
    with pytest.raises(RunError, match="holds no tools"):
        build_index(write_catalog(tmp_path / "catalog.duckdb", []), tmp_path / "index")
