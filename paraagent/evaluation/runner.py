"""Runner: the same tasks, in the same batches, for every system.

A unit is a fixed set of tasks with its own seed. It is what resumes after a kill: a local model's rounding depends on
which episodes are played together, so half a unit is never continued, it is run again. Where episodes do not depend on
each other, a unit may be one task, and all units run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from paraagent.config import RewardConfig
from paraagent.errors import RunError
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.trace import Episode

if TYPE_CHECKING:
    from paraagent.agents.policy import Policy
    from paraagent.toolenv.env import ToolEnv


ATTEMPTS = 2
"""How often a unit is tried."""
BATCHES = 4
"""Batches of a local model in one unit, within which the next task takes the place of an episode that ended."""


@dataclass(frozen=True)
class Unit:
    """Tasks that run together."""

    key: str
    seed: int
    tasks: tuple[Task, ...]

    @property
    def attempts(self) -> list[tuple[Task, int]]:
        """(task, seed of the attempt); the seed is the same for every system, so that they are compared in pairs."""
        return [(task, derive(self.seed, task.task_id)) for task in self.tasks]


def plan_units(tasks: Sequence[Task], size: int, seed: int) -> list[Unit]:
    """Consecutive units of at most `size` tasks."""
    starts = range(0, len(tasks), size)
    return [
        Unit(key=f"unit-{index:04d}", seed=derive(seed, "unit", index), tasks=tuple(tasks[start : start + size]))
        for index, start in enumerate(starts)
    ]


async def run_units(
    units: Sequence[Unit],
    policy: Policy,
    env: Callable[[], ToolEnv],
    config: RewardConfig,
    finished: Callable[[Unit, list[Episode]], None],
    failed: Callable[[Unit, str], None],
    ended: Callable[[Unit, int], None] = lambda unit, number: None,
) -> list[Unit]:
    """Run units, one after another where the policy plays in lockstep, else as many at once as it plays episodes.

    `finished` gets each unit's episodes as soon as they are there, `failed` each attempt that broke off, and `ended`,
    with each episode, how many of a unit's attempt have ended. Returns the units that broke off `ATTEMPTS` times.
    """
    slots = asyncio.Semaphore(1 if policy.lockstep else policy.group)

    async def attempt(unit: Unit) -> Unit | None:
        async with slots:
            for _ in range(ATTEMPTS):
                try:
                    episodes = await run_unit(unit, policy, env, config, partial(ended, unit))
                except Exception as error:  # a unit may fail in many ways; none may look like a result
                    failed(unit, str(error) if isinstance(error, RunError) else f"{type(error).__name__}: {error}")
                else:
                    finished(unit, episodes)
                    return None
            return unit

    return [unit for unit in await asyncio.gather(*map(attempt, units)) if unit is not None]


async def run_unit(
    unit: Unit,
    policy: Policy,
    env: Callable[[], ToolEnv],
    config: RewardConfig,
    ended: Callable[[int], None] = lambda number: None,
) -> list[Episode]:
    """Run and score one unit; the episodes carry their rewards and come in the order of the unit's tasks. `ended` is
    told how many have ended, with each of them.

    Raises:
        RunError: an episode broke off with an error of ours, so the unit is not a result.
    """
    from paraagent.agents.loop import run_episodes
    from paraagent.rewards.score import reward_values, score

    numbers = count(1)
    played = await run_episodes(policy, env, unit.attempts, lambda: ended(next(numbers)))
    episodes = []
    for task, episode in zip(unit.tasks, played, strict=True):
        if episode.end == "error":
            raise RunError(f"task {task.task_id} broke off: {episode.error}")
        episodes.append(episode.model_copy(update={"rewards": reward_values(score(task, episode, config))}))
    return episodes
