"""The stage `tasks` over the tiny catalog: its artifact satisfies its contract and is the same every time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

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
from tests.endpoint import serving


@pytest.fixture
def catalog_artifact(tmp_path: Path, tiny_catalog_path: Path, tiny_index: ToolIndex) -> Path:
    folder = tmp_path / "catalog"
    shutil.copytree(tiny_index.directory, folder / "index")
    shutil.copy(tiny_catalog_path, folder / "catalog.duckdb")
    return folder


def build(out: Path, catalog: Path, **settings: Any) -> StageResult:
    out.mkdir()
    profile = Profile(name="test", tasks=TasksConfig(train=4, validation=1, test=1, **settings))
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


def test_a_model_may_rewrite_the_requests_and_what_became_of_each_is_written_down(
    tmp_path: Path, catalog_artifact: Path
) -> None:
    def answer(messages: list[dict[str, Any]]) -> str:
        request = messages[1]["content"].partition("Request: ")[2].partition("\n\nAnswer with one JSON value")[0]
        return orjson.dumps({"request": f"Good morning! {request}"}).decode()

    build(tmp_path / "plain", catalog_artifact)
    with serving(answer) as endpoint:
        result = build(tmp_path / "out", catalog_artifact, rewriter=endpoint.config())
    before, after = (
        [Task.model_validate(row) for row in read_lines(tmp_path / name / "tasks.jsonl")] for name in ("plain", "out")
    )
    assert after == [task.model_copy(update={"request": f"Good morning! {task.request}"}) for task in before]
    assert result.metrics["rewriting"] == {"taken": len(after)}
    noted = list(read_lines(tmp_path / "out" / "rewritten.jsonl"))
    assert [(row["drafted"], row["said"], row["problem"]) for row in noted] == [
        (old.request, new.request, "") for old, new in zip(before, after, strict=True)
    ]
    for contract in STAGE.contracts:
        check(contract, tmp_path / "out")
