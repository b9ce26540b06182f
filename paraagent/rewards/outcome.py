"""R_outcome of a verifiable task: the share of answer atoms stated and of changes made."""

from __future__ import annotations

from paraagent.catalog.effects import effect
from paraagent.config import RewardConfig
from paraagent.files import canonical_json
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import fold
from paraagent.rewards.atoms import states
from paraagent.task import StateChange, Task
from paraagent.trace import Episode

_WRITING = ("create", "update", "delete")


def outcome_reward(task: Task, episode: Episode, config: RewardConfig) -> float:
    """1.5 where the answer states every atom and every change is made, 0.5·s for a share s of them, −0.5 for none.

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
    reached += [_made(change, episode) for change in task.state]
    if all(reached):
        return config.outcome_full
    return config.outcome_share * sum(reached) / len(reached) if any(reached) else config.outcome_none


def _declined(episode: Episode) -> bool:
    """The agent looked, changed nothing, and said that no tool can do it."""
    said = fold(episode.answer or "").rstrip(".") == fold(NO_TOOL_ANSWER).rstrip(".")
    changed = any(call.ok and effect("", call.name) in _WRITING for call in episode.calls)
    return said and bool(episode.searches) and not changed


def _made(change: StateChange, episode: Episode) -> bool:
    """Whether a call that went well made the change: this tool, with each of these arguments."""
    return any(
        call.error is None
        and fold(call.name) == fold(change.tool)
        and all(
            name in call.arguments and canonical_json(call.arguments[name]) == canonical_json(value)
            for name, value in change.arguments.items()
        )
        for call in episode.calls
    )
