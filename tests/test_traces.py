"""Traces on disk: both forms give back the same episodes, while they grow and after a kill."""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path

import duckdb
import pytest

from paraagent.errors import UsageError
from paraagent.trace import TRACE_VERSION, Call, Episode, ErrorInfo, Search, Turn
from paraagent.traces import Unread, append_trace, read_traces, write_traces


def episode(name: str = "a", **changes: object) -> Episode:
    """Two calls at once after a search, by a remote model."""
    info = ErrorInfo(type="NotFoundError", msg="no </script> such — \u2028 thing")
    calls = (
        Call(name="one", arguments={"é": [1, None, 2.5]}, result={"x": "y"}, started=1.0, seconds=2.0),
        Call(name="two", arguments={}, error=info, started=1.0, seconds=0.5, attempts=2),
    )
    turns = [("search", (Search(slot="s", query="q", hits=("one", "two")),)), ("call", calls)]
    values = {
        "episode_id": f"p/paraact/{name}/0",
        "task_id": name,
        "policy": "p",
        "seed": 0,
        "system": "Rules",
        "request": "Do it",
        "turns": tuple(
            Turn(
                text="<think>t</think>",
                family=family,  # type: ignore[arg-type]
                think="t",
                plan=None,
                plan_rule="required",
                well_formed=True,
                events=events,
                prompt_tokens=10,
                completion_tokens=3,
                seconds=0.5,
            )
            for family, events in turns
        ),
        "answer": None,
        "end": "turn_limit",
        "rewards": {"outcome": -0.5},
    }
    return Episode.model_validate(values | changes)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, ending: str) -> None:
    path, episodes = tmp_path / f"t.{ending}", [episode("a"), episode("b", rewards=None, answer="yes", end="answer")]
    assert write_traces(path, episodes) == 2
    assert [kept.episode for kept in read_traces(path)] == episodes
    first = path.read_bytes()
    write_traces(path, episodes)
    assert path.read_bytes() == first


def test_parquet_has_columns_to_query_by(tmp_path: Path) -> None:
    write_traces(tmp_path / "t.parquet", [episode()])
    sql = f"""SELECT turns, searches, calls, prompt_tokens, completion_tokens, seconds, rewards ->> 'outcome',
        trace -> '$.turns[1].events[0].result' ->> 'x' FROM '{tmp_path}/t.parquet'"""
    assert duckdb.sql(sql).fetchall() == [(2, 1, 2, 20, 6, 3.0, "-0.5", "y")]


def test_a_torn_line_is_no_episode_yet_and_gives_way_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "act" / "episodes.jsonl"
    append_trace(path, episode("a"), {"catalog": "c"})
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    assert [kept.made for kept in read_traces(path)] == [{"catalog": "c"}]
    append_trace(path, episode("b"), {})
    assert [kept.episode.task_id for kept in read_traces(path)] == ["a", "b"]


def test_of_a_closed_file_the_last_line_counts_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_traces(path, [episode("a"), episode("b")])
    first, last = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, b"", last[:100], b"{}", last]))
    unread: list[Unread] = []
    assert [kept.episode.task_id for kept in read_traces(path, unread)] == ["a", "b"]
    assert [number for number, _ in unread] == [3, 4]
    assert unread[1].why == "episode_id: Field required"


def _append(path: Path, name: str) -> None:
    for number in range(20):
        append_trace(path, episode(f"{name}{number}"), {})


def test_several_processes_append_whole_lines(tmp_path: Path) -> None:
    path, spawn = tmp_path / "episodes.jsonl", get_context("spawn")
    workers = [spawn.Process(target=_append, args=(path, name)) for name in "xyz"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert len({kept.episode.task_id for kept in read_traces(path)}) == 60


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("none.jsonl", None, "There is no file"),
        ("a.jsonl", b"{}\n", "Row 1 of .* is no episode \\(episode_id: Field required\\)"),
        ("a.jsonl", b"[1]\n", "Row 1 of .* is no episode"),
        ("a.jsonl", b"nonsense\n", "cannot be read as traces"),
        ("a.parquet", b"nonsense", "cannot be read as traces"),
    ],
)
def test_what_holds_no_traces_is_one_sentence(tmp_path: Path, name: str, data: bytes | None, says: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=says):
        list(read_traces(tmp_path / name))


def test_a_later_version_is_told_and_an_earlier_one_is_read(tmp_path: Path) -> None:
    row = episode().model_dump_json()
    (tmp_path / "old.jsonl").write_text(row.replace(f'"version":{TRACE_VERSION}', '"version":1') + "\n")
    assert [kept.episode.version for kept in read_traces(tmp_path / "old.jsonl")] == [1]
    (tmp_path / "new.jsonl").write_text(row.replace(f'"version":{TRACE_VERSION}', '"version":99') + "\n")
    with pytest.raises(UsageError, match="a later version of ParaAgent wrote this trace"):
        list(read_traces(tmp_path / "new.jsonl"))


def test_only_two_endings_are_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"to \.jsonl or \.parquet, and t\.csv ends otherwise"):
        write_traces(tmp_path / "t.csv", [episode()])
