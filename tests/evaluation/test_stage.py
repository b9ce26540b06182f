"""The stage `evaluate`: what is finished is never run again, and what failed never looks finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paraagent.agents.policy import Completion, Conversation
from paraagent.catalog.interface import ToolInterface
from paraagent.config import EvaluateConfig, Profile
from paraagent.errors import RunError
from paraagent.files import read_lines, write_lines
from paraagent.progress import Quiet
from paraagent.retrieval.index import build_index
from paraagent.task import Atom, ReferenceCall, Slot, Task
from pipelines import evaluate
from pipelines.stage import StageContext


class Parrot:
    """Answers at once with the request's id, and fails where it is told to."""

    name = "parrot"
    group = 2
    lockstep = True

    def __init__(self, seen: list[str], broken: set[str]) -> None:
        self.seen, self.broken = seen, broken

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        ids = [conversation.task.task_id for conversation in conversations]
        self.seen += ids
        if self.broken.intersection(ids):
            raise OSError("the model went away")
        return [Completion(f"<think>easy</think><answer>{name}</answer>", completion_tokens=3) for name in ids]


@pytest.fixture
def inputs(tmp_path: Path, tiny_catalog_path: Path, tiny_tools: list[ToolInterface]) -> dict[str, Path]:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    (catalog / "catalog.duckdb").symlink_to(tiny_catalog_path)
    build_index(tiny_catalog_path, catalog / "index", Quiet())
    tool = tiny_tools[0].name
    tasks = [
        Task(
            task_id=f"t{number}",
            request=f"Tell me about {number}.",
            shape="single",
            width=1,
            reach="service",
            split="test",
            seed=number,
            slots=(Slot(text="tell", tool=tool),),
            calls=(ReferenceCall(id="c1", tool=tool, arguments={}),),
            atoms=(Atom(call="c1", path="name", value="Ada"),),
        )
        for number in range(10)
    ]
    write_lines(tmp_path / "tasks" / "tasks.jsonl", [task.model_dump(mode="json") for task in tasks])
    return {"catalog": catalog, "tasks": tmp_path / "tasks"}


def context(out: Path, inputs: dict[str, Path]) -> StageContext:
    profile = Profile(name="test", evaluate=EvaluateConfig(systems=["sft", "rl"], limit=10, batch=1))
    out.mkdir(exist_ok=True)
    return StageContext(profile, out, inputs, out, "f", Quiet())


def use(monkeypatch: pytest.MonkeyPatch, seen: list[str], broken: set[str]) -> None:
    monkeypatch.setattr(evaluate, "make_policy", lambda system, context: Parrot(seen, broken))


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.rglob("*.json*")) if "failed" not in path.name}


def test_a_failed_unit_stays_owed_and_the_next_run_goes_on(
    tmp_path: Path, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, seen = tmp_path / "whole", list[str]()
    use(monkeypatch, seen, set())
    result = evaluate.build(context(whole, inputs))
    assert result.rows == {"tasks": 10, "episodes": 20}
    order = list(dict.fromkeys(seen))

    torn = tmp_path / "torn"
    use(monkeypatch, [], {order[5]})
    with pytest.raises(RunError, match=r"1 of 3 units of sft failed 2 times \(unit-0001\)"):
        evaluate.build(context(torn, inputs))
    failed = list(read_lines(torn / "episodes" / "sft.failed.jsonl"))
    assert [row["attempt"] for row in failed] == [1, 2]
    assert "the model went away" in failed[0]["error"]
    assert len(list(read_lines(torn / "episodes" / "sft.jsonl"))) == 6

    again = list[str]()
    use(monkeypatch, again, set())
    evaluate.build(context(torn, inputs))
    assert again == [*order[4:8], *order]
    assert content(torn) == content(whole)


def test_a_finished_evaluation_loads_no_policy(
    tmp_path: Path, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "out", list[str]()
    use(monkeypatch, seen, set())
    first = evaluate.build(context(out, inputs))
    before = content(out)
    monkeypatch.setattr(evaluate, "make_policy", lambda *_: pytest.fail("a policy was loaded"))
    assert evaluate.build(context(out, inputs)) == first
    assert content(out) == before


def test_episodes_carry_their_rewards_and_scores_their_bins(
    tmp_path: Path, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars as pl

    out = tmp_path / "out"
    use(monkeypatch, [], set())
    evaluate.build(context(out, inputs))
    rows: list[dict[str, Any]] = [line["row"] for line in read_lines(out / "episodes" / "rl.jsonl")]
    assert all(row["rewards"]["outcome"] == -0.5 for row in rows)
    scores = pl.read_parquet(out / "scores.parquet")
    assert set(scores["failure"]) == {"no_search"}
    assert scores.filter(pl.col("system") == "rl")["seed"].to_list() == [row["seed"] for row in rows]


def test_no_held_out_task_is_said_in_one_sentence(tmp_path: Path, inputs: dict[str, Path]) -> None:
    write_lines(inputs["tasks"] / "tasks.jsonl", [])
    with pytest.raises(RunError, match="no test task"):
        evaluate.build(context(tmp_path / "out", inputs))


def test_progress_counts_every_episode_once_also_where_a_unit_is_tried_again(
    tmp_path: Path, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counting(Quiet):
        total, done = 0, 0

        def start(self, total: int | None, unit: str) -> None:
            self.total = total or 0

        def advance(self, n: int = 1) -> None:
            self.done += n

    progress, out = Counting(), tmp_path / "out"
    out.mkdir()
    seen = list[str]()
    use(monkeypatch, seen, set())
    evaluate.build(replace(context(tmp_path / "other", inputs), out=out, progress=progress))
    assert progress.done == progress.total == 20
    broken = Counting()
    use(monkeypatch, [], {list(dict.fromkeys(seen))[5]})
    with pytest.raises(RunError):
        evaluate.build(replace(context(tmp_path / "again", inputs), progress=broken))
    assert broken.done == 10, "those of the failed unit have ended too, each once"
