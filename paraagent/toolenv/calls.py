"""The way of one call: tool known? -> arguments valid? -> fault? -> simulator -> latency.

What is wrong with a call is told to the model. State changes when a call starts, and calls start in their order; a
call that fails by chance, or is too slow, has changed nothing.
"""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paraagent.config import EnvConfig
from paraagent.paraact.executor import Outcome, ToolError
from paraagent.paraact.lifecycle import Identity
from paraagent.paraact.protocol import call_identity, fold
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.faults import draw_fault
from paraagent.toolenv.latency import draw_latency
from paraagent.toolenv.simulator import Response, Simulator
from paraagent.trace import ErrorInfo

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog

_NEAREST = 3
"""Names offered for one that does not exist."""


class CallPath:
    """Answers the calls of one episode."""

    def __init__(self, catalog: Catalog, config: EnvConfig, seed: int, simulator: Simulator) -> None:
        """`seed` is the episode's: faults and latencies follow from it."""
        self.simulator = simulator
        self._catalog, self._config, self._seed = catalog, config, seed
        self._by_chance = config.fault_rate > 0 or config.latency != "off"
        self._discovered: dict[str, str] = {}
        self._attempts: Counter[Identity] = Counter()

    def discover(self, names: Iterable[str]) -> None:
        """Note the tools that a visible search result showed."""
        self._discovered.update((fold(name), name) for name in names)

    @property
    def discovered(self) -> list[str]:
        """Names of the tools that a search has shown, in that order."""
        return list(self._discovered.values())

    def knows(self, name: str) -> bool:
        """Whether a search has shown this tool."""
        return fold(name) in self._discovered

    async def run(self, name: str, arguments: dict[str, Any]) -> Outcome:
        """What becomes of a call.

        Raises:
            ToolError: there is no such tool.
            ParaAgentError: a backend cannot work until a person mends something.
        """
        tool = self._tool(name)
        if fault := check_arguments(tool, arguments):
            return Outcome(fault, None, "")
        if not self._by_chance:
            return _outcome(await self.simulator.call(tool, arguments))
        identity = call_identity(tool.name, arguments)
        attempt = self._attempts[identity]
        self._attempts[identity] += 1
        seconds = draw_latency(self._config, self._seed, identity, attempt)
        chance = draw_fault(self._config, self._seed, identity, attempt) or self._too_slow(seconds)
        outcome = Outcome(chance, None, "", injected=True)
        if chance is None:
            outcome = _outcome(await self.simulator.call(tool, arguments))
        if seconds:
            await asyncio.sleep(min(seconds, self._config.call_timeout))
            outcome = outcome._replace(seconds=min(seconds, self._config.call_timeout))
        return outcome

    def _too_slow(self, seconds: float) -> ErrorInfo | None:
        limit = self._config.call_timeout
        if seconds <= limit:
            return None
        return ErrorInfo(type="TimeoutError", msg=f"no answer came within {limit:g} seconds: call again")

    def _tool(self, name: str) -> ToolInterface:
        tool = self._catalog.get(self._discovered.get(fold(name), name.strip()))
        if tool is None:
            near = difflib.get_close_matches(fold(name)[:80], list(self._discovered), n=_NEAREST)
            *others, last = [self._discovered[each] for each in near] or [""]
            names = f"{', '.join(others)} or {last}" if others else last
            hint = f"did you mean {names}?" if near else "call a tool that a search returned"
            raise ToolError("ToolNotFoundError", f"there is no tool of this name; {hint}")
        return tool


def _outcome(response: Response) -> Outcome:
    measured = response.seconds is not None
    return Outcome(
        response.error,
        response.result,
        response.backend,
        seconds=response.seconds or 0.0,
        measured=measured,
        attempts=response.attempts,
    )
