"""Runner: the same tasks, in the same batches, for every system.

A unit is a fixed batch of tasks with its own seed. It is what resumes after a kill: a local model's rounding depends on
which episodes share a batch, so half a batch is never continued, it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paraagent.errors import RunError
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.trace import Episode

if TYPE_CHECKING:
    from paraagent.agents.policy import Policy
    from paraagent.toolenv.env import ToolEnv


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


def plan_units(tasks: Sequence[Task], batch: int, seed: int) -> list[Unit]:
    """Consecutive batches of at most `batch` tasks."""
    starts = range(0, len(tasks), batch)
    return [
        Unit(key=f"batch-{index:04d}", seed=derive(seed, "unit", index), tasks=tuple(tasks[start : start + batch]))
        for index, start in enumerate(starts)
    ]


async def run_unit(unit: Unit, policy: Policy, env: Callable[[], ToolEnv]) -> list[Episode]:
    """Run one unit; the episodes come in the order of its tasks.

    Raises:
        RunError: an episode broke off with an error of ours, so the unit is not a result.
    """
    from paraagent.agents.loop import run_episodes

    episodes = await run_episodes(policy, env, unit.attempts)
    for episode in episodes:
        if episode.end == "error":
            raise RunError(f"task {episode.task_id} broke off: {episode.error}")
    return episodes
