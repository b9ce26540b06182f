"""Data contracts hold for sound data, and name what is broken, how often, and where."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import orjson
import polars as pl
import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.errors import RunError
from paraagent.files import write_lines
from pipelines import contracts, frames
from pipelines.contracts import ContractReport, load_suite
from pipelines.stage import Contract

WriteCatalog = Callable[[Path, Iterable[ToolInterface]], Path]
SUITES = ("tools", "parameters", "tasks", "pairs", "demos", "episodes", "scores")


def check(suite: str, out: Path) -> ContractReport:
    return contracts.check(Contract(suite, getattr(frames, suite)), out)


def task(number: int, **change: Any) -> dict[str, Any]:
    return {
        "task_id": f"t{number}",
        "request": f"What is the weather in town number {number}?",
        "shape": "single",
        "width": 1,
        "reach": "service",
        "split": "test",
        "seed": number,
        "slots": [{"text": "weather in a town", "tool": "weather_current"}],
        "calls": [{"id": "a", "tool": "weather_current", "arguments": {"city": str(number)}}],
        "atoms": [{"call": "a", "path": "temperature", "value": 3}],
        "state": [],
        "hard_edges": [],
        "soft_edges": [],
        "distractors": [],
        "difficulty": 0.1,
    } | change


def turn(family: str, **change: Any) -> dict[str, Any]:
    return {"family": family, "well_formed": True, "problems": [], "events": [], "completion_tokens": 9} | change


def episode(number: int, **change: Any) -> dict[str, Any]:
    call = {"kind": "call", "name": "weather_current", "error": None}
    return {
        "episode_id": f"oracle/t{number}/0",
        "task_id": f"t{number}",
        "policy": "oracle",
        "paradigm": "paraact",
        "seed": 0,
        "turns": [turn("search", events=[{"kind": "search"}]), turn("call", events=[call]), turn("answer")],
        "answer": "3 degrees",
        "end": "answer",
        "error": None,
    } | change


def demo(number: int, **change: Any) -> dict[str, Any]:
    roles = ["system", "user", "assistant", "user", "assistant", "user", "assistant"]
    texts = ["Rules", "Do it", "<think>a</think>", "x", "<think>b</think>", "y", "<think>c</think><answer>z</answer>"]
    return {
        "task_id": f"t{number}",
        "seed": 1,
        "shape": "single",
        "split": "train",
        "mistakes": [],
        "n_turns": 3,
        "messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)],
        "discovered_tools": ["{}"],
    } | change


def score(number: int, **change: Any) -> dict[str, Any]:
    return {
        "system": "oracle",
        "task_id": f"t{number}",
        "shape": "single",
        "width": 1,
        "reach": "service",
        "seed": 0,
        "solved": True,
        "outcome": 1.5,
        "step": 0.5,
        "phase": 0.5,
        "format": 1.0,
        "penalty": 0.25,
        "trajectory": 1.75,
        "turns": 3,
        "searches": 1,
        "calls": 1,
        "completion_tokens": 90,
        "end": "answer",
        "targets": 1,
        "targets_found": 1,
        "targets_called": 1,
        "calls_ok": 1,
        "call_turns": 1,
        "failure": "solved",
    } | change


MAKE: dict[str, Callable[..., dict[str, Any]]] = {"tasks": task, "episodes": episode, "demos": demo, "scores": score}


def write(suite: str, out: Path, rows: list[dict[str, Any]]) -> None:
    if suite in ("tasks", "episodes"):
        write_lines(out / f"{suite}.jsonl", rows)
    else:
        pl.DataFrame(rows).write_parquet(out / f"{suite}.parquet")


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_expects_at_least_ten_things_and_explains_each(suite: str) -> None:
    loaded = load_suite(suite)
    assert len(loaded.expectations) >= 10
    assert all(expectation.description and expectation.severity for expectation in loaded.expectations)


def test_the_folder_holds_a_suite_for_every_boundary_and_no_other() -> None:
    assert sorted(path.stem for path in contracts.SUITES.glob("*.json")) == sorted(SUITES)


@pytest.mark.parametrize("suite", ["tools", "parameters"])
def test_a_sound_catalog_keeps_its_contracts(suite: str, tmp_path: Path, tiny_catalog_path: Path) -> None:
    shutil.copy(tiny_catalog_path, tmp_path / "catalog.duckdb")
    report = check(suite, tmp_path)
    assert report.success
    assert not report.problems
    written = orjson.loads(report.path.read_bytes())
    assert len(written["results"]) == report.expectations == len(load_suite(suite).expectations)
    assert written["rows"] == report.rows > 0


@pytest.mark.parametrize("suite", MAKE)
def test_sound_rows_keep_their_contract(suite: str, tmp_path: Path) -> None:
    write(suite, tmp_path, [MAKE[suite](number) for number in range(5)])
    report = check(suite, tmp_path)
    assert report.success
    assert report.rows == 5


def test_a_check_leaves_the_same_bytes_each_time(tmp_path: Path) -> None:
    write("tasks", tmp_path, [task(number) for number in range(5)])
    first = check("tasks", tmp_path).path.read_bytes()
    assert check("tasks", tmp_path).path.read_bytes() == first


@pytest.mark.parametrize(
    ("suite", "change", "says"),
    [
        ("tasks", {"task_id": "t1"}, "own identifier"),
        ("tasks", {"request": "Use weather_current for town number 9, please."}, "names needs, never tools"),
        ("tasks", {"width": 2}, "A single task has one call"),
        ("tasks", {"shape": "parallel"}, "at least two calls"),
        ("tasks", {"atoms": []}, "Every task can be checked"),
        ("tasks", {"shape": "chain"}, "A chain has at least two calls"),
        ("tasks", {"shape": "fan-in"}, "A fan-in task has calls that need others"),
        ("tasks", {"shape": "no-tool"}, "A task that needs no tool has no call"),
        ("tasks", {"difficulty": 1.5}, "Difficulty is a share"),
        ("tasks", {"slots": []}, "has a slot"),
        ("tasks", {"split": "holdout"}, "Every split is a known one"),
        ("episodes", {"answer": None}, "ended with an answer has one"),
        ("episodes", {"end": "turn_limit"}, "ended otherwise has none"),
        ("episodes", {"end": "gave_up", "answer": None}, "ends in a known way"),
        ("episodes", {"turns": [turn("answer", well_formed=False)]}, "says what is wrong"),
        ("episodes", {"task_id": "t1"}, "recorded once"),
        ("demos", {"split": "test"}, "final evaluation"),
        ("demos", {"messages": demo(0)["messages"][:-1]}, "the last word"),
        ("demos", {"messages": demo(0)["messages"][:4] + demo(0)["messages"][3:]}, "take turns"),
        ("demos", {"discovered_tools": []}, "discovers tools"),
        ("demos", {"mistakes": [3]}, "turn of the agent"),
        ("demos", {"mistakes": [6]}, "turn of the agent"),
        ("demos", {"n_turns": 4}, "as many turns as it says"),
        ("scores", {"trajectory": 2.0}, "outcome plus step minus penalty"),
        ("scores", {"end": "turn_limit"}, "Only an episode that ended with an answer is solved"),
        ("scores", {"solved": False}, "Unsolved has a reason"),
        ("scores", {"targets_called": 2}, "called than there are"),
        ("scores", {"format": 1.5}, "format reward is a share"),
        ("scores", {"phase": None}, "Every row has a phase"),
    ],
)
def test_a_bad_row_breaks_the_expectation_meant_for_it(
    suite: str, change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    write(suite, tmp_path, [*(MAKE[suite](number) for number in range(3)), MAKE[suite](9, **change)])
    with pytest.raises(RunError) as caught:
        check(suite, tmp_path)
    results = orjson.loads((tmp_path / "contracts" / f"{suite}.json").read_bytes())["results"]
    assert any(says in result["description"] for result in results if not result["success"]), str(caught.value)
    assert f"`{suite}` is broken" in str(caught.value)


def test_the_sentence_names_expectation_count_and_three_rows(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    bad = [replace(tool, name=f"bad name {number}") for number, tool in enumerate(tiny_tools[:5])]
    write_catalog(tmp_path / "catalog.duckdb", [*bad, *tiny_tools[5:]])
    with pytest.raises(RunError) as caught:
        check("tools", tmp_path)
    sentence = str(caught.value)
    assert "Models can call every name (expect_column_values_to_match_regex on name): 5 of 30 rows" in sentence
    assert sentence.count("{name: bad name") == 3
    assert str(tmp_path / "contracts" / "tools.json") in sentence
    assert "\n" not in sentence
    results = orjson.loads((tmp_path / "contracts" / "tools.json").read_bytes())["results"]
    assert sum(not entry["success"] for entry in results) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"description": "Returns <b>one</b> event of a calendar."}, "No HTML is left"),
        ({"description": ""}, "Every tool says what it does"),
        ({"name": "WEATHER_current"}, "Names differ by more than upper and lower case"),
        ({"effect": "destroy"}, "Every effect is one of five"),
        ({"quality": 1.5}, "Quality is a share"),
        ({"source": "somewhere"}, "kind of source"),
    ],
)
def test_a_bad_tool_breaks_the_expectation_meant_for_it(
    change: dict[str, Any], says: str, tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    write_catalog(tmp_path / "catalog.duckdb", [replace(tiny_tools[0], **change), *tiny_tools[1:]])
    with pytest.raises(RunError, match=says):
        check("tools", tmp_path)


def test_angle_brackets_that_are_no_html_are_kept(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    text = "Takes arn:aws:s3:::<bucket>/<key> and a Map<String, A>, where a < b > c."
    write_catalog(tmp_path / "catalog.duckdb", [replace(tiny_tools[0], description=text), *tiny_tools[1:]])
    assert check("tools", tmp_path).success


def test_an_orphan_parameter_is_noticed(tmp_path: Path, tiny_catalog_path: Path) -> None:
    shutil.copy(tiny_catalog_path, tmp_path / "catalog.duckdb")
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as connection:
        connection.execute("INSERT INTO parameters VALUES ('nobody', 'x', 'string', true, '', NULL, 'no json')")
    with pytest.raises(RunError, match=r"\(and 1 more\)"):
        check("parameters", tmp_path)


def test_a_lesser_breach_is_reported_and_does_not_stop_the_run(
    tmp_path: Path, write_catalog: WriteCatalog, tiny_tools: list[ToolInterface]
) -> None:
    write_catalog(tmp_path / "catalog.duckdb", [replace(tool, description="Short.") for tool in tiny_tools])
    report = check("tools", tmp_path)
    assert not report.success
    assert len(report.problems) == 1
    assert "30 of 30 rows" in report.problems[0]


def test_no_rows_at_all_break_a_contract(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="`episodes` is broken"):
        check("episodes", tmp_path)


def test_an_unknown_expectation_fails_the_loading(tmp_path: Path) -> None:
    suite = orjson.loads((contracts.SUITES / "tasks.json").read_bytes())
    suite["expectations"][3]["type"] = "expect_column_values_to_be_nice"
    (tmp_path / "tasks.json").write_bytes(orjson.dumps(suite))
    with pytest.raises(RunError, match="expect_column_values_to_be_nice"):
        load_suite("tasks", tmp_path)


@pytest.mark.parametrize("missing", ["description", "severity"])
def test_an_expectation_without_explanation_fails_the_loading(missing: str, tmp_path: Path) -> None:
    suite = orjson.loads((contracts.SUITES / "tasks.json").read_bytes())
    del suite["expectations"][0][missing]
    (tmp_path / "tasks.json").write_bytes(orjson.dumps(suite))
    with pytest.raises(RunError, match="has no description or no severity"):
        load_suite("tasks", tmp_path)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"name": "tasks", "expectations": []}'])
def test_a_suite_that_says_nothing_fails_the_loading(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_bytes(text)
    with pytest.raises(RunError, match="data contract"):
        load_suite("tasks", tmp_path)
