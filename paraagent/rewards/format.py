"""R_format, the step channel: is each turn well-formed, and did its plan keep the lifecycle."""

from __future__ import annotations

from paraagent.trace import Episode, Turn


def turn_format(turn: Turn) -> float:
    """0.5 · (turn well-formed) + 0.5 · (plan-lifecycle rule kept)."""
    return 0.5 * turn.well_formed + 0.5 * turn.plan_rule_kept


def format_reward(episode: Episode) -> float:
    """Mean over the turns, 0 … 1; 0 without a turn."""
    if not episode.turns:
        return 0.0
    return sum(turn_format(turn) for turn in episode.turns) / len(episode.turns)
