"""How many tasks of each kind a split is to have, by the shares of the profile."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from paraagent.config import ShapeName, TasksConfig

_WIDTHS: dict[ShapeName, int] = {"single": 1, "parallel-2": 2, "parallel-3": 3}
LINKED: tuple[ShapeName, ...] = ("chain-2", "chain-3", "fan-out", "fan-in", "mixed")
"""Shapes whose calls hang together."""


class Kind(NamedTuple):
    """What of a task is asked for by number."""

    shape: ShapeName
    writes: bool


def demand_of(config: TasksConfig, count: int) -> dict[Kind, int]:
    """How many tasks of each kind, shares by largest remainder."""
    weights: dict[Kind, float] = {}
    for shape, weight in sorted(config.shapes.items()):
        writing = config.writing if shape in ("single", "chain-2") else 0.0
        weights[Kind(shape, False)] = weight * (1 - writing)
        weights[Kind(shape, True)] = weight * writing
    total = sum(weights.values())
    exact = {kind: count * weight / total for kind, weight in weights.items() if weight}
    counts = {kind: int(share) for kind, share in exact.items()}
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[: count - sum(counts.values())]:
        counts[kind] += 1
    return counts


def widths_of(shapes: Mapping[ShapeName, float], demand: Mapping[Kind, int]) -> list[int]:
    """The width of each task of independent calls, wide ones first since they are hardest to fill.

    What the catalog had no room for goes to these shapes in turn, to single calls where there are none.
    """
    plain = {shape: width for shape, width in _WIDTHS.items() if shapes.get(shape)}
    widths = [
        _WIDTHS[kind.shape] for kind, n in demand.items() if kind.shape in plain and not kind.writes for _ in range(n)
    ]
    left = sum(demand.values()) - len(widths)
    widths += islice(cycle(plain.values() or [1]), left)
    return sorted(widths, reverse=True)
