"""Scripted turns, and the replay of a trace: the same turns in the same world give the same observations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from paraagent.agents.loop import run_episodes
from paraagent.agents.oracle import OraclePolicy
from paraagent.agents.replay import replay
from paraagent.agents.scripted import ScriptedPolicy
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.paraact.paradigm import PARADIGMS
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import ParadigmName

TASK = Task.open("What became of order ord_1, and of ord_2?", 5)
TURNS = [
    "<think>t</think><search_tool>order: look up one customer order</search_tool>",
    "<think>t</think>"
    + "".join(
        f'<tool_call>{{"name": "orders_get_order", "arguments": {{"order_id": "{order}"}}}}</tool_call>'
        for order in ("ord_1", "ord_2", "ord_1")
    ),
    "<think>t</think><answer>Both are on their way.</answer>",
]


@pytest.fixture
def env(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Callable[..., ToolEnv]:
    return lambda paradigm="paraact", **changes: ToolEnv(
        tiny_catalog, tiny_index, EnvConfig(**changes), paradigm=PARADIGMS[paradigm]
    )


def test_it_plays_what_is_written_and_then_has_no_more_to_say(env: Callable[..., ToolEnv]) -> None:
    [whole] = asyncio.run(run_episodes(ScriptedPolicy({TASK.task_id: TURNS}), env, [(TASK, 1)]))
    assert (whole.end, [turn.text for turn in whole.turns]) == ("answer", TURNS)
    [short] = asyncio.run(run_episodes(ScriptedPolicy({TASK.task_id: TURNS[:2]}), env, [(TASK, 1)]))
    assert (short.end, len(short.turns)) == ("token_limit", 2)


@pytest.mark.parametrize("chance", [{}, {"fault_rate": 0.5, "latency": "lognormal", "latency_seconds": 0.001}])
def test_a_replay_sees_the_same(env: Callable[..., ToolEnv], chance: dict[str, object]) -> None:
    [episode] = asyncio.run(run_episodes(ScriptedPolicy({TASK.task_id: TURNS}), lambda: env(**chance), [(TASK, 1)]))
    again = replay(episode, TASK, env(**chance))
    assert (again.turns, again.differ) == (3, ())
    assert again.episode == episode


@pytest.mark.parametrize("paradigm", ["react-ete", "react-eae"])
def test_a_replay_keeps_to_its_paradigm(env: Callable[..., ToolEnv], paradigm: ParadigmName) -> None:
    [episode] = asyncio.run(run_episodes(OraclePolicy(), lambda: env(paradigm), [(TASK, 1)]))
    assert replay(episode, TASK, env(paradigm)).episode == episode.model_copy(update={"policy": "oracle"})


def test_a_replay_in_another_world_says_where_it_differs(env: Callable[..., ToolEnv]) -> None:
    [episode] = asyncio.run(run_episodes(ScriptedPolicy({TASK.task_id: TURNS}), env, [(TASK, 1)]))
    elsewhere = TASK.model_copy(update={"seed": 6})
    assert replay(episode, elsewhere, env()).differ == (2,)
