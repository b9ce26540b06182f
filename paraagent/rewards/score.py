"""All rewards of one episode, from its trace alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from paraagent.config import RewardConfig
from paraagent.rewards.format import format_reward, turn_format
from paraagent.rewards.outcome import outcome_reward
from paraagent.rewards.penalties import penalty
from paraagent.rewards.phase import PhaseScore, phase_reward, phase_scores
from paraagent.rewards.step import step_reward
from paraagent.task import Task
from paraagent.trace import Episode


@dataclass(frozen=True)
class Rewards:
    """The channels of one episode. RL reads `trajectory`, `phase` and `format`."""

    outcome: float
    step: float
    penalty: float
    trajectory: float
    """outcome + step − penalty, about −0.85 … 2."""
    phase: float
    format: float
    """0 … 1."""
    solved: bool
    """The outcome is the full one."""
    turn_formats: tuple[float, ...]
    """One value a turn, 0 … 1."""
    phases: tuple[PhaseScore, ...]
    """One a call phase, before the outcome gate."""


def reward_values(rewards: Rewards) -> dict[str, float]:
    """The scalar channels, as an episode carries them."""
    return {name: float(value) for name, value in asdict(rewards).items() if isinstance(value, float)}


def score(task: Task, episode: Episode, config: RewardConfig) -> Rewards:
    """Score one episode of this task."""
    outcome = outcome_reward(task, episode, config)
    step = step_reward(task, episode, config)
    minus = penalty(task, episode, config)
    phases = phase_scores(task, episode, config)
    return Rewards(
        outcome=outcome,
        step=step,
        penalty=minus,
        trajectory=outcome + step - minus,
        phase=phase_reward(phases, outcome, config),
        format=format_reward(episode),
        solved=outcome >= config.outcome_full,
        turn_formats=tuple(turn_format(turn) for turn in episode.turns),
        phases=phases,
    )
