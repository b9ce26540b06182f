"""Task: a request in plain words, the calls that solve it, and how to check an answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Shape = Literal["single", "parallel"]
Reach = Literal["service", "provider", "providers"]
Split = Literal["train", "validation", "test"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Slot(_Record):
    """One capability that the request needs."""

    text: str
    """What a searcher would ask for, in the request's own words."""
    tool: str
    """Name of the tool that it must find."""


class ReferenceCall(_Record):
    """One node of the reference DAG."""

    id: str
    tool: str
    arguments: dict[str, Any]
    """Literals."""


class Atom(_Record):
    """One fact that a right answer states."""

    call: str
    """Id of the reference call whose result holds it."""
    path: str
    """Dotted path into that result; list positions as numbers."""
    value: str | int | float | bool


class Task(_Record):
    """One verifiable task. A task belongs to one catalog and one world: `seed` decides every answer."""

    task_id: str
    request: str
    shape: Shape
    width: int
    """Number of independent calls: 1 for single, k for parallel-k."""
    reach: Reach
    split: Split
    seed: int
    """Seed of the world in which the atoms hold."""
    slots: tuple[Slot, ...]
    calls: tuple[ReferenceCall, ...]
    atoms: tuple[Atom, ...]
    hard_edges: tuple[tuple[str, str], ...] = ()
    """(call id, call id): the second needs the first. Empty for independent calls."""
    soft_edges: tuple[tuple[str, str], ...] = ()
    """The transitive closure of `hard_edges`."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Distinct tool names of the reference solution, in order."""
        return tuple(dict.fromkeys(call.tool for call in self.calls))
