"""A tiny random model's tokenizer, tasks of several shapes, and what a team without a model makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from paraagent.agents.script import ScriptedTeam
from paraagent.agents.transcript import Transcriber
from paraagent.catalog.store import Catalog
from paraagent.config import DemosConfig, EnvConfig, RewardConfig, TasksConfig
from paraagent.demos.attempts import Attempt, demo_env, plan_units, play
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.tasks.synthesis import synthesise
from paraagent.toolenv.env import ToolEnv


@pytest.fixture(scope="session")
def demos_config() -> DemosConfig:
    return DemosConfig(max_tokens=20_000, fault_rate=0.1, imperfect=0.5)


@pytest.fixture(scope="session")
def made_env(tiny_catalog: Catalog, tiny_index: ToolIndex, demos_config: DemosConfig) -> Callable[..., ToolEnv]:
    return partial(ToolEnv, tiny_catalog, tiny_index, demo_env(EnvConfig(), demos_config))


@pytest.fixture(scope="session")
def tasks(tiny_catalog: Catalog, tiny_index: ToolIndex) -> list[Task]:
    """Of all splits."""
    return synthesise(
        tiny_catalog, tiny_index, TasksConfig(train=30, validation=10, test=20), EnvConfig(), 0, Quiet()
    ).tasks


@pytest.fixture(scope="session")
def attempts(
    tasks: list[Task], made_env: Callable[..., ToolEnv], transcriber: Transcriber, demos_config: DemosConfig
) -> list[Attempt]:
    """Two attempts at each task of training and validation."""
    units = plan_units([task for task in tasks if task.split != "test"], 2, 0)
    return play(units, ScriptedTeam(demos_config.imperfect), 64, made_env, transcriber, demos_config, RewardConfig())
