"""Reference calls played in a world of their own, as an agent that makes no mistake would see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.task import ReferenceCall
from paraagent.tasks.facts import value_at
from paraagent.tasks.rejection import RejectionError
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator


def play(
    calls: Sequence[ReferenceCall], tools: Mapping[str, ToolInterface], seed: int, max_chars: int
) -> dict[str, Any]:
    """The result of each call, as far as it is shown, by call id; the order of the calls allows their references.

    Raises:
        RejectionError: a call fails, or an earlier result does not hold what it refers to.
    """
    simulator = GroundedSimulator(seed)
    results: dict[str, Any] = {}
    for call in calls:
        arguments = resolved(call, results)
        if check_arguments(tools[call.tool], arguments) is not None:
            raise RejectionError("arguments do not validate")
        response = simulator.call(tools[call.tool], arguments)
        if response.error is not None:
            raise RejectionError("call fails")
        results[call.id] = fit_json(response.result, max_chars)
    return results


def resolved(call: ReferenceCall, results: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with the values that they refer to. Raises `RejectionError` where one is not there."""
    arguments = dict(call.arguments)
    for name, (source, path) in call.references.items():
        try:
            arguments[name] = value_at(results[source], path)
        except (LookupError, ValueError):
            raise RejectionError("an earlier result lacks what a call needs") from None
    return arguments
