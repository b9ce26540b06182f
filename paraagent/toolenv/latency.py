"""How long a simulated call takes. It only passes time: what a call changes is changed before anybody waits.

A tool is as fast in every episode; what a single call takes follows from the episode's seed, the call's identity and
which attempt of it this is.
"""

from __future__ import annotations

from math import exp

from paraagent.config import EnvConfig
from paraagent.paraact.lifecycle import Identity
from paraagent.seeds import rng

_SLOW_SHARE = 0.1
"""Share of the tools that are slow where few are."""


def draw_latency(config: EnvConfig, seed: int, identity: Identity, attempt: int) -> float:
    """Seconds that this attempt (0 is the first) of a call takes."""
    if config.latency == "off":
        return 0.0
    usual, (name, arguments) = config.latency_seconds, identity
    if config.latency == "fixed":
        return usual
    tool = rng(0, "latency", name)
    if config.latency == "few-slow":
        return usual * (config.latency_slow if tool.random() < _SLOW_SHARE else 1.0)
    call = rng(seed, "latency", name, arguments.decode(), attempt)
    return usual * exp(config.latency_spread * (tool.gauss(0.0, 1.0) + call.gauss(0.0, 1.0)))
