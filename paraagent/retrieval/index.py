"""ToolIndex: finds the tools for many capability slots in one call.

A tool is scored by BM25 over a bag of weighted fields, and lifted by the score of its *service*, a document that says
once what any of its tools says: "prayer times in Perak" is answered by a service about prayers, whatever its methods
are called. A slot of several sentences is a whole request: each sentence is also searched alone, and the rankings are
fused, so that the tools for a second need are not buried under those for the first. Versions of one method count once.

The files are plain arrays and JSON, mapped into memory, so that any number of processes share one copy.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import orjson

from paraagent.catalog.store import Catalog
from paraagent.errors import RunError
from paraagent.retrieval.bm25 import Floats, Impacts
from paraagent.retrieval.build import COLUMNS, FILES, INDEX_VERSION, META, NAMES, SERVICES, TERMS, TOOLS, build_index
from paraagent.retrieval.words import Terms
from paraagent.task import Split

__all__ = ["Filter", "Hit", "ToolIndex", "build_index"]

_SPLITS: tuple[Split, ...] = get_args(Split)
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_LIFT = 0.5
"""Weight of the service's score beside the tool's own."""
_REQUEST_LIFT = 1.0
"""The same for a whole request, whose many words say more of the field it is about."""
_STRONG = 1.5
"""A sentence counts in full while its best tool has at least 1 / 1.5 of the score of the best sentence's."""


class Hit(NamedTuple):
    """One tool found, with its score (comparable within a slot only)."""

    name: str
    score: float


