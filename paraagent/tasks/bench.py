"""What tasks are worth: how fast they are made, who solves them, and whether episodes are always the same bytes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paraagent.agents.loop import run_episodes
from paraagent.agents.oracle import OraclePolicy
from paraagent.config import EnvConfig, RewardConfig, TasksConfig
from paraagent.files import canonical_json, sha256_bytes
from paraagent.progress import Progress
from paraagent.rewards.score import score
from paraagent.seeds import rng
from paraagent.task import Task
from paraagent.tasks.baselines import FAULTS, Fault, play_faulty
from paraagent.tasks.synthesis import synthesise
from paraagent.toolenv.env import ToolEnv
from paraagent.workers import Workers

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex

_BATCH = 32
_PROCESSES = 4
"""Against one, in the comparison of bytes."""


class Part(NamedTuple):
    """Tasks to be played by the oracle, or with a fault."""

    fault: Fault | None
    tasks: tuple[Task, ...]


class Outcome(NamedTuple):
    """One task played."""

    fault: Fault | None
    task_id: str
    solved: bool
    digest: str
    """Of the whole trace."""


def bench_tasks(
    catalog: Catalog,
    index: ToolIndex,
    config: TasksConfig,
    env: EnvConfig,
    processes: int,
    episodes: int,
    progress: Progress,
) -> dict[str, Any]:
    """Make tasks, play the held-out ones as the oracle and as each baseline, and compare the bytes of episodes."""
    progress.message("making tasks")
    start = time.perf_counter()
    made = synthesise(catalog, index, config, env, 0, progress, processes)
    seconds = time.perf_counter() - start
    tasks = [task for task in made.tasks if task.split == "test"]
    faults: tuple[Fault | None, ...] = (None, *FAULTS)
    progress.message("playing them as the oracle and as each baseline")
    played = play_all(catalog, index, env, [part for fault in faults for part in parts(tasks, fault)], processes)
    progress.message(f"playing {min(episodes, len(tasks))} of them in other processes and another order")
    return {
        "seconds": round(seconds, 1),
        "processes": processes,
        "tasks": len(made.tasks),
        "test": len(tasks),
        "shapes": _counted(task.label for task in tasks),
        "reaches": _counted(task.reach for task in tasks),
        "writing": sum(bool(task.state) for task in tasks),
        "with_equivalents": sum(any(slot.equivalents for slot in task.slots) for task in tasks),
        "tools": len({tool for task in tasks for tool in task.targets}),
        "rejected": made.rejected,
        "solved": {
            fault or "oracle": {
                "solved": sum(one.solved for one in played if one.fault == fault),
                "played": sum(one.fault == fault for one in played),
            }
            for fault in faults
        },
        "episodes": compare(catalog, index, env, tasks[:episodes]),
    }


def compare(catalog: Catalog, index: ToolIndex, env: EnvConfig, tasks: Sequence[Task]) -> dict[str, Any]:
    """Whether the oracle's episodes are the same bytes in one process, in four, and in shuffled order."""
    shuffled = rng(0, "shuffled").sample(tasks, len(tasks))
    one, four, other = (
        {played.task_id: played.digest for played in play_all(catalog, index, env, parts(order), processes)}
        for order, processes in ((tasks, 1), (tasks, _PROCESSES), (shuffled, 1))
    )
    return {
        "played": len(one),
        "same_in_four_processes": sum(four[key] == digest for key, digest in one.items()),
        "same_in_shuffled_order": sum(other[key] == digest for key, digest in one.items()),
        "digest": sha256_bytes(canonical_json(one)),
    }


def parts(tasks: Sequence[Task], fault: Fault | None = None) -> list[Part]:
    return [Part(fault, tuple(tasks[start : start + _BATCH])) for start in range(0, len(tasks), _BATCH)]


def play_all(catalog: Catalog, index: ToolIndex, env: EnvConfig, jobs: Sequence[Part], processes: int) -> list[Outcome]:
    """Play every part."""
    with Workers(partial(_player, catalog, index, env), processes) as workers:
        return [outcome for outcomes in workers.run(jobs) for outcome in outcomes]


def _player(catalog: Catalog, index: ToolIndex, env: EnvConfig) -> Callable[[Part], list[Outcome]]:
    def play(part: Part) -> list[Outcome]:
        if part.fault is None:
            tasks = list(part.tasks)
            units = [(task, 0) for task in tasks]
            episodes = asyncio.run(run_episodes(OraclePolicy(), lambda: ToolEnv(catalog, index, env), units))
        else:
            tasks, episodes = play_faulty(part.tasks, part.fault, catalog, index, env)
        rewards = RewardConfig()
        return [
            Outcome(
                part.fault,
                task.task_id,
                score(task, episode, rewards).solved,
                sha256_bytes(canonical_json(episode.model_dump(mode="json"))),
            )
            for task, episode in zip(tasks, episodes, strict=True)
        ]

    return play


def _counted(labels: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(labels).items()))
