"""The calls of one turn, as they are carried out together: what each needs first, and why one is not run.

A call may take arguments from another one of the turn where `[env] references` allows it. The strict controller runs
only what a search has shown and the plan has ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paraagent.config import EnvConfig
from paraagent.paraact.executor import Outcome, Outcomes, ToolError
from paraagent.paraact.lifecycle import Phase, refused
from paraagent.paraact.protocol import CallBlock, call_identity, fold
from paraagent.paraact.references import (
    DanglingReferenceError,
    Reference,
    filled,
    levels,
    locate,
    look_up,
    written,
)
from paraagent.toolenv.calls import CallPath

if TYPE_CHECKING:
    from paraagent.toolenv.env import Watcher


class Together:
    """One turn's calls; `run` carries out the one at a place."""

    def __init__(
        self, calls: Sequence[CallBlock], path: CallPath, config: EnvConfig, phase: Phase, watcher: Watcher | None
    ) -> None:
        self.calls = list(calls)
        """As they are sent: references give way to values once these are known."""
        self.references: list[dict[str, str]] = [{} for _ in calls]
        """Those that gave way, by path of the argument."""
        self.ended: Outcomes = {}
        """What became of the calls that were sent and have ended."""
        self._path, self._watcher = path, watcher
        self._written = [written(call.arguments) if config.references else {} for call in calls]
        self._refusals = [""] * len(calls)
        self._from = [self._locate(place) for place in range(len(calls))]
        self.needs = [{reference.call for reference in each.values()} for each in self._from]
        """The places of the calls that each must wait for."""
        self._break_circles()
        if config.controller == "strict":
            self._hold_back(phase)

    async def run(self, place: int, ended: Outcomes) -> Outcome:
        """Carry out a call once those that it needs have ended.

        Raises:
            ToolError: it is not run, or there is no such tool.
            ParaAgentError: a backend cannot work until a person mends something.
        """
        if self._refusals[place]:
            raise ToolError("InvalidRequestError", self._refusals[place])
        self._fill(place, ended)
        call = self.calls[place]
        if self._watcher:
            self._watcher.begun(place, call)
        try:
            outcome = await self._path.run(call.name, call.arguments)
        except ToolError as error:
            outcome = Outcome(error.info, None, "")
        self.ended[place] = outcome
        if self._watcher:
            self._watcher.ended(place, call, outcome)
        return outcome

    def _locate(self, place: int) -> dict[str, Reference]:
        try:
            names = [call.name for call in self.calls]
            return {where: locate(text, names) for where, text in self._written[place].items()}
        except DanglingReferenceError as error:
            self._refusals[place] = str(error)
            return {}

    def _break_circles(self) -> None:
        """A call that waits for itself is not run, and neither is what waits for it."""
        for place, level in enumerate(levels(self.needs)):
            if level is None:
                self._refusals[place] = "its references lead in a circle: send what it needs in an earlier turn"
        self.needs = [set() if self._refusals[place] else needed for place, needed in enumerate(self.needs)]

    def _hold_back(self, phase: Phase) -> None:
        named = [
            (fold(call.name), call_identity(call.name, call.arguments), frozenset(needed))
            for call, needed in zip(self.calls, self.needs, strict=True)
        ]
        for place, outside in enumerate(refused(phase, named)):
            if not self._path.knows(self.calls[place].name):
                self._refusals[place] = "no search has returned this tool yet: search for it first"
            elif outside and not self._refusals[place]:
                self._refusals[place] = (
                    "the plan does not have this call ready: call what it depends on first, or plan it"
                )

    def _fill(self, place: int, ended: Outcomes) -> None:
        """Put values in the place of references."""
        values = {}
        for where, reference in self._from[place].items():
            text, outcome = self._written[place][where], ended[reference.call]
            if outcome.error is not None:
                raise ToolError("InvalidRequestError", f"not run, since {text[:80]} refers to a call that failed")
            try:
                values[where] = look_up(outcome.result, reference.path)
            except DanglingReferenceError as error:
                raise ToolError("InvalidRequestError", f"not run: {error}, which {text[:80]} refers to") from None
        call = self.calls[place]
        self.calls[place] = replace(call, arguments=filled(call.arguments, values)) if values else call
        self.references[place] = dict(self._written[place]) if values else {}
