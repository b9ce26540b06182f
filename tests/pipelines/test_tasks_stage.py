"""The stage `tasks` over the tiny catalog: its artifact satisfies its contract and is the same every time."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from paraagent.config import Profile, TasksConfig
from paraagent.files import read_lines
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from pipelines.contracts import check
from pipelines.stage import StageContext, StageResult
from pipelines.tasks import STAGE


@pytest.fixture
def catalog_artifact(tmp_path: Path, tiny_catalog_path: Path, tiny_index: ToolIndex) -> Path:
    folder = tmp_path / "catalog"
    shutil.copytree(tiny_index.directory, folder / "index")
    shutil.copy(tiny_catalog_path, folder / "catalog.duckdb")
    return folder


def build(out: Path, catalog: Path) -> StageResult:
    out.mkdir()
    profile = Profile(name="test", tasks=TasksConfig(train=4, validation=1, test=1))
    context = StageContext(profile, out, {"catalog": catalog}, out, "f", Quiet(), out)
    return STAGE.build(context)


def test_the_artifact_holds_tasks_that_satisfy_the_contract(tmp_path: Path, catalog_artifact: Path) -> None:
    result = build(tmp_path / "out", catalog_artifact)
    tasks = [Task.model_validate(row) for row in read_lines(tmp_path / "out" / "tasks.jsonl")]
    assert result.rows["tasks"] == len(tasks) > 0
    assert orjson.loads((tmp_path / "out" / "rejected.json").read_bytes())
    for contract in STAGE.contracts:
        check(contract, tmp_path / "out")


def test_two_builds_write_the_same_bytes(tmp_path: Path, catalog_artifact: Path) -> None:
    build(tmp_path / "one", catalog_artifact)
    build(tmp_path / "two", catalog_artifact)
    for name in ("tasks.jsonl", "rejected.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
