"""Demonstrations: oracle episodes that solve their task and break no rule, as a Hugging Face data set.

Only tasks of the training split are played, and searches see only that split's services. A row holds the conversation
(`messages`), the schemas of the tools that its searches found (`discovered_tools`, one JSON document each; a column
named `tools` would be rendered into prompts by many chat templates), and what the conversation is about.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from paraagent.agents.loop import Rollout, run_rollouts
from paraagent.agents.oracle import OraclePolicy
from paraagent.agents.transcript import Transcriber
from paraagent.config import DemosConfig, RewardConfig
from paraagent.paraact.schema import render_schema
from paraagent.progress import Progress
from paraagent.rewards.score import Rewards, score
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode

BATCH = 64


class Demonstrations(NamedTuple):
    rows: list[dict[str, Any]]
    """One row a demonstration, in the order of the tasks."""
    episodes: list[Episode]
    """The episodes behind the rows, with their rewards."""
    rejected: dict[str, int]
    """Episodes left out, by reason."""


def demonstrate(
    tasks: Sequence[Task],
    env: Callable[[], ToolEnv],
    transcriber: Transcriber,
    config: DemosConfig,
    rewards: RewardConfig,
    seed: int,
    progress: Progress,
) -> Demonstrations:
    """Play every task with the oracle and keep what is worth learning from."""
    made = Demonstrations([], [], {})
    rejected: Counter[str] = Counter()
    progress.start(len(tasks), "episodes")
    policy = OraclePolicy(BATCH)
    for start in range(0, len(tasks), BATCH):
        batch = tasks[start : start + BATCH]
        units = [(task, derive(seed, task.task_id)) for task in batch]
        for task, rollout in zip(batch, asyncio.run(run_rollouts(policy, env, units)), strict=True):
            found = score(task, rollout.episode, rewards)
            row = _row(task, rollout, transcriber, env())
            reason = _fault(rollout.episode, found, row["n_tokens"], config)
            if reason:
                rejected[reason] += 1
                continue
            made.rows.append(row)
            made.episodes.append(rollout.episode.model_copy(update={"rewards": reward_values(found)}))
        progress.advance(len(batch))
    return made._replace(rejected=dict(sorted(rejected.items())))


def reward_values(rewards: Rewards) -> dict[str, float]:
    """The scalar channels, as an episode carries them."""
    return {name: float(value) for name, value in asdict(rewards).items() if isinstance(value, float)}


def write_demos(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows as Parquet that `datasets.load_dataset("parquet", …)` reads with its types."""
    from datasets import Dataset, Features, List, Value
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    text, number = Value("string"), Value("int64")
    features = Features(
        {
            "task_id": text,
            "messages": List({"role": text, "content": text}),
            "discovered_tools": List(text),
            "shape": text,
            "width": number,
            "reach": text,
            "split": text,
            "n_tokens": number,
            "n_model_tokens": number,
        }
    )
    Dataset.from_list(list(rows), features=features).to_parquet(path)


def _row(task: Task, rollout: Rollout, transcriber: Transcriber, env: ToolEnv) -> dict[str, Any]:
    tokens = transcriber.render(rollout.conversation.messages)
    names = dict.fromkeys(hit for search in rollout.episode.searches if search.visible for hit in search.hits)
    tools = env.catalog.get_many(list(names))
    return {
        "task_id": task.task_id,
        "messages": [dict(message) for message in rollout.conversation.messages],
        "discovered_tools": [render_schema(tools[name], env.config.max_schema_chars) for name in names],
        "shape": task.shape,
        "width": task.width,
        "reach": task.reach,
        "split": task.split,
        "n_tokens": len(tokens.ids),
        "n_model_tokens": sum(tokens.mask),
    }


def _fault(episode: Episode, rewards: Rewards, tokens: int, config: DemosConfig) -> str:
    """Why an episode is no demonstration; empty where it is one."""
    if episode.end == "error":
        return "error"
    if not rewards.solved:
        return "not solved"
    if not all(turn.well_formed for turn in episode.turns):
        return "ill-formed turn"
    if not all(turn.plan_rule_kept for turn in episode.turns):
        return "plan rule broken"
    if tokens > config.max_tokens:
        return "too long"
    return ""
