"""Laws 1 to 3 of the grounded world, over interfaces drawn at random."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from paraagent.catalog.interface import ToolInterface
from paraagent.files import canonical_json
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.leaves import mix
from paraagent.toolenv.simulator import GroundedSimulator
from paraagent.toolenv.world import World
from tests.toolenv.interfaces import interfaces, tool


def arguments_for(interface: ToolInterface, key: int) -> dict[str, Any]:
    """Valid arguments of a tool, required ones and some others."""
    compiler, found = Compiler(), {}
    for position, (name, schema) in enumerate(interface.properties.items()):
        if name in interface.required or (key >> position) & 1:
            found[name] = compiler.compile_field(name, schema, ("event",))(mix(key), World(0).now, {})
    return found


def properties(names: dict[str, dict[str, Any]], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": names, "required": required or []}


TEXT = {"type": "string"}


@settings(max_examples=150, deadline=None)
@given(interface=interfaces(), seed=st.integers(0, 2**62), key=st.integers(0, 2**62))
def test_law_1_the_same_call_gives_the_same_bytes(interface: ToolInterface, seed: int, key: int) -> None:
    arguments = arguments_for(interface, key)
    first = canonical_json(World(seed).respond(interface, arguments))
    World(seed + 1).respond(interface, arguments)
    assert canonical_json(World(seed).respond(interface, dict(reversed(arguments.items())))) == first


@settings(max_examples=300, deadline=None)
@given(interface=interfaces(), seed=st.integers(0, 2**62), key=st.integers(0, 2**62))
def test_law_2_every_success_validates_against_returns(interface: ToolInterface, seed: int, key: int) -> None:
    response = GroundedSimulator(seed).call(interface, arguments_for(interface, key))
    assert response.error is None
    if interface.returns is not None:
        Draft202012Validator(interface.returns).validate(response.result)


NOTHING = {"type": "object", "properties": {}, "required": []}


def test_a_count_that_the_schema_forbids_is_not_insisted_on() -> None:
    many = {"type": "integer", "exclusiveMinimum": 3}
    count = {"type": "object", "properties": {"count": many}, "required": ["count"]}
    items = {"type": "array", "items": {"type": "boolean"}}
    returns = {"type": "object", "properties": {"id": items, "eventId": count}, "required": ["eventId"]}
    response = GroundedSimulator(0).call(tool(returns=returns, path="/events/{eventId}", parameters=NOTHING), {})
    assert response.error is None
    assert response.result["eventId"]["count"] > 3


@settings(max_examples=150, deadline=None)
@given(interface=interfaces(), seed=st.integers(0, 2**62), key=st.integers(0, 2**62))
def test_law_3_arguments_echo_in_the_fields_that_name_them(interface: ToolInterface, seed: int, key: int) -> None:
    arguments = arguments_for(interface, key)
    result = World(seed).respond(interface, arguments)
    if not isinstance(result, dict) or interface.returns is None:
        return
    for name, value in arguments.items():
        if name in result and Draft202012Validator(interface.returns["properties"][name]).is_valid(value):
            assert result[name] == value


def test_another_process_gives_the_same_bytes(tiny_tools: list[ToolInterface]) -> None:
    code = (
        "import sys, orjson\n"
        "from paraagent.catalog.interface import ToolInterface\n"
        "from paraagent.files import canonical_json\n"
        "from paraagent.toolenv.world import World\n"
        "rows = orjson.loads(open('tests/fixtures/tiny_catalog.json').read())\n"
        "for row in rows:\n"
        "    sys.stdout.buffer.write(canonical_json(World(5).respond(ToolInterface(**row, quality=0.8), {})))\n"
    )
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    assert other == b"".join(canonical_json(World(5).respond(each, {})) for each in tiny_tools)


def test_an_entity_reads_the_same_however_it_is_shown() -> None:
    interface = tool(
        parameters=properties({"eventId": TEXT, "fields": TEXT, "maxResults": {"type": "integer"}}, ["eventId"])
    )
    world = World(1)
    plain = world.respond(interface, {"eventId": "evt_1"})
    assert world.respond(interface, {"eventId": "evt_1", "fields": "id", "maxResults": 3}) == plain


def test_another_entity_reads_differently_and_so_does_another_world() -> None:
    interface = tool()
    first = World(1).respond(interface, {"eventId": "evt_1"})
    assert World(1).respond(interface, {"eventId": "evt_2"})["summary"] != first["summary"]
    assert World(2).respond(interface, {"eventId": "evt_1"})["summary"] != first["summary"]


@pytest.mark.parametrize(
    ("parameters", "returns", "path", "echoed"),
    [
        ({"eventId": TEXT}, {"id": TEXT}, "/events/{eventId}", lambda result: result["id"]),
        ({"id": TEXT}, {"eventId": TEXT}, "/events/{id}", lambda result: result["eventId"]),
        ({"event_id": TEXT}, {"EventID": TEXT}, "/", lambda result: result["EventID"]),
        ({"eventName": TEXT}, {"event": properties({"name": TEXT})}, "/", lambda result: result["event"]["name"]),
        (
            {"eventId": TEXT},
            {"data": properties({"id": TEXT})},
            "/events/{eventId}",
            lambda result: result["data"]["id"],
        ),
        (
            {"projectId": TEXT},
            {"items": {"type": "array", "items": properties({"projectId": TEXT}), "minItems": 1}},
            "/",
            lambda result: result["items"][0]["projectId"],
        ),
    ],
)
def test_an_argument_echoes_where_its_entity_is_named(parameters: Any, returns: Any, path: str, echoed: Any) -> None:
    interface = tool(parameters=properties(parameters), returns=properties(returns), path=path)
    assert echoed(World(3).respond(interface, dict.fromkeys(parameters, "given_1"))) == "given_1"


def test_the_name_of_another_thing_is_no_echo() -> None:
    returns = properties({"name": TEXT, "owner": properties({"name": TEXT})})
    result = World(3).respond(tool(parameters=properties({"name": TEXT}), returns=returns), {"name": "Launch"})
    assert result["name"] == "Launch"
    assert result["owner"]["name"] != "Launch"


def test_an_argument_that_the_field_cannot_hold_is_not_echoed() -> None:
    returns = properties({"eventId": {"type": "integer"}})
    result = World(3).respond(tool(returns=returns), {"eventId": "evt_1"})
    assert isinstance(result["eventId"], int)


def test_a_tool_that_says_nothing_of_results_confirms_what_it_was_given() -> None:
    assert World(0).respond(tool(returns=None), {"eventId": "evt_1"}) == {"status": "ok", "eventId": "evt_1"}


def test_a_result_schema_that_contradicts_itself_is_an_error_of_the_tool() -> None:
    returns = properties({"id": {"type": "string", "minLength": 5, "maxLength": 2}}, ["id"])
    response = GroundedSimulator(0).call(tool(returns=returns), {"eventId": "evt_1"})
    assert response.error is not None
    assert response.error.type == "ToolExecutionError"
    assert response.result is None


def test_values_read_like_what_their_names_say() -> None:
    fields = ("email", "phone", "websiteUrl", "createdTime", "updatedTime", "dueDate", "customerName")
    result = World(7).respond(tool(returns=properties(dict.fromkeys(fields, TEXT))), {"eventId": "evt_1"})
    assert result["email"].endswith("@example.com")
    assert "555-01" in result["phone"]
    assert result["websiteUrl"].startswith("https://www.example.com/")
    assert result["createdTime"] < result["updatedTime"] < result["dueDate"]
    assert len(result["customerName"].split()) == 2


@pytest.mark.parametrize("name", ["created", "lastModified", "expires", "published_at", "closed_on", "start_time"])
def test_a_moment_is_told_by_what_happened_then(name: str) -> None:
    result = World(7).respond(tool(returns=properties({name: TEXT})), {"eventId": "evt_1"})
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:00Z", result[name])


def test_a_question_is_answered_by_yes_or_no_and_a_person_by_a_name() -> None:
    result = World(7).respond(tool(returns=properties({"is_published": TEXT, "created_by": TEXT})), {"eventId": "e"})
    assert result["is_published"] in ("true", "false")
    assert len(result["created_by"].split()) == 2


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 10_000_000, "items": {"type": "string", "minLength": 50_000_000}},
        {"type": "array", "minItems": 5_000, "items": {"type": "array", "minItems": 5_000, "items": TEXT}},
        {"type": "string", "minLength": 50_000_000},
    ],
)
def test_a_result_too_large_to_be_one_is_an_error_of_the_tool(schema: Any) -> None:
    response = GroundedSimulator(1).call(tool(returns=properties({"all": schema}, ["all"])), {"eventId": "evt_1"})
    assert response.error is not None
    assert response.error.type == "ToolExecutionError"


def test_a_long_list_that_a_schema_asks_for_is_made() -> None:
    schema = {"type": "array", "minItems": 900, "items": TEXT}
    assert len(World(1).respond(tool(returns=properties({"all": schema})), {"eventId": "evt_1"})["all"]) == 900


def test_a_moment_is_spelled_longer_where_it_must_be() -> None:
    result = World(7).respond(tool(returns=properties({"createdAt": {**TEXT, "minLength": 25}})), {"eventId": "evt_1"})
    assert re.fullmatch(r"[\dT:-]{19}\+00:00", result["createdAt"])


def test_what_can_be_read_is_not_deleted() -> None:
    flag = {"type": "boolean"}
    shown = [World(seed).respond(tool(returns=properties({"isDeleted": flag})), {"eventId": "e"}) for seed in range(9)]
    assert not any(each["isDeleted"] for each in shown)
