"""Synthesis over a made-up catalog: what is kept is solvable, separate by split, and the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.splits import split_of
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, TasksConfig
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.rewards.atoms import states
from paraagent.tasks.synthesis import Synthesis, synthesise
from paraagent.tasks.verify import MOST_WORDS
from tests.toolenv.interfaces import tool

WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]
THINGS = [
    "parcel",
    "invoice",
    "flight",
    "hotel",
    "recipe",
    "concert",
    "museum",
    "tractor",
    "sensor",
    "garden",
    "library",
    "ferry",
    "bridge",
    "lesson",
    "painting",
    "turbine",
]
KINDS = ["rail", "harbor", "alpine", "desert", "polar", "urban", "coastal", "lunar"]
FACTS = ("status", "city", "createdTime", "price")
TEXT = {"type": "string"}
CONFIG = TasksConfig(
    train=30, validation=4, test=6, shapes={"single": 0.5, "parallel-2": 0.35, "parallel-3": 0.15}, writing=0.0
)


class Said(Quiet):
    """A progress that is read afterwards."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.done = 0

    def message(self, text: str) -> None:
        self.messages.append(text)

    def advance(self, n: int = 1) -> None:
        self.done += n


def made_up(kind: str, thing: str) -> ToolInterface:
    """One tool of one service: `getRailParcel` of `railparcel.example`."""
    key = f"{thing}Id"
    return replace(
        tool(),
        tool_id=f"{kind}{thing}.example/{thing}s/get{kind.title()}{thing.title()}",
        name=f"get_{kind}_{thing}",
        source_name=f"get{kind.title()}{thing.title()}",
        provider=f"{kind}{thing}.example",
        service=f"{thing}s",
        title=f"Get {kind} {thing}",
        description=f"Returns the registered {kind} {thing} of a depot.",
        path=f"/{thing}s/{{{key}}}",
        parameters={"type": "object", "properties": {key: TEXT}, "required": [key]},
        returns={"type": "object", "properties": {key: TEXT, **dict.fromkeys(FACTS, TEXT)}, "required": list(FACTS)},
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, write_catalog: WriteCatalog) -> tuple[Catalog, ToolIndex]:
    folder = tmp_path_factory.mktemp("synthesis")
    path = write_catalog(folder / "catalog.duckdb", [made_up(kind, thing) for kind in KINDS for thing in THINGS])
    build_index(path, folder / "index")
    return Catalog.open(path), ToolIndex.load(folder / "index")


@pytest.fixture(scope="module")
def made(world: tuple[Catalog, ToolIndex]) -> Synthesis:
    return synthesise(*world, CONFIG, EnvConfig(), seed=3)


def test_as_many_tasks_are_made_as_were_asked_for(made: Synthesis) -> None:
    counts = {split: sum(task.split == split for task in made.tasks) for split in ("train", "validation", "test")}
    assert counts == {"train": 30, "validation": 4, "test": 6}


def test_the_same_seed_makes_the_same_tasks_and_another_seed_others(
    made: Synthesis, world: tuple[Catalog, ToolIndex]
) -> None:
    assert synthesise(*world, CONFIG, EnvConfig(), seed=3) == made
    assert synthesise(*world, CONFIG, EnvConfig(), seed=4).tasks != made.tasks


def test_every_tool_belongs_to_the_split_of_its_task(made: Synthesis, world: tuple[Catalog, ToolIndex]) -> None:
    for task in made.tasks:
        for found in world[0].get_many(task.targets).values():
            assert split_of(found.provider, found.service) == task.split


def test_training_and_validation_search_their_own_services_and_evaluation_all(made: Synthesis) -> None:
    assert {(task.split, task.within) for task in made.tasks} == {
        ("train", "train"),
        ("validation", "validation"),
        ("test", None),
    }


def test_one_service_gives_tasks_to_every_split_where_only_tasks_are_held_out(
    tmp_path: Path, write_catalog: WriteCatalog
) -> None:
    tools = [made_up("rail", thing) for thing in THINGS[:4]]
    path = write_catalog(
        tmp_path / "catalog.duckdb", [replace(tool, provider="rail.example", service="rail") for tool in tools]
    )
    build_index(path, tmp_path / "index")
    own, index = Catalog.open(path), ToolIndex.load(tmp_path / "index")
    assert len({task.split for task in synthesise(own, index, CONFIG, EnvConfig(), seed=3).tasks}) == 1

    made = synthesise(own, index, CONFIG.model_copy(update={"held_out": "tasks"}), EnvConfig(), seed=3)
    assert Counter(task.split for task in made.tasks) == {"train": 30, "validation": 4, "test": 6}
    assert {task.within for task in made.tasks} == {None}
    assert len({task.request for task in made.tasks}) == len(made.tasks)


def test_every_request_is_short_and_carries_slots_and_arguments_but_no_answer(made: Synthesis) -> None:
    for task in made.tasks:
        assert len(task.request.split()) <= MOST_WORDS[task.width]
        assert all(slot.text.split()[-1] in task.request for slot in task.slots)
        assert all(str(value) in task.request for call in task.calls for value in call.arguments.values())
        assert not any(states(task.request, atom.value) for atom in task.atoms)


def test_shapes_come_in_the_shares_asked_for(made: Synthesis) -> None:
    widths = [task.width for task in made.tasks if task.split == "train"]
    assert [widths.count(width) for width in (1, 2, 3)] == [15, 11, 4]


def test_every_task_is_listed_once_in_order(made: Synthesis) -> None:
    keys = [(task.split, task.task_id) for task in made.tasks]
    assert keys == sorted(set(keys))
    assert len({task.request for task in made.tasks}) == len(made.tasks)


def test_a_catalog_that_holds_too_little_gives_fewer_tasks(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    config, said = TasksConfig(train=500, validation=50, test=50), Said()
    few = synthesise(tiny_catalog, tiny_index, config, EnvConfig(), 1, said)
    assert 0 < len(few.tasks) < 600
    assert sum(few.rejected.values()) > 0
    assert said.done >= 600
    assert said.messages == [f"{600 - len(few.tasks)} of 600 tasks not made: the catalog has nothing more to ask for"]
