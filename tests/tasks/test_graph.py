"""Tasks whose calls hang together, over a made-up catalog: every one is solved by its reference and by nothing less."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, TasksConfig
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.task import Task
from paraagent.tasks.baselines import FAULTS, solve_rates
from paraagent.tasks.graph import closure, compose
from paraagent.tasks.links import Join, Link, Sketch
from paraagent.tasks.play import play, resolved
from paraagent.tasks.pool import Member
from paraagent.tasks.synthesis import Synthesis, synthesise
from tests.toolenv.interfaces import tool

WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]
THINGS = ["parcel", "invoice", "flight", "recipe", "concert", "museum", "tractor", "sensor", "garden", "ferry"]
KINDS = ["rail", "harbor", "alpine", "desert", "polar", "urban", "coastal", "lunar"]
TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 1_000_000_000}
SHAPES: dict[Any, float] = dict.fromkeys(["single", "chain-2", "fan-out", "mixed", "no-tool", "unsolvable"], 1.0)


def record(key: str, *fields: str) -> dict[str, Any]:
    return {"type": "object", "properties": {key: TEXT, **dict.fromkeys(fields, NUMBER)}, "required": [key, *fields]}


def service(kind: str, thing: str) -> list[ToolInterface]:
    """A list, two ways to look at one thing, and a way to delete it."""
    key, plural, named = f"{thing}Id", f"{thing}s", f"{kind.title()}{thing.title()}"
    of_one = {"type": "object", "properties": {key: TEXT}, "required": [key]}
    whole = {"type": "object", "properties": {plural: {"type": "array", "items": record(key)}}, "required": [plural]}
    nothing: dict[str, Any] = {"type": "object", "properties": {}, "required": []}

    def made(name: str, path: str, text: str, takes: dict[str, Any], gives: dict[str, Any]) -> ToolInterface:
        return replace(
            tool(),
            tool_id=f"{kind}{thing}.example/{plural}/{name}",
            name=f"{kind}_{thing}_{name.lower()}",
            source_name=name,
            provider=f"{kind}{thing}.example",
            service=plural,
            title=name,
            description=text,
            effect="delete" if name.startswith("delete") else "read",
            http_method="DELETE" if name.startswith("delete") else "GET",
            path=path,
            parameters=takes,
            returns=gives,
        )

    one = f"/{plural}/{{{key}}}"
    return [
        made(f"list{named}s", f"/{plural}", f"Lists the {kind} {plural} of the depot.", nothing, whole),
        made(f"get{named}Journal", f"{one}/journal", f"Returns the journal of a {kind} {thing}.", of_one,
             record(key, "journalSize", "lineCount")),
        made(f"get{named}Cover", f"{one}/cover", f"Returns the cover of a {kind} {thing}.", of_one,
             record(key, "coverWeight", "coverHeight")),
        made(f"delete{named}Permit", f"{one}/permit", f"Deletes the permit of a {kind} {thing}.", of_one, nothing),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, write_catalog: WriteCatalog) -> tuple[Catalog, ToolIndex]:
    folder = tmp_path_factory.mktemp("graphs")
    tools = [each for kind in KINDS for thing in THINGS for each in service(kind, thing)]
    path = write_catalog(folder / "catalog.duckdb", tools)
    build_index(path, folder / "index")
    return Catalog.open(path), ToolIndex.load(folder / "index")


@pytest.fixture(scope="module")
def made(world: tuple[Catalog, ToolIndex]) -> Synthesis:
    config = TasksConfig(train=48, validation=6, test=6, shapes=SHAPES, writing=0.5)
    return synthesise(*world, config, EnvConfig(), seed=3)


def linked(made: Synthesis) -> list[Task]:
    return [task for task in made.tasks if task.hard_edges]


def test_every_shape_that_is_asked_for_is_made(made: Synthesis) -> None:
    train = [task for task in made.tasks if task.split == "train"]
    assert len(train) == 48
    assert {task.shape for task in train} == {"single", "chain", "fan-out", "mixed", "no-tool", "unsolvable"}
    assert {bool(task.state) for task in train if task.shape == "chain"} == {True, False}
    assert {bool(task.state) for task in train if task.shape == "single"} == {True, False}


def test_every_reference_stands_in_an_earlier_result_and_is_a_hard_edge(
    made: Synthesis, world: tuple[Catalog, ToolIndex]
) -> None:
    assert linked(made)
    for task in linked(made):
        results, _ = play(task.calls, world[0].get_many(task.targets), task.seed, 8_000)
        edges = {(source, call.id) for call in task.calls for source, _ in call.references.values()}
        assert edges == set(task.hard_edges)
        assert set(task.hard_edges) <= set(task.soft_edges)
        for call in task.calls:
            assert all(not isinstance(value, dict) for value in resolved(call, results).values())


def test_a_value_of_an_earlier_result_never_stands_in_the_request(
    made: Synthesis, world: tuple[Catalog, ToolIndex]
) -> None:
    for task in linked(made):
        results, _ = play(task.calls, world[0].get_many(task.targets), task.seed, 8_000)
        for call in task.calls:
            values = resolved(call, results)
            assert not [name for name in call.references if str(values[name]) in task.request]


def test_a_writing_task_says_what_must_have_changed(made: Synthesis) -> None:
    writing = [task for task in made.tasks if task.state]
    assert writing
    for task in writing:
        assert {change.call for change in task.state} <= {call.id for call in task.calls}
        assert all(change.thing.deleted for change in task.state)


def test_every_task_says_how_hard_it_is_and_what_leads_astray(made: Synthesis) -> None:
    assert all(0 <= task.difficulty <= 1 for task in made.tasks)
    assert not [task for task in made.tasks if set(task.distractors) & set(task.targets)]
    single = [task.difficulty for task in made.tasks if task.label == "single"]
    deep = [task.difficulty for task in linked(made)]
    assert sum(single) / len(single) < sum(deep) / len(deep)


def test_the_same_seed_makes_the_same_tasks(made: Synthesis, world: tuple[Catalog, ToolIndex]) -> None:
    config = TasksConfig(train=48, validation=6, test=6, shapes=SHAPES, writing=0.5)
    assert synthesise(*world, config, EnvConfig(), seed=3) == made


@pytest.mark.parametrize("processes", [2, 4])
def test_any_number_of_processes_makes_the_same_tasks(
    made: Synthesis, world: tuple[Catalog, ToolIndex], processes: int
) -> None:
    config = TasksConfig(train=48, validation=6, test=6, shapes=SHAPES, writing=0.5)
    assert synthesise(*world, config, EnvConfig(), seed=3, processes=processes) == made


def test_what_leaves_one_thing_out_solves_next_to_nothing(made: Synthesis, world: tuple[Catalog, ToolIndex]) -> None:
    rates = solve_rates(made.tasks, *world, EnvConfig())
    assert set(rates) == set(FAULTS)
    for fault, rate in rates.items():
        assert rate.played > 0, fault
        assert rate.solved <= 0.02 * rate.played, fault


def test_soft_edges_are_the_ways_along_hard_ones() -> None:
    assert closure((("a", "b"), ("b", "c"), ("x", "y"))) == (("a", "b"), ("a", "c"), ("b", "c"), ("x", "y"))


def reading(name: str, thing: str, takes: dict[str, Any], *fields: str) -> ToolInterface:
    """A tool of the film club that looks at one thing."""
    shown = {field: NUMBER if field == "weight" else TEXT for field in fields}
    return replace(
        tool(),
        name=f"film_{name}",
        source_name=name,
        provider="film.example",
        service="club",
        description=f"Returns {thing}.",
        effect="read",
        http_method="GET",
        path=f"/{name}",
        parameters={"type": "object", "properties": takes, "required": list(takes)},
        returns={"type": "object", "properties": shown, "required": list(fields)},
    )


def asked(tools: list[ToolInterface], needs: list[str], *joins: Join, seed: int) -> str:
    members = tuple(
        Member(each.name, each.provider, each.service, each.effect, need)
        for each, need in zip(tools, needs, strict=True)
    )
    return compose(Sketch(members, joins), {each.name: each for each in tools}, seed, 8_000).request


def test_a_part_that_is_asked_for_by_itself_says_its_values_again() -> None:
    tools = [
        reading("getFine", "the fine of a member", {"memberId": TEXT}, "weight"),
        reading("getBadge", "the badge of a member", {"memberId": TEXT}, "weight"),
    ]
    for seed in range(5):
        request = asked(tools, ["get the fine of a member", "get the badge of a member"], seed=seed)
        value = request.partition("the member ")[2].split()[0].strip(".,;?")
        assert request.count(value) == 2


def test_a_step_says_that_a_value_is_the_same_as_before() -> None:
    tools = [
        reading("getFine", "the fine of a member", {"memberId": TEXT}, "ticketId"),
        reading("getTicket", "the ticket of a member", {"memberId": TEXT, "ticketId": TEXT}, "weight"),
        reading("getStub", "the stub of a ticket", {"ticketId": TEXT}, "weight"),
    ]
    needs = ["get the fine of a member", "get the ticket of a member", "get the stub of a ticket"]
    joins = [
        Join(0, place, Link(tools[0].name, "ticketId", tools[place].name, "ticketId", "id"), 0) for place in (1, 2)
    ]
    for seed in range(5):
        assert "the same member" in asked(tools[:2], needs[:2], joins[0], seed=seed)
        request = asked(tools, needs, *joins, seed=seed)
        assert "the same member" in request
        assert "the stub of the same ticket" in request


def test_what_the_request_says_itself_is_not_asked_for() -> None:
    tools = [reading("findBook", "the book of a writer", {"authorName": TEXT}, "author", "weight")]
    assert all("the author" not in asked(tools, ["get the book of a writer"], seed=seed) for seed in range(20))


@pytest.mark.parametrize(("need", "told"), [("suspend a member", False), ("update a member", True)])
def test_only_an_update_that_says_nothing_is_given_something_new(need: str, told: bool) -> None:
    takes = {"memberId": TEXT, "title": TEXT}
    made = replace(reading("putMember", "a member", takes), effect="update", http_method="PUT")
    made = replace(made, parameters={**made.parameters, "required": ["memberId"]})
    assert ("new title" in asked([made], [need], seed=1)) == told
