"""`bench parallel`: what waiting costs when episodes and calls wait together, and what acting together saves.

- Makespan: episodes whose calls take log-normal times, beside the critical path, which is the slowest call of each
  turn, summed over an episode's turns, of the longest episode; and what steps in lockstep would have taken.
- Pace: the oracle with every ready call in one turn, with one action a turn, and with dependent calls in one turn that
  refer to each other, on the same tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, get_args

from paraagent.agents.loop import run_episodes
from paraagent.agents.oracle import OraclePolicy, Pace
from paraagent.agents.transcript import Transcriber
from paraagent.config import EnvConfig, RewardConfig, TasksConfig
from paraagent.evaluation.intervals import Interval, paired_bootstrap
from paraagent.message import Message
from paraagent.progress import Progress
from paraagent.rewards.score import score
from paraagent.task import Task
from paraagent.tasks.synthesis import synthesise
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex

PACES: tuple[Pace, ...] = get_args(Pace)
_CONFIDENCE = 0.95


def bench_parallel(
    catalog: Catalog,
    index: ToolIndex,
    transcriber: Transcriber | None,
    episodes: int,
    tasks: int,
    usual: float,
    processes: int,
    progress: Progress,
) -> dict[str, Any]:
    """Make `tasks` held-out tasks and play them; calls take `usual` seconds as a rule.

    `transcriber` counts tokens; without one there are none.
    """
    progress.message("making tasks")
    made = synthesise(
        catalog, index, TasksConfig(train=1, validation=1, test=tasks), EnvConfig(), 0, progress, processes
    )
    held = [task for task in made.tasks if task.split == "test"]
    config = EnvConfig(latency="lognormal", latency_seconds=usual, call_timeout=60 * usual)
    env = partial(ToolEnv, catalog, index)
    calling = [task for task in held if task.calls][:episodes]
    progress.message(f"playing {len(calling)} episodes at once")
    together = makespan(calling, partial(env, config))
    slow = makespan(calling, partial(env, config.model_copy(update={"latency": "few-slow"})))
    played = {}
    for pace in PACES:
        progress.message(f"playing {len(held)} tasks with the pace {pace}")
        own = config.model_copy(update={"references": pace == "references"})
        played[pace] = _play(held, partial(env, own), OraclePolicy(len(held), pace))
    return {
        "usual_seconds": usual,
        **together,
        "few_slow": slow,
        "paces": compare(held, played, transcriber),
    }


def makespan(tasks: Sequence[Task], env: Callable[[], ToolEnv]) -> dict[str, Any]:
    """Play all tasks at once with the oracle, waiting for real, beside the least that it could have taken."""
    began = time.perf_counter()
    ended: list[float] = []

    async def play() -> list[Episode]:
        async def one(task: Task) -> Episode:
            [episode] = await run_episodes(OraclePolicy(1), env, [(task, 0)])
            ended.append(time.perf_counter() - began - critical_path(episode))
            return episode

        return list(await asyncio.gather(*map(one, tasks)))

    episodes = asyncio.run(play())
    seconds = time.perf_counter() - began
    least = max(map(critical_path, episodes), default=0.0)
    return {
        "episodes": len(episodes),
        "calls": sum(len(episode.calls) for episode in episodes),
        "makespan_seconds": seconds,
        "critical_path_seconds": least,
        "ratio": seconds / least if least else 1.0,
        "lockstep_seconds": lockstep(episodes),
        "one_by_one_seconds": sum(call.seconds for episode in episodes for call in episode.calls),
        "most_delayed_seconds": max(ended, default=0.0),
    }


def critical_path(episode: Episode) -> float:
    """The slowest call of each turn, summed over the turns: what an episode takes if nothing else costs time."""
    return sum(_slowest(turn_calls) for turn_calls in _waits(episode))


def lockstep(episodes: Sequence[Episode]) -> float:
    """What the same episodes take where all wait for the slowest call of any of them in every turn."""
    return sum(max(map(_slowest, turns)) for turns in zip_longest(*map(_waits, episodes), fillvalue=[0.0]))


def compare(
    tasks: Sequence[Task], played: dict[Pace, list[Episode]], transcriber: Transcriber | None
) -> list[dict[str, Any]]:
    """Turns, seconds and tokens of each pace, by shape and in all; intervals are of the mean difference to `layers`."""
    rewards = RewardConfig()
    figures: dict[Pace, dict[str, list[float]]] = {
        pace: {
            "turns": [float(len(episode.turns)) for episode in episodes],
            "seconds": [_lasted(episode) for episode in episodes],
            "tokens_read": [float(_read(episode, transcriber)) for episode in episodes],
            "solved": [
                float(score(task, episode, rewards).solved) for task, episode in zip(tasks, episodes, strict=True)
            ],
        }
        for pace, episodes in played.items()
    }
    labels = [task.label for task in tasks]
    groups = {label: [place for place, own in enumerate(labels) if own == label] for label in sorted(set(labels))}
    rows = []
    for label, places in {"all": list(range(len(tasks))), **groups}.items():
        row: dict[str, Any] = {"shape": label, "tasks": len(places)}
        for pace, columns in figures.items():
            row[pace] = {
                name: _beside([values[place] for place in places], [figures["layers"][name][place] for place in places])
                for name, values in columns.items()
            }
        rows.append(row)
    return rows


def _beside(values: Sequence[float], base: Sequence[float]) -> dict[str, Any]:
    difference: Interval = paired_bootstrap(values, base, _CONFIDENCE, 0, resamples=2_000)
    return {"mean": sum(values) / len(values), "more": difference.value, "interval": [difference.low, difference.high]}


def _play(tasks: Sequence[Task], env: Callable[[], ToolEnv], policy: OraclePolicy) -> list[Episode]:
    return asyncio.run(run_episodes(policy, env, [(task, 0) for task in tasks]))


def _waits(episode: Episode) -> list[list[float]]:
    return [[call.seconds for call in turn.calls] for turn in episode.turns]


def _slowest(seconds: Sequence[float]) -> float:
    return max(seconds, default=0.0)


def _lasted(episode: Episode) -> float:
    """Seconds of simulated waiting, calls that run together counted once."""
    return max((call.started + call.seconds for call in episode.calls), default=0.0)


def _read(episode: Episode, transcriber: Transcriber | None) -> int:
    """Tokens of all prompts: each turn reads the whole conversation so far."""
    if transcriber is None:
        return 0
    messages: list[Message] = [
        {"role": "system", "content": episode.system},
        {"role": "user", "content": episode.request},
    ]
    total = length = len(transcriber.render(messages).ids)
    for turn in episode.turns[:-1]:
        said: list[Message] = [
            {"role": "assistant", "content": turn.text},
            {"role": "user", "content": turn.observation},
        ]
        length += len(transcriber.render(said).ids)
        total += length
    return total