class Filter(NamedTuple):
    """Keeps a search to some tools; None leaves a column open."""

    provider: str | None = None
    service: str | None = None
    effect: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class ToolIndex:
    """A loaded index; read-only, so one instance serves any number of episodes."""

    directory: Path
    build_hash: str
    """Of the catalog that was indexed; compare with `Catalog.build_hash`."""
    names: list[str]
    values: dict[str, list[str]]
    """What may stand in each column that a `Filter` looks at."""
    _terms: dict[str, int]
    _tools: Impacts
    _services: Impacts
    _columns: dict[str, npt.NDArray[Any]]
    _words: Terms
    _masks: dict[tuple[Split | None, Filter], npt.NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def load(cls, directory: str | Path, catalog: Catalog | None = None) -> Self:
        """Map the index into memory. Raises `RunError` where it is missing, damaged, or made from another catalog."""
        directory = Path(directory).resolve()
        try:
            meta = orjson.loads((directory / META).read_bytes())
            if meta["version"] != INDEX_VERSION:
                raise _other(directory)
            names, terms = (orjson.loads((directory / file).read_bytes()) for file in (NAMES, TERMS))
            mapped = {name: _map(directory / f"{name}.npy") for name in FILES}
        except FileNotFoundError as error:
            raise RunError(f"There is no search index at {directory}: run `paraagent catalog build`") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"The search index at {directory} is damaged: run `paraagent catalog build`") from error
        if catalog is not None and catalog.build_hash != meta["build_hash"]:
            raise _other(directory)
        return cls(
            directory,
            meta["build_hash"],
            names,
            meta["values"],
            {term: number for number, term in enumerate(terms)},
            Impacts(*(mapped[f"{TOOLS}.{part}"] for part in Impacts._fields)),
            Impacts(*(mapped[f"{SERVICES}.{part}"] for part in Impacts._fields)),
            {column: mapped[column] for column in COLUMNS},
            Terms(meta["stop"], asking=True),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolIndex.load, (self.directory,)

    def __len__(self) -> int:
        return len(self.names)

    def search(
        self, slots: Sequence[str], k: int, *, split: Split | None = None, where: Filter | None = None
    ) -> list[list[Hit]]:
        """The best `k` tools for each slot, best first, ties by name.

        A tool that shares no word with the slot, nor its service, is no hit, so there may be fewer than `k`.

        Args:
            slots: what a tool must do, in words, or whole requests.
            split: only services of that split.
            where: only tools with these values.
        """
        mask = self._mask(split, where or Filter())
        found = {slot: self._best(slot, k, mask) for slot in dict.fromkeys(slots)}
        return [found[slot] for slot in slots]

    def versions(self, name: str) -> list[str]:
        """The other tools that are the same method in another version of its service: a search shows one of all."""
        number = bisect_left(self.names, name)
        if self.names[number : number + 1] != [name]:
            return []
        family = self._columns["family"]
        return [self.names[other] for other in np.flatnonzero(family == family[number]) if other != number]

    def _mask(self, split: Split | None, where: Filter) -> npt.NDArray[np.bool_] | None:
        """Which tools may be found; None for all."""
        wanted = {column: value for column, value in where._asdict().items() if value is not None}
        if split is None and not wanted:
            return None
        key = (split, where)
        if key not in self._masks:
            mask = np.ones(len(self.names), dtype=np.bool_)
            if split is not None:
                mask &= self._columns["split"] == _SPLITS.index(split)
            for column, value in wanted.items():
                known = self.values[column]
                mask &= self._columns[column] == (known.index(value) if value in known else len(known))
            self._masks[key] = mask
        return self._masks[key]

    def _best(self, slot: str, k: int, mask: npt.NDArray[np.bool_] | None) -> list[Hit]:
        scores = self._scores(slot)
        if scores is None or k < 1:
            return []
        if mask is not None:
            scores = np.where(mask, scores, np.float32(0))
        hits: list[Hit] = []
        families: set[int] = set()
        for number in _descending(scores, 2 * k):
            family = int(self._columns["family"][number])
            if family not in families:
                families.add(family)
                hits.append(Hit(self.names[number], float(scores[number])))
                if len(hits) == k:
                    break
        return hits

    def _scores(self, slot: str) -> Floats | None:
        """(tools,), or None where no word of the slot is known."""
        sentences = [terms for text in _SENTENCE.split(slot) if (terms := self._known(text))]
        if len(sentences) < 2:
            return self._score(sentences[0], _LIFT) if sentences else None
        whole = self._score(self._known(slot), _REQUEST_LIFT)
        parts = [self._score(terms, _LIFT) for terms in sentences]
        tops = np.array([part.max() for part in parts], dtype=np.float32)
        fused = np.zeros_like(whole)
        for part, top in zip(parts, tops, strict=True):
            np.maximum(fused, part * (min(1.0, _STRONG * top / tops.max()) / top), out=fused)
        fused += whole / whole.max()
        return fused

    def _known(self, text: str) -> list[int]:
        return [self._terms[term] for term in dict.fromkeys(self._words(text)) if term in self._terms]

    def _score(self, terms: list[int], lift: float) -> Floats:
        of_service = np.zeros(len(self.values["place"]), dtype=np.float32)
        self._services.add(terms, of_service)
        scores: Floats = (of_service * np.float32(lift))[self._columns["place"]]
        self._tools.add(terms, scores)
        return scores


def _descending(scores: Floats, at_once: int) -> Iterator[int]:
    """Tools with a score above 0, best first, ties by number; sorts no more than it has to."""
    given = 0
    while given < len(scores):
        size = min(len(scores), at_once)
        least = np.partition(scores, -size)[-size]
        chosen = np.flatnonzero(scores >= least if least > 0 else scores)
        order = chosen[np.argsort(-scores[chosen], kind="stable")]
        yield from order[given:].tolist()
        if least <= 0:
            return
        given, at_once = len(order), 4 * len(order)


def _map(path: Path) -> npt.NDArray[Any]:
    """The array in a file, read as it is used; as a plain array, since a `memmap` is slow to take many parts of."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _other(directory: Path) -> RunError:
    return RunError(f"The search index at {directory} was made from another catalog: run `paraagent catalog build`")
