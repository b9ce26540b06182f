"""R_outcome of a verifiable task (method.md section 5): the share of the answer atoms that the answer states."""

from __future__ import annotations

from paraagent.config import RewardConfig
from paraagent.rewards.atoms import states
from paraagent.task import Task
from paraagent.trace import Episode


def outcome_reward(task: Task, episode: Episode, config: RewardConfig) -> float:
    """1.5 where the answer states every atom, 0.5·s where it states a share s of them, −0.5 where it states none.

    Also −0.5 without an answer, and where the task needs a tool and no call succeeded: a guess earns nothing.
    """
    guessed = bool(task.calls) and not any(call.ok for call in episode.calls)
    if episode.answer is None or guessed or not task.atoms:
        return config.outcome_none
    stated = sum(states(episode.answer, atom.value) for atom in task.atoms)
    if stated == len(task.atoms):
        return config.outcome_full
    return config.outcome_share * stated / len(task.atoms) if stated else config.outcome_none
