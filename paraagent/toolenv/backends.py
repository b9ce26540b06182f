"""What answers calls, as `[env]` names it: opened once, shared by all episodes of a process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraagent.config import BackendName, EnvConfig
from paraagent.errors import UsageError
from paraagent.llm import LlmClient
from paraagent.toolenv.language import LanguageBackend
from paraagent.toolenv.recorded import Recordings, open_recordings
from paraagent.toolenv.simulator import Backend, GroundedSimulator, Simulator

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog


@dataclass(frozen=True)
class Backends:
    """The layers in their order. What all episodes share is here; the grounded one has a world an episode."""

    order: tuple[BackendName, ...] = ("grounded",)
    recorded: Recordings | None = None
    llm: Backend | None = None
    live: Backend | None = None
    """Real tools, asked before everything else."""

    @classmethod
    def of_live(cls, backend: Backend) -> Backends:
        """Real tools and nothing beside them."""
        return cls((), live=backend)

    @classmethod
    def open(cls, config: EnvConfig, cache: Path | None = None) -> Backends:
        """Read the recordings and prepare the client, whose answers are kept in the folder `cache`.

        Raises:
            UsageError: a recording cannot be read, or a backend lacks a setting.
        """
        order = tuple(config.backends)
        if "recorded" in order and not config.recordings:
            raise UsageError("The backend recorded has nothing to answer from: name files in env.recordings")
        if "llm" in order and not config.llm.model:
            raise UsageError("The backend llm has no model: set env.llm.model, and env.llm.base_url where it is served")
        recorded = open_recordings(config.recordings) if "recorded" in order else None
        llm = LanguageBackend(LlmClient(config.llm, cache)) if "llm" in order else None
        return cls(order, recorded, llm)

    def notes(self, config: EnvConfig, catalog: Catalog) -> list[str]:
        """Sentences for a person about recordings that answer nothing, though `config` names them."""
        if self.recorded is None:
            unused = "env.recordings names files, but nothing reads them: recorded is not among env.backends"
            return [unused] if config.recordings else []
        return [
            f"No row of {path} is about a tool of this catalog: `tool` is a name as `paraagent catalog search` shows it"
            for path in self.recorded.foreign(catalog.names())
        ]

    def begin(self, seed: int, issued: Iterable[Any] | None = None) -> Simulator:
        """The layers of one episode, over a new world."""
        grounded = GroundedSimulator(seed, issued)
        found: dict[BackendName, Backend | None] = {"recorded": self.recorded, "grounded": grounded, "llm": self.llm}
        layers = [self.live, *(found[name] for name in self.order)]
        return Simulator(grounded, [layer for layer in layers if layer is not None])
