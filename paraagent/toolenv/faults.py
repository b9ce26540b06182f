"""Faults by chance: a call that is right fails now and then, as calls over a network do (method.md, ToolEnv).

Whether one does follows from the episode's seed, the call's identity and which attempt of it this is. A replay fails
where the first run failed, and a retry has a chance of its own.
"""

from __future__ import annotations

from paraagent.config import EnvConfig, FaultName
from paraagent.paraact.lifecycle import Identity
from paraagent.seeds import rng
from paraagent.trace import ErrorInfo

_SAID: dict[FaultName, str] = {
    "RateLimitError": "too many requests: wait a moment and call again",
    "AuthenticationError": "the credentials were not accepted",
    "NetworkError": "the connection was lost: call again",
    "NotFoundError": "what the call names was not found",
    "ServiceUnavailable": "the service is not available now: call again later",
    "PermissionError": "this is not allowed here",
    "TimeoutError": "no answer came in time: call again",
    "StateConflictError": "something else is changing the same thing",
    "ToolExecutionError": "the tool failed while it ran",
}


def draw_fault(config: EnvConfig, seed: int, identity: Identity, attempt: int) -> ErrorInfo | None:
    """The fault that befalls this attempt (0 is the first) of a call, or None, which is usual."""
    if not config.fault_rate:
        return None
    name, arguments = identity
    choices = rng(seed, "fault", name, arguments.decode(), attempt)
    if choices.random() >= config.fault_rate:
        return None
    [kind] = choices.choices(list(config.fault_weights), list(config.fault_weights.values()))
    return ErrorInfo(type=kind, msg=_SAID[kind])
