"""What tasks are worth, on a made-up catalog: the oracle solves all, and episodes are the same wherever they run."""

from __future__ import annotations

import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, TasksConfig
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.tasks.baselines import FAULTS
from paraagent.tasks.bench import bench_tasks, compare, parts, play_all
from paraagent.tasks.synthesis import synthesise


def test_a_bench_counts_what_was_made_and_who_solves_it(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    config = TasksConfig(train=1, validation=1, test=8)
    measured = bench_tasks(tiny_catalog, tiny_index, config, EnvConfig(), 1, 4, Quiet())
    assert measured["solved"]["oracle"] == {"solved": measured["test"], "played": measured["test"]}
    assert set(measured["solved"]) == {"oracle", *FAULTS}
    assert sum(measured["shapes"].values()) == sum(measured["reaches"].values()) == measured["test"] > 0


@pytest.mark.parametrize("split", ["train", "test"])
def test_episodes_are_the_same_bytes_in_any_number_of_processes_and_any_order(
    tiny_catalog: Catalog, tiny_index: ToolIndex, split: str
) -> None:
    made = synthesise(tiny_catalog, tiny_index, TasksConfig(train=40, validation=1, test=40), EnvConfig(), seed=2)
    tasks = [task for task in made.tasks if task.split == split]
    same = compare(tiny_catalog, tiny_index, EnvConfig(), tasks)
    assert same["played"] == same["same_in_four_processes"] == same["same_in_shuffled_order"] == len(tasks) > 4


def test_another_seed_of_the_world_gives_other_bytes(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    made = synthesise(tiny_catalog, tiny_index, TasksConfig(train=6, validation=1, test=1), EnvConfig(), seed=2)
    calling = [task for task in made.tasks if task.calls]
    other = [task.model_copy(update={"seed": task.seed + 1}) for task in calling]
    one, two = (play_all(tiny_catalog, tiny_index, EnvConfig(), parts(tasks), 1) for tasks in (calling, other))
    assert all(first.digest != second.digest for first, second in zip(one, two, strict=True))
