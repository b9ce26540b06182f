"""Attempts: what comes of a unit depends on nothing but the unit, and whatever is no demonstration says why."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.agents.roles import EndpointTeam
from paraagent.agents.script import ScriptedTeam
from paraagent.agents.team import Question, RoleModel
from paraagent.agents.transcript import Transcriber
from paraagent.catalog.splits import split_of
from paraagent.catalog.store import Catalog
from paraagent.config import DemosConfig, EnvConfig, LlmConfig, RewardConfig
from paraagent.demos.attempts import Attempt, Studio, Unit, demo_env, fault, open_team, plan_units, play
from paraagent.demos.recoveries import mistakes
from paraagent.paraact.executor import RETRYABLE
from paraagent.retrieval.index import build_index
from paraagent.rewards.score import Rewards, score
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode
from tests.endpoint import Raw, serving

Play = Callable[..., list[Attempt]]


@pytest.fixture(scope="module")
def units(tasks: list[Task]) -> list[Unit]:
    return plan_units([task for task in tasks if task.split == "test"], 1, 0)


@pytest.fixture(scope="module")
def at_play(made_env: Callable[..., ToolEnv], transcriber: Transcriber, demos_config: DemosConfig) -> Play:
    def at_play(units: Sequence[Unit], team: RoleModel | None = None, group: int = 64, **changes: Any) -> list[Attempt]:
        demos = demos_config.model_copy(update=changes)
        return play(units, team or ScriptedTeam(demos.imperfect), group, made_env, transcriber, demos, RewardConfig())

    return at_play


def episode_of(attempt: Attempt) -> Episode:
    return Episode.model_validate_json(attempt.episode)


def test_every_attempt_of_the_script_is_a_demonstration(attempts: list[Attempt], tasks: list[Task]) -> None:
    assert len(attempts) == 2 * sum(task.split != "test" for task in tasks)
    assert {(attempt.reason, attempt.lost) for attempt in attempts} == {("", "")}


def test_a_row_holds_the_conversation_and_what_is_known_of_it(
    attempts: list[Attempt], transcriber: Transcriber
) -> None:
    for attempt in attempts:
        row, episode = orjson.loads(attempt.row), episode_of(attempt)
        messages = row["messages"]
        assert [message["content"] for message in messages[:2]] == [episode.system, episode.request]
        assert [message["content"] for message in messages[2::2]] == [turn.text for turn in episode.turns]
        assert [message["content"] for message in messages[3::2]] == [turn.observation for turn in episode.turns[:-1]]
        assert row["n_turns"] == len(episode.turns)
        assert row["n_tokens"] == len(transcriber.render(messages).ids)
        assert 0 < row["n_model_tokens"] < row["n_tokens"]
        assert row["mistakes"] == mistakes(episode)
        assert {messages[place]["role"] for place in row["mistakes"]} <= {"assistant"}


def test_a_row_carries_each_tool_that_it_found_once(attempts: list[Attempt], tiny_catalog: Catalog) -> None:
    for attempt in attempts:
        names = [orjson.loads(tool)["name"] for tool in orjson.loads(attempt.row)["discovered_tools"]]
        assert names == list(dict.fromkeys(hit for search in episode_of(attempt).searches for hit in search.hits))
        assert all(tiny_catalog.get(name) for name in names)


def test_facts_name_the_licence_of_each_source(attempts: list[Attempt], tiny_catalog: Catalog) -> None:
    for attempt in attempts:
        hits = {hit for search in episode_of(attempt).searches for hit in search.hits}
        tools = [tiny_catalog.get(hit) for hit in hits]
        assert attempt.facts["licences"] == sorted(
            {f"{tool.source}: {tool.licence or 'not stated'}" for tool in tools if tool}
        )


def test_an_episode_carries_its_rewards(attempts: list[Attempt]) -> None:
    for attempt in attempts:
        rewards = episode_of(attempt).rewards
        assert rewards
        assert rewards["outcome"] == 1.5
        assert rewards.keys() == {"outcome", "step", "penalty", "trajectory", "phase", "format"}


def test_some_attempts_recover_and_some_have_nothing_to_recover_from(attempts: list[Attempt]) -> None:
    kinds = {kind for attempt in attempts for kind in attempt.facts["recoveries"]}
    assert {"search again", "fault retried"} <= kinds
    assert any(not attempt.facts["recoveries"] for attempt in attempts)


@pytest.mark.parametrize("size", [1, 3])
def test_company_does_not_change_a_unit(size: int, units: list[Unit], at_play: Play) -> None:
    together = at_play(units)
    apart = [attempt for start in range(0, len(units), size) for attempt in at_play(units[start : start + size])]
    assert apart == together
    assert at_play(list(reversed(units)), group=2) == list(reversed(together))


def test_attempts_at_one_task_differ(tasks: list[Task], at_play: Play) -> None:
    task = next(task for task in tasks if task.calls)
    attempts = at_play(plan_units([task], 6, 0))
    assert [attempt.key for attempt in attempts] == [f"{task.task_id}/{number}" for number in range(6)]
    assert len({attempt.row for attempt in attempts}) == 6


def test_each_task_comes_once_before_any_comes_again(tasks: list[Task]) -> None:
    units = plan_units(tasks, 3, seed=9)
    assert [unit.task for unit in units] == tasks * 3
    assert len({unit.key for unit in units}) == len({unit.seed for unit in units}) == len(units)
    assert plan_units(tasks[:1], 1, seed=9) == units[:1]
    assert plan_units(tasks[:1], 1, seed=8) != units[:1]


def test_a_studio_goes_to_another_process_and_plays_the_same(
    units: list[Unit],
    at_play: Play,
    demos_config: DemosConfig,
    tiny_catalog_path: Path,
    tiny_model_dir: Path,
    tmp_path: Path,
) -> None:
    shutil.copy(tiny_catalog_path, tmp_path / "catalog.duckdb")
    build_index(tmp_path / "catalog.duckdb", tmp_path / "index")
    studio = Studio(tmp_path, tiny_model_dir, EnvConfig(), demos_config, RewardConfig(), tmp_path / "cache")
    assert pickle.loads(pickle.dumps(studio)).open()(units) == at_play(units)


# Who plays, and where


def test_without_a_model_a_script_plays_and_with_one_the_endpoint(tmp_path: Path) -> None:
    script, _ = open_team(DemosConfig(), tmp_path)
    model, at_once = open_team(DemosConfig(team=LlmConfig(model="tiny", concurrency=5)), tmp_path)
    assert isinstance(script, ScriptedTeam)
    assert isinstance(model, EndpointTeam)
    assert at_once == 5


def test_only_faults_that_may_pass_happen_in_demonstrations() -> None:
    config = demo_env(EnvConfig(fault_rate=0.9), DemosConfig(fault_rate=0.3))
    assert config.fault_rate == 0.3
    assert {*config.fault_weights} == {"RateLimitError", "NetworkError", "ServiceUnavailable"} <= RETRYABLE


@pytest.mark.parametrize("weights", [{"NotFoundError": 1.0}, {"NotFoundError": 1.0, "NetworkError": 0.0}])
def test_where_no_fault_may_pass_none_happens(weights: Any) -> None:
    assert demo_env(EnvConfig(fault_weights=weights), DemosConfig(fault_rate=0.3)).fault_rate == 0.0


# What is no demonstration


@pytest.fixture(scope="module")
def good(attempts: list[Attempt], tasks: list[Task]) -> tuple[Episode, Rewards]:
    """A demonstration with calls."""
    attempt = next(attempt for attempt in attempts if attempt.facts["shape"] == "parallel")
    task = next(task for task in tasks if task.task_id == attempt.facts["task_id"])
    return episode_of(attempt), score(task, episode_of(attempt), RewardConfig())


def test_what_has_no_fault_may_be_a_demonstration(good: tuple[Episode, Rewards]) -> None:
    assert fault(*good, 100, DemosConfig(max_tokens=100)) == ""
    assert fault(*good, 101, DemosConfig(max_tokens=100)) == "too long"


@pytest.mark.parametrize(
    ("end", "error", "reason"),
    [
        ("error", "TimeoutError: too slow", "broken off: TimeoutError"),
        ("error", None, "broken off: "),
        ("error", "x" * 200, f"broken off: {'x' * 80}"),
        ("answer", None, "not solved: answer"),
        ("turn_limit", None, "not solved: turn limit"),
    ],
)
def test_what_does_not_solve_its_task_is_none(
    end: Any, error: str | None, reason: str, good: tuple[Episode, Rewards]
) -> None:
    episode, rewards = good
    ended = episode.model_copy(update={"end": end, "error": error})
    assert fault(ended, replace(rewards, solved=False), 1, DemosConfig()) == reason


@pytest.mark.parametrize(
    ("place", "changes", "reason"),
    [
        (-1, {"well_formed": False}, "ill-formed turn"),
        (0, {"plan": None}, "plan rule broken"),
        (-1, {"plan_rule": "required"}, "plan rule broken"),
        (0, {"events": ()}, "used unseen: tool"),
    ],
)
def test_what_breaks_a_rule_is_none(
    place: int, changes: dict[str, Any], reason: str, good: tuple[Episode, Rewards]
) -> None:
    episode, rewards = good
    turns = list(episode.turns)
    turns[place] = turns[place].model_copy(update=changes)
    assert fault(episode.model_copy(update={"turns": tuple(turns)}), rewards, 1, DemosConfig()) == reason


def test_a_value_that_nobody_had_seen_is_none(good: tuple[Episode, Rewards]) -> None:
    episode, rewards = good
    turns = [turn.model_copy(update={"observation": ""}) for turn in episode.turns]
    unheard = episode.model_copy(update={"request": "Do it.", "turns": tuple(turns)})
    assert fault(unheard, rewards, 1, DemosConfig()) == "used unseen: value"


def test_what_is_too_long_says_so_and_keeps_its_episode(units: list[Unit], at_play: Play) -> None:
    short = at_play(units, max_tokens=10)
    assert {attempt.reason for attempt in short} == {"too long"}
    assert {episode_of(attempt).end for attempt in short} == {"answer"}


def test_a_team_that_gets_nowhere_leaves_attempts_with_a_reason(units: list[Unit], at_play: Play) -> None:
    class Refusing(ScriptedTeam):
        async def ask(self, question: Question) -> dict[str, Any]:
            refusal = {"accept": False, "reason": "no"}
            return refusal if question.asked == "check" else await super().ask(question)

    [attempt] = at_play(units[:1], Refusing())
    assert (attempt.reason, attempt.lost) == ("broken off: the team went round in circles", "")


def test_what_the_endpoint_broke_off_is_owed(units: list[Unit], at_play: Play) -> None:
    with serving(Raw(b"{}", 500)) as endpoint:
        broken = at_play(units[:3], EndpointTeam(endpoint.config()))
    assert [attempt.key for attempt in broken] == [unit.key for unit in units[:3]]
    assert all("fails with status 500" in attempt.lost for attempt in broken)


def test_what_the_model_could_not_say_is_not_owed(units: list[Unit], at_play: Play) -> None:
    with serving("I would rather talk.") as endpoint:
        [attempt] = at_play(units[:1], EndpointTeam(endpoint.config()))
    assert (attempt.reason, attempt.lost) == ("broken off: the Planner gave nothing that can be used", "")


def test_searches_of_a_unit_see_the_services_of_its_split(
    tasks: list[Task], at_play: Play, tiny_catalog: Catalog
) -> None:
    units = plan_units([task for task in tasks if task.slots and task.split != "test"], 1, 0)
    assert units
    for unit, attempt in zip(units, at_play(units), strict=True):
        names = [name for search in episode_of(attempt).searches for name in search.hits]
        found = tiny_catalog.get_many(names).values()
        assert found
        assert {split_of(tool.provider, tool.service) for tool in found} == {unit.task.split}
