"""Reference calls played in a world of their own, as an agent that makes no mistake would see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.task import ReferenceCall, StateChange, Task
from paraagent.tasks.facts import value_at
from paraagent.tasks.rejection import RejectionError
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator


class Played(NamedTuple):
    """What came of the calls."""

    results: dict[str, Any]
    """As far as they are shown, by call id."""
    state: tuple[StateChange, ...]
    """What the calls left behind."""


def play(calls: Sequence[ReferenceCall], tools: Mapping[str, ToolInterface], seed: int, max_chars: int) -> Played:
    """Make the calls; their order allows their references.

    Raises:
        RejectionError: a call fails, or an earlier result does not hold what it refers to.
    """
    simulator = GroundedSimulator(seed)
    results: dict[str, Any] = {}
    left: dict[int, StateChange] = {}
    for call in calls:
        arguments = resolved(call, results)
        if check_arguments(tools[call.tool], arguments) is not None:
            raise RejectionError("arguments do not validate")
        response = simulator.call(tools[call.tool], arguments)
        if response.error is not None:
            raise RejectionError("call fails")
        results[call.id] = fit_json(response.result, max_chars)
        if tools[call.tool].effect != "read":
            for place, change in enumerate(simulator.world.changes()):
                if place not in left or left[place].thing != change:
                    left[place] = StateChange(call=call.id, thing=change)
    return Played(results, tuple(left.values()))


def does(task: Task, played: Played) -> bool:
    """Whether what came of some calls is what the task asks for."""
    stated = all(_read(played.results, atom.call, atom.path) == atom.value for atom in task.atoms)
    return stated and all(any(each.thing.holds(wanted.thing) for each in played.state) for wanted in task.state)


def resolved(call: ReferenceCall, results: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with the values that they refer to. Raises `RejectionError` where one is not there."""
    arguments = dict(call.arguments)
    for name, (source, path) in call.references.items():
        try:
            arguments[name] = value_at(results[source], path)
        except (LookupError, ValueError):
            raise RejectionError("an earlier result lacks what a call needs") from None
    return arguments


def _read(results: Mapping[str, Any], call: str, path: str) -> Any:
    try:
        return value_at(results[call], path)
    except (LookupError, ValueError):
        return None
