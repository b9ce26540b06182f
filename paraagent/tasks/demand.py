"""How many tasks of each kind a split is to have, by the shares of the profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from paraagent.config import ShapeName, TasksConfig

INDEPENDENT: dict[ShapeName, int] = {"single": 1, "parallel-2": 2, "parallel-3": 3}
"""Shapes whose calls do not need each other, with the number of these."""
TOOLLESS: tuple[ShapeName, ...] = ("no-tool", "unsolvable")


class Kind(NamedTuple):
    """What of a task is asked for by number."""

    shape: ShapeName
    writes: bool


def demand_of(config: TasksConfig, count: int) -> dict[Kind, int]:
    """How many tasks of each kind, shares by largest remainder."""
    weights: dict[Kind, float] = {}
    for shape, weight in sorted(config.shapes.items()):
        writing = 0.0 if shape in TOOLLESS else config.writing
        weights[Kind(shape, False)] = weight * (1 - writing)
        weights[Kind(shape, True)] = weight * writing
    total = sum(weights.values())
    exact = {kind: count * weight / total for kind, weight in weights.items() if weight}
    counts = {kind: int(share) for kind, share in exact.items()}
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[: count - sum(counts.values())]:
        counts[kind] += 1
    return {kind: number for kind, number in counts.items() if number}


def instead(config: TasksConfig, missing: int) -> dict[Kind, int]:
    """What is made of as many tasks as the catalog had no room for: calls that read and do not need each other."""
    shapes = [shape for shape in INDEPENDENT if config.shapes.get(shape)] or ["single"]
    share, more = divmod(missing, len(shapes))
    counts = {Kind(shape, False): share + (place < more) for place, shape in enumerate(shapes)}
    return {kind: number for kind, number in counts.items() if number}
