"""Rows and summaries, by hand-computed examples."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paraagent.evaluation import plan_units, score_frame, score_row, summarise
from paraagent.evaluation.benchmarks.toolenv import held_out


def rewards(solved: bool) -> Any:
    value = 1.5 if solved else -0.5
    return SimpleNamespace(
        solved=solved, outcome=value, step=0.5, phase=0.0, format=1.0, penalty=0.0, trajectory=value + 0.5
    )


def row(script: Any, system: str, task_id: str, solved: bool) -> dict[str, Any]:
    search = script.turn("search", script.search("getUser"), script.search("getOrder"), tokens=30)
    calls = script.turn("call", script.call("getUser", id="u1"), script.call("getOrder", ok=solved, id="o1"), tokens=50)
    episode = script.episode(search, calls, script.turn("answer", tokens=5), answer="Ada", task_id=task_id)
    task = script.task.model_copy(update={"task_id": task_id})
    return score_row(system, task, episode, rewards(solved))


def test_a_row_counts_what_the_episode_did(script: Any) -> None:
    found = row(script, "sft", "t1", solved=False)
    assert found["turns"] == 3
    assert found["searches"] == 2
    assert found["calls"] == 2
    assert found["completion_tokens"] == 85
    assert (found["targets"], found["targets_found"], found["targets_called"], found["calls_ok"]) == (2, 2, 1, 1)
    assert found["call_turns"] == 1
    assert found["failure"] == "wrong_arguments"


def test_a_summary_adds_up(script: Any) -> None:
    solved = {"base": [False] * 4, "sft": [True, True, False, False], "rl": [True, True, True, False]}
    frame = score_frame(
        row(script, system, f"t{number}", flag) for system, flags in solved.items() for number, flag in enumerate(flags)
    )
    summary = summarise(frame, ["base", "sft", "rl"], 0.95, seed=0)
    assert summary["tasks"] == 4
    assert summary["success"]["sft"]["rate"] == 0.5
    assert summary["by_shape"]["rl"]["parallel-2"]["solved"] == 3
    first, second = summary["differences"]
    assert (first["system"], first["baseline"], first["difference"]) == ("sft", "base", 0.5)
    assert (second["system"], second["gained"], second["lost"]) == ("rl", 1, 0)
    assert second["low"] <= 0.25 <= second["high"]
    assert summary["means"]["sft"]["outcome"] == pytest.approx(0.5)
    assert summary["means"]["sft"]["calls_per_turn"] == 2.0
    assert summary["means"]["sft"]["call_success"] == pytest.approx(6 / 8)
    assert summary["means"]["sft"]["tool_hit_rate"] == 1.0
    for system, counts in summary["failures"].items():
        assert sum(counts.values()) == summary["success"][system]["n"]


def test_a_summary_does_not_depend_on_row_order(script: Any) -> None:
    rows = [row(script, system, f"t{n}", n % 3 == 0) for system in ("base", "sft") for n in range(6)]
    forward, backward = score_frame(rows), score_frame(reversed(rows))
    assert summarise(forward, ["base", "sft"], 0.9, 1) == summarise(backward, ["base", "sft"], 0.9, 1)


def test_a_system_that_never_calls_has_no_call_success(script: Any) -> None:
    episode = script.episode(script.turn("invalid"), end="turn_limit")
    frame = score_frame([score_row("base", script.task, episode, rewards(False))])
    means = summarise(frame, ["base"], 0.95, 0)["means"]["base"]
    assert means["call_success"] is None
    assert means["calls_per_turn"] is None
    assert means["tool_hit_rate"] == 0.0


def test_a_larger_limit_only_adds_tasks(script: Any) -> None:
    tasks = [script.task.model_copy(update={"task_id": f"t{n}"}) for n in range(20)]
    train = [task.model_copy(update={"split": "train"}) for task in tasks]
    few, more = held_out([*tasks, *train], 5, seed=1), held_out([*reversed(tasks), *train], 9, seed=1)
    assert more[:5] == few
    assert all(task.split == "test" for task in more)


def test_units_are_fixed_and_have_their_own_seeds(script: Any) -> None:
    tasks = [script.task.model_copy(update={"task_id": f"t{n}"}) for n in range(5)]
    units = plan_units(tasks, 2, seed=9)
    assert [[task.task_id for task in unit.tasks] for unit in units] == [["t0", "t1"], ["t2", "t3"], ["t4"]]
    assert len({unit.seed for unit in units}) == 3
    assert units == plan_units(tasks, 2, seed=9)
    assert len({seed for unit in units for _, seed in unit.attempts}) == 5
