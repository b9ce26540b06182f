"""Multi-level advantages: every reward channel is normalised on its own before they are added.

Pure functions over arrays. Rows are episodes; `groups` says which episodes share a task. One value an episode: the
caller gives it to every token that the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Name = TypeVar("Name", bound=str)

EPSILON = 1e-6
"""Added to every standard deviation; a spread below it is no signal."""


class Advantages(NamedTuple):
    """One value an episode, and what the batch had to say."""

    values: Floats
    """Shape (episodes,). Whitened over the episodes that have a verdict, 0 for the others."""
    flat: dict[str, int]
    """Groups without a spread, by channel: they contributed nothing."""
    reason: str
    """Why the batch carries no signal, so that no update is due; empty where it does."""


def decoupled(
    channels: Mapping[Name, Floats], weights: Mapping[Name, float], groups: NDArray[np.int64], verdict: Bools
) -> Advantages:
    """Normalise each channel within its group, add the weighted channels, whiten the sum over the batch.

    Args:
        channels: rewards by channel, each of shape (episodes,).
        weights: weight of each channel.
        groups: group of each episode, shape (episodes,).
        verdict: False for episodes that nobody could judge; they leave all statistics and get 0.
    """
    total = np.zeros(len(groups))
    flat: dict[str, int] = {}
    for name, rewards in channels.items():
        normalised, flat[name] = within_groups(rewards, groups, verdict)
        total += weights[name] * normalised
    if not verdict.any():
        return Advantages(np.zeros(len(groups)), flat, "no episode of the batch has a verdict")
    if np.ptp(total[verdict]) < EPSILON:
        return Advantages(np.zeros(len(groups)), flat, "no group of the batch differs in any reward channel")
    return Advantages(whiten(total, verdict), flat, "")


def within_groups(rewards: Floats, groups: NDArray[np.int64], verdict: Bools) -> tuple[Floats, int]:
    """(x − mean) / (population standard deviation + 1e-6) in each group, and the number of groups without a spread."""
    normalised = np.zeros(len(rewards))
    flat = 0
    for group in np.unique(groups):
        members = (groups == group) & verdict
        values = rewards[members]
        if len(values) < 2 or values.std() < EPSILON:
            flat += 1
            continue
        normalised[members] = (values - values.mean()) / (values.std() + EPSILON)
    return normalised, flat


def whiten(values: Floats, verdict: Bools) -> Floats:
    """Mean 0 and population standard deviation 1 over the episodes with a verdict; 0 for the others."""
    known = values[verdict]
    whitened = np.zeros(len(values))
    whitened[verdict] = (known - known.mean()) / (known.std() + EPSILON)
    return whitened
