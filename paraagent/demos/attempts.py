"""Attempts: the team plays a task; what came of it is told in a form that is cheap to keep, pass on and select from.

A unit is a task and an attempt's number. Its result depends on nothing else, so units may be played in any order, in
any company and in any number of processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from paraagent.agents.grounds import ungrounded
from paraagent.agents.loop import Rollout, run_rollouts
from paraagent.agents.team import RoleModel, TeamPolicy
from paraagent.config import DemosConfig, EnvConfig, RewardConfig
from paraagent.demos.recoveries import mistakes, recoveries
from paraagent.demos.sketch import sketch
from paraagent.paraact.executor import RETRYABLE
from paraagent.paraact.schema import render_schema
from paraagent.rewards.score import Rewards, reward_values, score
from paraagent.seeds import derive
from paraagent.task import Task

if TYPE_CHECKING:
    from paraagent.agents.transcript import Transcriber
    from paraagent.toolenv.env import ToolEnv
    from paraagent.trace import Episode


class Unit(NamedTuple):
    """One attempt at one task."""

    key: str
    """`<task>/<number of the attempt>`."""
    task: Task
    seed: int


class Attempt(NamedTuple):
    """What came of a unit."""

    key: str
    reason: str
    """Why it is no demonstration; empty where it may be one."""
    lost: str
    """What the endpoint broke off with: the unit is owed."""
    facts: dict[str, Any]
    """What selection looks at."""
    row: bytes
    """The row of the data set, as JSON."""
    episode: bytes
    """The episode with its rewards, as JSON."""


@dataclass(frozen=True)
class Studio:
    """All that a process needs to play units; can be pickled."""

    catalog: Path
    """The folder of the catalog's artifact."""
    model: Path
    """The folder whose tokenizer counts."""
    env: EnvConfig
    demos: DemosConfig
    rewards: RewardConfig
    cache: Path
    """Where answers of language models are kept."""

    def open(self) -> Callable[[Sequence[Unit]], list[Attempt]]:
        """What plays units in this process.

        Raises:
            UsageError: a backend, or the team's endpoint, is not set up.
        """
        from paraagent.agents.language_model import load_tokenizer
        from paraagent.agents.transcript import Transcriber
        from paraagent.catalog.store import Catalog
        from paraagent.retrieval.index import ToolIndex
        from paraagent.toolenv.backends import Backends
        from paraagent.toolenv.env import ToolEnv

        catalog = Catalog.open(self.catalog / "catalog.duckdb")
        index = ToolIndex.load(self.catalog / "index", catalog)
        config = demo_env(self.env, self.demos)
        env = partial(ToolEnv, catalog, index, config, backends=Backends.open(config, self.cache))
        transcriber = Transcriber(load_tokenizer(self.model))
        model, group = open_team(self.demos, self.cache)
        return lambda units: play(units, model, group, env, transcriber, self.demos, self.rewards)


def demo_env(env: EnvConfig, demos: DemosConfig) -> EnvConfig:
    """The environment of demonstrations: faults are rare, and such that the same call may succeed after them."""
    passing = {name: weight for name, weight in env.fault_weights.items() if name in RETRYABLE}
    rate = demos.fault_rate if sum(passing.values()) > 0 else 0.0
    return env.model_copy(update={"fault_rate": rate, "fault_weights": passing or env.fault_weights})


def open_team(demos: DemosConfig, cache: Path | None) -> tuple[RoleModel, int]:
    """Who plays the roles, and how many episodes at once."""
    if demos.team.model:
        from paraagent.agents.roles import EndpointTeam

        return EndpointTeam(demos.team, cache), demos.team.concurrency
    from paraagent.agents.script import ScriptedTeam

    return ScriptedTeam(demos.imperfect, demos.thoughts == "plain"), 64


def plan_units(tasks: Sequence[Task], attempts: int, seed: int) -> list[Unit]:
    """Every attempt at every task: first each task once, then each again."""
    return [
        Unit(f"{task.task_id}/{number}", task, derive(seed, task.task_id, number))
        for number in range(attempts)
        for task in tasks
    ]


def play(
    units: Sequence[Unit],
    model: RoleModel,
    group: int,
    env: Callable[..., ToolEnv],
    transcriber: Transcriber,
    demos: DemosConfig,
    rewards: RewardConfig,
) -> list[Attempt]:
    """Play units."""
    policy = TeamPolicy(model, group)
    rollouts = asyncio.run(run_rollouts(policy, env, [(unit.task, unit.seed) for unit in units]))
    tell = partial(_attempt, transcriber=transcriber, env=env(), demos=demos, rewards=rewards)
    return [
        tell(unit, rollout, policy.lost.get((unit.task.task_id, unit.seed), ""))
        for unit, rollout in zip(units, rollouts, strict=True)
    ]


def _attempt(
    unit: Unit,
    rollout: Rollout,
    lost: str,
    transcriber: Transcriber,
    env: ToolEnv,
    demos: DemosConfig,
    rewards: RewardConfig,
) -> Attempt:
    task, episode = unit.task, rollout.episode
    scored = score(task, episode, rewards)
    episode = episode.model_copy(update={"rewards": reward_values(scored)})
    tokens = transcriber.render(rollout.conversation.messages)
    reason = fault(episode, scored, len(tokens.ids), demos)
    names = dict.fromkeys(hit for search in episode.searches if search.visible for hit in search.hits)
    tools = env.catalog.get_many(list(names))
    facts: dict[str, Any] = {
        "task_id": task.task_id,
        "seed": unit.seed,
        "shape": task.shape,
        "width": task.width,
        "reach": task.reach,
        "split": task.split,
        "recoveries": recoveries(episode, task),
        "n_turns": len(episode.turns),
        "n_tokens": len(tokens.ids),
        "n_model_tokens": sum(tokens.mask),
    }
    row = facts | {
        "messages": rollout.conversation.messages,
        "mistakes": mistakes(episode),
        "discovered_tools": [render_schema(tools[name], env.config.max_schema_chars) for name in names],
    }
    facts |= {
        "targets": list(task.targets),
        "sketch": sketch(episode),
        "licences": sorted({f"{tools[name].source}: {tools[name].licence or 'not stated'}" for name in names}),
    }
    return Attempt(unit.key, reason, lost, facts, orjson.dumps(row), episode.model_dump_json().encode())


def fault(episode: Episode, rewards: Rewards, tokens: int, demos: DemosConfig) -> str:
    """Why an episode is no demonstration; empty where it may be one."""
    if episode.end == "error":
        return f"broken off: {(episode.error or '').partition(':')[0][:80]}"
    if not rewards.solved:
        return f"not solved: {episode.end.replace('_', ' ')}"
    if not all(turn.well_formed for turn in episode.turns):
        return "ill-formed turn"
    if not all(turn.plan_rule_kept for turn in episode.turns):
        return "plan rule broken"
    if used := ungrounded(episode):
        return f"used unseen: {used.partition(' ')[0]}"
    if tokens > demos.max_tokens:
        return "too long"
    return ""
