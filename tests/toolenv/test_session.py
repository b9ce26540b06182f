"""Laws 4 to 8 of the grounded world: one thing through several tools, over a session."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.executor import ToolError
from paraagent.toolenv.world import World
from tests.toolenv.families import CALENDAR, CLUSTER, NUMBER, REPOSITORIES, TEXT, array, family, fields, made

ROOT = Path(__file__).parents[2]
GET, LIST, CREATE, UPDATE, DELETE = CALENDAR
HOME = {"calendarId": "cal_1"}


def listed(world: World, **more: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.respond(LIST, {**HOME, "maxResults": 50, **more})["items"]
    return items


def missing(world: World, interface: ToolInterface, arguments: dict[str, Any]) -> bool:
    try:
        world.respond(interface, arguments)
    except ToolError as error:
        return error.info.type == "NotFoundError"
    return False


@pytest.mark.parametrize("seed", range(8))
def test_law_4_a_listed_thing_reads_the_same_alone(seed: int) -> None:
    world = World(seed, ["cal_1"])
    for item in listed(world):
        assert world.respond(GET, {**HOME, "eventId": item["id"]}) == item


def test_law_5_an_id_that_nobody_issued_is_not_found() -> None:
    world = World(3, ["cal_1"])
    assert missing(world, GET, {**HOME, "eventId": "evt_guess"})
    assert missing(world, LIST, {"calendarId": "cal_guess"})
    assert missing(World(3, ["cal_1", "cal_2"]), DELETE, {**HOME, "eventId": listed(world)[0]["id"]})
    World(3, ["cal_1", "evt_given"]).respond(GET, {**HOME, "eventId": "evt_given"})


def test_a_thing_is_not_found_in_another_place_than_its_own() -> None:
    world = World(3, ["cal_1", "cal_2"])
    first = listed(world)[0]["id"]
    assert missing(world, GET, {"calendarId": "cal_2", "eventId": first})


def test_law_6_what_was_written_is_read() -> None:
    world = World(3, ["cal_1"])
    before = len(listed(world))
    event = world.respond(CREATE, {**HOME, "summary": "Launch"})
    assert event["summary"] == "Launch"
    target = {**HOME, "eventId": event["id"]}
    assert world.respond(GET, target) == event
    assert listed(world)[0] == event
    world.respond(UPDATE, {**target, "summary": "Launch again"})
    assert world.respond(GET, target) == {**event, "summary": "Launch again"}
    world.respond(DELETE, target)
    assert missing(world, GET, target)
    assert missing(world, DELETE, target)
    assert len(listed(world)) == before


def test_law_7_worlds_share_nothing() -> None:
    first, second = World(3, ["cal_1"]), World(3, ["cal_1"])
    event = first.respond(CREATE, {**HOME, "summary": "Launch"})
    assert missing(second, GET, {**HOME, "eventId": event["id"]})


@pytest.mark.parametrize("seed", range(8))
def test_law_8_pages_together_are_the_whole_list(seed: int) -> None:
    world, token, seen = World(seed, ["cal_1"]), None, []
    while True:
        page = world.respond(LIST, {**HOME, "maxResults": 1, **({"pageToken": token} if token else {})})
        assert len(page["items"]) == 1
        seen += page["items"]
        token = page.get("nextPageToken")
        if token is None:
            break
    assert seen == listed(world)
    assert page["totalItems"] == len(seen)


@pytest.mark.parametrize("seed", range(8))
def test_law_8_a_filter_leaves_what_it_names(seed: int) -> None:
    world = World(seed, ["cal_1"])
    whole = listed(world)
    assert listed(world, status="open") == [event for event in whole if event["status"] == "open"]


def test_a_page_token_that_no_list_gave_is_an_error() -> None:
    with pytest.raises(ToolError, match="leave it out to get the first page"):
        World(3).respond(LIST, {**HOME, "pageToken": "made-up"})


def test_the_examples_of_the_documents_are_what_a_world_answers() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs" / "world.md"), module_relative=False)
    assert (failed, tried > 10) == (0, True)


def test_a_thing_known_by_a_part_of_it_is_one_through_every_tool() -> None:
    get, every, create, _, delete = CLUSTER
    world, place = World(3, ["one", "two"]), {"namespace": "one"}
    made = world.respond(create, {**place, "immutable": True})
    assert made["metadata"]["namespace"] == "one"
    target = {**place, "name": made["metadata"]["name"]}
    assert world.respond(get, target) == made == world.respond(every, place)["items"][0]
    assert missing(world, get, {**target, "namespace": "two"})
    world.respond(delete, target)
    assert missing(world, get, target)


def test_a_name_found_under_one_name_of_a_place_is_found_under_another() -> None:
    world = World(3, ["acme", "ann"])
    listed_by_org = world.respond(REPOSITORIES[-1], {"org": "acme"})[0]
    assert world.respond(REPOSITORIES[0], {"owner": "ann", "repoName": listed_by_org["name"]}) == listed_by_org


def test_pages_and_offsets_count_from_where_the_interface_says() -> None:
    world, place = World(4, ["ann"]), {"owner": "ann"}
    repos = REPOSITORIES[1]
    whole = world.respond(repos, {**place, "per_page": 50})
    assert world.respond(repos, {**place, "per_page": 1, "page": 2}) == whole[1:2]


def test_the_id_of_what_a_thing_lies_in_is_not_its_own() -> None:
    create = made("members", "insert", "create", "/teams/{id}/members", {}, fields({"id": TEXT, "login": TEXT}))
    assert World(3, ["team_1"]).respond(create, {"id": "team_1"})["id"] != "team_1"


PERSON = fields({"id": TEXT, "name": TEXT, "city": TEXT}, ["id", "name", "city"])
GIVEN = {"name": TEXT, "city": TEXT}
ANYTHING = {
    "a noun of many meanings": family("members", "/members", "memberId", PERSON, GIVEN, {}, array(PERSON)),
    "within a place": family("members", "/clubs/{clubId}/members", "memberId", PERSON, GIVEN, {}, array(PERSON)),
    "a placeholder that may be anything": family("notes", "/notes", "itemId", PERSON, GIVEN, {}, array(PERSON)),
    "written as a body": family(
        "rewards", "/rewards", "rewardId", fields({"reward": PERSON}), {"reward": PERSON}, {}, array(PERSON)
    ),
    "shown under a longer name": family(
        "records",
        "/domains/{domain}/records",
        "domainRecordId",
        fields({"domainRecord": PERSON}),
        GIVEN,
        {},
        fields({"domainRecords": array(PERSON)}),
    ),
}


@pytest.mark.parametrize("tools", ANYTHING.values(), ids=ANYTHING.keys())
def test_a_thing_lives_and_dies_whatever_its_kind_is_called(tools: list[ToolInterface]) -> None:
    get, every, create, update, delete = tools
    world, own = World(3, ["clb_1", "example.com"]), get.required[-1]
    place = {"clubId": "clb_1", "domain": "example.com"}
    place = {name: value for name, value in place.items() if name in get.required}
    written = {"name": "Zoe", "city": "Lyon"}
    new = world.respond(create, {**place, **({"reward": {**written, "id": "r1"}} if own == "rewardId" else written)})
    inner = new.get("reward") or new.get("domainRecord") or new
    key = inner["id"]
    assert inner["name"] == "Zoe"
    assert world.respond(get, {**place, own: key}) == new
    assert key in str(world.respond(every, place))
    world.respond(update, {**place, own: key, **({} if own == "rewardId" else {"name": "Mara"})})
    assert missing(world, get, {**place, own: "never"})
    assert missing(world, delete, {**place, own: "never"})
    world.respond(delete, {**place, own: key})
    assert missing(world, get, {**place, own: key})
    assert key not in str(world.respond(every, place))


def test_an_answer_may_hold_the_new_id_alone() -> None:
    created = fields({"Id": fields({"id": NUMBER})})
    create, get = (
        made("notes", "add", "create", "/notes", {"name": TEXT}, created),
        made("notes", "get", "read", "/notes/{itemId}", {}, PERSON),
    )
    world = World(3, [])
    new = world.respond(create, {"name": "Zoe"})
    assert world.respond(get, {"itemId": str(new["Id"]["id"])})["name"] == "Zoe"


def test_the_parent_that_a_new_thing_is_given_is_not_itself() -> None:
    unit = fields({"unitId": TEXT, "parentUnitId": TEXT, "name": TEXT}, ["unitId", "parentUnitId"])
    insert = made("units", "insert", "create", "/units", {"unitId": TEXT, "parentUnitId": TEXT}, unit)
    shown = World(3, ["u1", "u0"]).respond(insert, {"unitId": "u1", "parentUnitId": "u0"})
    assert (shown["unitId"], shown["parentUnitId"]) == ("u1", "u0")
