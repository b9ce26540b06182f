"""Task: a request in plain words, the calls that solve it, and how to check an answer."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from paraagent.trace import Change

Shape = Literal["single", "parallel", "chain", "fan-out", "fan-in", "mixed", "no-tool", "unsolvable", "open"]
"""How the calls of the reference hang together; `no-tool` and `unsolvable` have none, since none is needed or none
would do, and `open` is a person's request, of which nothing is known."""
Reach = Literal["service", "provider", "providers"]
Split = Literal["train", "validation", "test"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Slot(_Record):
    """One capability that the request needs."""

    text: str
    """What a searcher would ask for, in the request's own words."""
    tool: str
    """Name of the tool that it must find; empty where no tool can do it."""
    equivalents: tuple[str, ...] = ()
    """Other versions of that tool, which answer the same: each is as right as the tool itself."""


class ReferenceCall(_Record):
    """One node of the reference DAG."""

    id: str
    tool: str
    arguments: dict[str, Any]
    """Literals, and `{"$ref": "c1.items.0.id"}` for a value that an earlier call's result holds."""

    @property
    def references(self) -> dict[str, tuple[str, str]]:
        """Parameter -> (call id, dotted path) of every argument that refers to an earlier result."""
        found = {name: value["$ref"] for name, value in self.arguments.items() if _is_reference(value)}
        return {name: (text.partition(".")[0], text.partition(".")[2]) for name, text in found.items()}


class StateChange(_Record):
    """One thing that must stand so in the world when the episode ends, whichever calls brought it about."""

    call: str
    """Id of the reference call that brings it about, the last one where several do."""
    thing: Change


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
    """Number of calls: 1 for single, k for parallel-k and chain-k, 0 where none is to be made."""
    reach: Reach
    split: Split
    seed: int
    """Seed of the world in which the atoms hold."""
    slots: tuple[Slot, ...]
    calls: tuple[ReferenceCall, ...]
    atoms: tuple[Atom, ...]
    state: tuple[StateChange, ...] = ()
    """What a writing task must leave behind."""
    hard_edges: tuple[tuple[str, str], ...] = ()
    """(call id, call id): the second needs the first. Empty for independent calls."""
    soft_edges: tuple[tuple[str, str], ...] = ()
    """The transitive closure of `hard_edges`."""
    distractors: tuple[str, ...] = ()
    """What leads astray: for each slot the tool most like its target that the search shows too, empty where none is."""
    within: Split | None = None
    """The split whose services its searches see; all services where it is None."""
    difficulty: float = 0.0
    """0 … 1: depth, width, how alike the tools beside the targets are, and optional parameters that lead astray."""

    @classmethod
    def open(cls, request: str, seed: int) -> Task:
        """What a person asks for, in the world of this seed; there is nothing to check an answer against."""
        name = f"open-{hashlib.sha256(request.encode()).hexdigest()[:12]}"
        common: dict[str, Any] = {"slots": (), "calls": (), "atoms": (), "reach": "service", "split": "test"}
        return cls(task_id=name, request=request, shape="open", width=0, seed=seed, **common)

    @property
    def label(self) -> str:
        """The shape with the number of its calls: `chain-3`; plain where that is one or none."""
        return self.shape if self.width <= 1 else f"{self.shape}-{self.width}"

    @property
    def targets(self) -> tuple[str, ...]:
        """Distinct tool names of the reference solution, in order."""
        return tuple(dict.fromkeys(call.tool for call in self.calls))

    @property
    def layers(self) -> list[list[ReferenceCall]]:
        """The calls by the length of the longest way to them: those of one layer can run together."""
        level: dict[str, int] = {}
        for call in self.calls:
            before = [level[first] for first, second in self.hard_edges if second == call.id]
            level[call.id] = 1 + max(before, default=-1)
        return [
            [call for call in self.calls if level[call.id] == number]
            for number in range(1 + max(level.values(), default=-1))
        ]


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"$ref"} and isinstance(value["$ref"], str)
