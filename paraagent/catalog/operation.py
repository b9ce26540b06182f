"""Operation: what a source file says about one call, before it is judged, named and rendered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paraagent.catalog.interface import Effect
from paraagent.catalog.schemas import Reader, Shape

TOOL_TEXT = 1_200
"""Most characters of a tool's description."""
VALUE_TEXT = 240
"""Most characters of the description of a parameter or field."""
TITLE_TEXT = 120


class Origin(NamedTuple):
    """Where documents come from."""

    source: str
    """The spec without its version."""
    version: str
    kind: str
    """Which converter reads it: a module of `paraagent.catalog.sources`."""


@dataclass(slots=True)
class Operation:
    source_name: str
    provider: str
    service: str
    category: str
    title: str
    description: str
    """Clean text that the source really has; empty where it has none."""
    words: str
    """What the name is made from, before the provider and service are put in front."""
    method: str
    path: str
    deprecated: bool
    licence: str
    arguments: Shape
    """An object; its members are the parameters."""
    result: Shape | None
    effect: Effect | None = None
    """Where the source says it; else method and words decide."""


class Rejected(NamedTuple):
    """An operation or a whole document that cannot be taken in."""

    source_name: str
    provider: str
    service: str
    reason: str
    detail: str


class Converter(Protocol):
    """A module of `sources`."""

    def units(self, names: Sequence[str]) -> list[list[str]]:
        """Members of an archive that are documents, grouped by what is decided on together."""
        ...

    def convert(self, unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
        """The operations of one unit's (name, document) pairs."""
        ...


class OwnSource(Protocol):
    """A module of `sources` that also finds what a person's own spec names."""

    def label(self, name: str) -> str:
        """The name without its place and without secrets: what stands in the column `source`."""
        ...

    def located(self, name: str, downloads: Path, refresh: bool) -> Path:
        """Where it lies; what comes from outside is read once into `downloads`, and again to `refresh` it.

        Raises:
            UsageError: it names nothing that can be read.
            NetworkError: it does not answer.
        """
        ...

    def read(self, path: Path) -> Iterator[list[tuple[str, bytes]]]:
        """Its documents (name, bytes), those together that are decided on together."""
        ...
