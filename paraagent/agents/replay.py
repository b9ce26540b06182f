"""Replay: an episode again without its model, to see that the same turns give the same observations."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from paraagent.agents.loop import run_episodes
from paraagent.agents.scripted import ScriptedPolicy
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode


class Replay(NamedTuple):
    """What a replay showed."""

    turns: int
    differ: tuple[int, ...]
    """Turns, counted from 1, whose observation is another one."""
    episode: Episode


def replay(episode: Episode, task: Task, env: ToolEnv) -> Replay:
    """Play the episode's turns in an environment that is made as its own was."""
    [again] = asyncio.run(run_episodes(ScriptedPolicy.of(episode), lambda: env, [(task, episode.seed)]))
    seen = [turn.observation for turn in again.turns]
    differ = [
        number
        for number, turn in enumerate(episode.turns, 1)
        if number > len(seen) or seen[number - 1] != turn.observation
    ]
    return Replay(len(episode.turns), tuple(differ), again)
