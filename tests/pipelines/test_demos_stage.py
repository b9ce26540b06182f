"""Stage `demos`: the same data set in any number of processes and after any interruption; endpoints that break off."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import DemosConfig, EnvConfig, LlmConfig, MachineConfig, Profile, TasksConfig
from paraagent.errors import RunError, UsageError
from paraagent.files import read_lines, write_lines
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.tasks.synthesis import synthesise
from paraagent.training.pretrained import prepare_model
from pipelines.demos import STAGE, build
from pipelines.stage import StageContext, UnitLog
from tests.endpoint import serving

DATA = ("demos.parquet", "validation.parquet", "README.md", "episodes.jsonl", "rejected.json", "statistics.json")


@pytest.fixture(scope="module")
def inputs(
    tiny_catalog: Catalog, tiny_catalog_path: Path, tiny_index: ToolIndex, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Artifacts of the stages before."""
    root = tmp_path_factory.mktemp("inputs")
    folders = {name: root / name for name in ("catalog", "tasks", "model")}
    for folder in folders.values():
        folder.mkdir()
    shutil.copy(tiny_catalog_path, folders["catalog"] / "catalog.duckdb")
    build_index(tiny_catalog_path, folders["catalog"] / "index")
    shapes = {"single": 0.5, "chain-2": 0.2, "parallel-2": 0.2, "no-tool": 0.1}
    config = TasksConfig(train=14, validation=1, test=1, shapes=shapes)
    tasks = synthesise(tiny_catalog, tiny_index, config, EnvConfig(), 0, Quiet()).tasks
    known = next(task for task in tasks if task.shape == "no-tool")  # needs no service, so it may be of any split
    tasks = [*tasks, known.model_copy(update={"split": "validation", "task_id": "validation-1"})]
    write_lines(folders["tasks"] / "tasks.jsonl", (task.model_dump(mode="json") for task in tasks))
    prepare_model("random:tiny", root, folders["model"] / "model", seed=1, progress=Quiet())
    return folders


@pytest.fixture
def context(inputs: dict[str, Path], tmp_path: Path) -> StageContext:
    out = tmp_path / "out"
    out.mkdir()
    profile = Profile(
        name="test", demos=DemosConfig(imperfect=1.0, max_tokens=20_000), machine=MachineConfig(processes=1)
    )
    return StageContext(profile, out, inputs, tmp_path, "ab", Quiet(), tmp_path / "home")


def data(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in DATA}


def elsewhere(context: StageContext, name: str, **settings: Any) -> StageContext:
    out = context.out.parent / name
    out.mkdir()
    return replace(context, out=out, profile=context.profile.model_copy(update=settings))


def test_both_splits_are_written_with_their_card(context: StageContext) -> None:
    result = build(context)
    assert result.metrics["yield"] > 0.9
    assert result.metrics["recovered_share"] > 0.2
    assert {path.name for path in context.out.iterdir()} == {*DATA, "rejected.jsonl"}
    splits = {row["unit"].partition("-")[0] for row in read_lines(context.out / "rejected.jsonl")}
    assert splits <= {"train", "validation"}


def test_two_processes_write_what_one_does(context: StageContext) -> None:
    build(context)
    other = elsewhere(context, "two", machine=MachineConfig(processes=2))
    build(other)
    assert data(other.out) == data(context.out)


def test_what_was_played_before_a_kill_is_not_played_again(
    context: StageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(context)
    other = elsewhere(context, "killed")
    add, calls = UnitLog.add, []

    def dies(self: UnitLog, rows: Any) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        add(self, list(rows)[:5])
        with self.path.open("ab") as file:
            file.write(b'{"unit": "torn')

    monkeypatch.setattr("pipelines.demos._BATCH", 6)
    monkeypatch.setattr(UnitLog, "add", dies)
    with pytest.raises(KeyboardInterrupt):
        build(other)
    monkeypatch.setattr(UnitLog, "add", add)
    build(other)
    assert data(other.out) == data(context.out)


def with_endpoint(context: StageContext, url: str) -> StageContext:
    team = LlmConfig(base_url=url, model="tiny", retries=0, concurrency=4)
    demos = context.profile.demos.model_copy(update={"team": team})
    return replace(context, profile=context.profile.model_copy(update={"demos": demos}))


def test_an_endpoint_that_is_down_loses_nothing_and_is_named(context: StageContext) -> None:
    with pytest.raises(RunError, match=r"cannot be reached.*run the same command again"):
        build(with_endpoint(context, "http://127.0.0.1:9/v1"))
    failed = [row["unit"] for row in read_lines(context.out / "attempts.failed.jsonl")]
    assert len(failed) == len(set(failed)) > 0
    assert not (context.out / "attempts.jsonl").exists()


def test_a_team_that_answers_in_prose_gives_no_demonstration_and_a_reason(context: StageContext) -> None:
    with (
        serving("I would be glad to help you with that.") as endpoint,
        pytest.raises(RunError, match=r"none of 1\d episodes gave a demonstration.*\}\): let another model play"),
    ):
        build(with_endpoint(context, endpoint.url))
    reasons = {row["reason"] for row in read_lines(context.out / "rejected.jsonl")}
    assert reasons == {"broken off: the Planner gave nothing that can be used"}
    errors = {row["episode"]["error"] for row in read_lines(context.out / "rejected.jsonl")}
    assert all("twice gave no usable JSON" in error for error in errors)


def test_a_team_whose_episodes_are_all_too_long_is_told_which_setting_to_raise(context: StageContext) -> None:
    short = context.profile.demos.model_copy(update={"max_tokens": 10})
    short_profile = context.profile.model_copy(update={"demos": short})
    with pytest.raises(RunError, match=r"\}\): raise demos\.max_tokens, or raise tasks\.train; "):
        build(replace(context, profile=short_profile))


def test_a_file_of_conversations_takes_the_place_of_the_team(context: StageContext, tmp_path: Path) -> None:
    good = [
        {"from": "human", "value": "What is 2 + 3?"},
        {"from": "gpt", "value": "<think>I know it.</think><answer>5</answer>"},
    ]
    torn = [good[0], {"from": "gpt", "value": "<think>I know it.</think><answer>5"}]
    rows = [{"conversations": good}, {"conversations": torn}, {"text": "no"}]
    (tmp_path / "rows.json").write_bytes(orjson.dumps(rows))
    demos = DemosConfig(source=f"sharegpt:{tmp_path / 'rows.json'}")
    result = build(replace(context, profile=context.profile.model_copy(update={"demos": demos})))
    assert result.rows == {"demos": 1}
    refused = list(read_lines(context.out / "rejected.jsonl"))
    assert [row["unit"] for row in refused] == ["row 2", "row 3"]
    assert all(row["reason"] for row in refused)
    [episode] = read_lines(context.out / "episodes.jsonl")
    assert (episode["policy"], episode["answer"]) == ("imported", "5")


def test_a_file_that_is_not_there_is_named_before_anything_is_built(context: StageContext) -> None:
    profile = context.profile.model_copy(update={"demos": DemosConfig(source="sharegpt:gone.json")})
    assert STAGE.external
    with pytest.raises(UsageError, match=r"gone\.json, where there is no file"):
        STAGE.external(profile, context.home)
