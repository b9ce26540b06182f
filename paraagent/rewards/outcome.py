"""R_outcome of a verifiable task: the share of answer atoms stated and of things left as they should be."""

from __future__ import annotations

from paraagent.config import RewardConfig
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import fold
from paraagent.rewards.atoms import states
from paraagent.task import Task
from paraagent.trace import Episode


def outcome_reward(task: Task, episode: Episode, config: RewardConfig) -> float:
    """1.5 where the answer states every atom and the world is left as asked, 0.5·s for a share s of it, −0.5 for none.

    Also −0.5 without an answer, and where the task needs a tool and no call succeeded: a guess earns nothing. A task
    that needs no tool earns nothing once a call was made; one that no tool can solve is all or nothing.
    """
    if episode.answer is None:
        return config.outcome_none
    if task.shape == "unsolvable":
        return config.outcome_full if _declined(episode) else config.outcome_none
    right = any(call.ok for call in episode.calls) if task.calls else not episode.calls
    if not right or not (task.atoms or task.state):
        return config.outcome_none
    reached = [states(episode.answer, atom.value) for atom in task.atoms]
    reached += [any(change.holds(wanted.thing) for change in episode.changes) for wanted in task.state]
    if all(reached):
        return config.outcome_full
    return config.outcome_share * sum(reached) / len(reached) if any(reached) else config.outcome_none


def _declined(episode: Episode) -> bool:
    """The agent looked, changed nothing, and said that no tool can do it."""
    said = fold(episode.answer or "").rstrip(".") == fold(NO_TOOL_ANSWER).rstrip(".")
    return said and bool(episode.searches) and not episode.changes
