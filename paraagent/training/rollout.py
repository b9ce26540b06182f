"""Rollouts for reinforcement learning: real ToolEnv episodes with the model of the moment, as TRL's `rollout_func`.

TRL hands over prompts, each repeated once a generation; here a prompt is a task's id. Back go the exact tokens of
each episode: what came before the first sampled token as the prompt, the rest as the completion with its `env_mask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from paraagent.agents.language_model import LanguageModel
from paraagent.agents.local import LocalPolicy
from paraagent.agents.loop import Rollout, run_rollouts
from paraagent.config import EnvConfig, RewardConfig
from paraagent.rewards.score import Rewards, reward_values, score
from paraagent.seeds import derive
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv

Channel = Literal["trajectory", "phase", "step"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)


class Scored(NamedTuple):
    """One rollout and its rewards; `verdict` is False where something of ours broke the episode."""

    rollout: Rollout
    rewards: Rewards
    verdict: bool


def reward(scored: Scored, channel: Channel) -> float:
    """One channel's reward; the step channel is the format reward."""
    return float(getattr(scored.rewards, "format" if channel == "step" else channel))


class Trajectory(NamedTuple):
    """An episode's tokens, split where the model's first token stands."""

    prompt: list[int]
    completion: list[int]
    mask: list[int]
    """Beside `completion`: 1 where the model wrote the token."""


@dataclass
class Sampler:
    """Plays tasks with a copy of the trained model, in bfloat16 where that is fast, refreshed before every batch."""

    twin: LanguageModel
    env: Callable[[], ToolEnv]
    env_config: EnvConfig
    reward_config: RewardConfig
    tasks: Mapping[str, Task]
    temperature: float
    group: int
    seed: int
    keep: Callable[[int, Sequence[Scored]], None]
    """Gets the update's number and its rollouts, to write down."""
    batch: list[Scored] = field(default_factory=list)
    """The rollouts of the last call."""

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: token lists and, as extra columns, the reward channels."""
        self.twin.model.load_state_dict(trainer.accelerator.unwrap_model(trainer.model).state_dict())
        self.batch = self.play(prompts, trainer.state.global_step)
        self.keep(trainer.state.global_step, self.batch)
        tokens = [trajectory(scored.rollout, self.twin.tokenizer.eos_token_id) for scored in self.batch]
        return {
            "prompt_ids": [each.prompt for each in tokens],
            "completion_ids": [each.completion for each in tokens],
            "env_mask": [each.mask for each in tokens],
            "logprobs": None,
            **{name: [reward(scored, name) for scored in self.batch] for name in CHANNELS},
        }

    def play(self, task_ids: Sequence[str], update: int) -> list[Scored]:
        """Run and score one episode for each id; repeated ids get seeds of their own."""
        policy = LocalPolicy(
            self.twin,
            self.env_config,
            name="rl",
            temperature=self.temperature,
            group=self.group,
            seed=derive(self.seed, "update", update),
        )
        units = [(self.tasks[name], derive(self.seed, update, place)) for place, name in enumerate(task_ids)]
        rollouts = asyncio.run(run_rollouts(policy, self.env, units))
        scored = []
        for (task, _), rollout in zip(units, rollouts, strict=True):
            rewards = score(task, rollout.episode, self.reward_config)
            episode = rollout.episode.model_copy(update={"rewards": reward_values(rewards)})
            scored.append(Scored(rollout._replace(episode=episode), rewards, episode.end != "error"))
        return scored


def trajectory(rollout: Rollout, end: int) -> Trajectory:
    """The conversation's tokens as they are; one masked token stands in for an episode in which nothing was sampled."""
    ids, mask = rollout.conversation.token_ids, rollout.conversation.model_mask
    if 1 not in mask:
        return Trajectory(ids or [end], [end], [0])
    first = mask.index(1)
    return Trajectory(ids[:first], ids[first:], mask[first:])
