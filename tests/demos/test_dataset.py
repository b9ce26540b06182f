from functools import partial
from pathlib import Path

import orjson
import pytest

from paraagent.agents.transcript import Transcriber
from paraagent.catalog.store import Catalog
from paraagent.config import DemosConfig, EnvConfig, RewardConfig
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.training.demos import Demonstrations, demonstrate, write_demos


@pytest.fixture(scope="module")
def made(
    tiny_tasks: list[Task], tiny_catalog: Catalog, tiny_index: ToolIndex, small_env: EnvConfig, transcriber: Transcriber
) -> Demonstrations:
    env = partial(ToolEnv, tiny_catalog, tiny_index, small_env, split="train")
    return demonstrate(tiny_tasks, env, transcriber, DemosConfig(max_tokens=10_000), RewardConfig(), 0, Quiet())


def test_every_training_task_gives_a_solved_demonstration(made: Demonstrations, tiny_tasks: list[Task]) -> None:
    assert [row["task_id"] for row in made.rows] == [task.task_id for task in tiny_tasks]
    assert made.rejected == {}
    assert all(episode.rewards and episode.rewards["outcome"] == 1.5 for episode in made.episodes)


def test_a_demonstration_carries_the_schemas_of_the_tools_it_found(made: Demonstrations, tiny_catalog: Catalog) -> None:
    for row, episode in zip(made.rows, made.episodes, strict=True):
        names = [orjson.loads(text)["name"] for text in row["discovered_tools"]]
        assert len(set(names)) == len(names)
        assert set(names) == {hit for search in episode.searches for hit in search.hits}
        assert all(tiny_catalog.get(name) for name in names)


def test_what_is_too_long_is_left_out_and_counted(
    tiny_tasks: list[Task],
    tiny_catalog: Catalog,
    tiny_index: ToolIndex,
    small_env: EnvConfig,
    transcriber: Transcriber,
) -> None:
    env = partial(ToolEnv, tiny_catalog, tiny_index, small_env, split="train")
    none = demonstrate(tiny_tasks, env, transcriber, DemosConfig(max_tokens=10), RewardConfig(), 0, Quiet())
    assert none.rows == []
    assert none.rejected == {"too long": len(tiny_tasks)}


def test_the_data_set_loads_with_datasets_and_keeps_its_rows(made: Demonstrations, tmp_path: Path) -> None:
    from datasets import load_dataset

    write_demos(made.rows, tmp_path / "demos.parquet")
    loaded = load_dataset(
        "parquet", data_files=str(tmp_path / "demos.parquet"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.to_list() == made.rows


def test_trl_takes_the_messages_as_conversations(made: Demonstrations, tmp_path: Path) -> None:
    from trl import is_conversational

    assert is_conversational({"messages": made.rows[0]["messages"]})


def test_two_runs_write_the_same_bytes(made: Demonstrations, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_demos(made.rows, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
