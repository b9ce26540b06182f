"""ToolIndex: finds the tools for many capability slots in one call, by BM25 over one weighted bag of words a tool.

A name counts thrice and a title twice, because slots are short and name the action; parameter names are in the bag,
because a slot says what one has in hand. The files are plain arrays and JSON, mapped into memory, so that any number of
processes share one copy; the index carries the build hash of its catalog, so that a stale one is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
import orjson

from paraagent.catalog.splits import split_of
from paraagent.catalog.store import Catalog
from paraagent.errors import RunError
from paraagent.files import write_json
from paraagent.progress import Progress, Quiet
from paraagent.retrieval.words import Terms
from paraagent.task import Split

if TYPE_CHECKING:
    import bm25s

INDEX_VERSION = 1
_META = "meta.json"
_NAMES = "names.json"
_SPLITS = "splits.npy"
_SPLIT_NAMES: tuple[Split, ...] = get_args(Split)
_WEIGHTS = {"name": 3, "title": 2, "service": 1, "provider": 1, "category": 1, "description": 1, "arguments": 1}
_K1, _B = 1.2, 0.6
_STEP = 4_096

_TEXTS = """
SELECT tools.name, title, service, provider, category, description, coalesce(words, '') AS arguments
FROM tools LEFT JOIN (SELECT tool_id, string_agg(name, ' ' ORDER BY name) AS words FROM parameters GROUP BY tool_id)
    USING (tool_id)
ORDER BY tools.name
"""


class Hit(NamedTuple):
    """One tool found, with its score (comparable within a slot only)."""

    name: str
    score: float


def build_index(catalog_path: Path, out: Path, progress: Progress | None = None) -> int:
    """Index every tool of the catalog into `out`; returns the number of tools. Same catalog, same bytes."""
    import bm25s

    progress = progress or Quiet()
    with Catalog.open(catalog_path) as catalog:
        rows = catalog.relation(_TEXTS).fetchall()
        build_hash = catalog.build_hash
    if not rows:
        raise RunError(f"The catalog at {catalog_path} holds no tools, so there is nothing to index: check its sources")
    progress.start(len(rows), "tools")
    terms, vocabulary = Terms(), dict[str, int]()
    bags: list[list[int]] = []
    splits = np.zeros(len(rows), dtype=np.uint8)
    for number, row in enumerate(rows):
        bag: list[int] = []
        for text, weight in zip(row, _WEIGHTS.values(), strict=True):
            bag += [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] * weight
        bags.append(bag)
        splits[number] = _SPLIT_NAMES.index(split_of(provider=row[3], service=row[2]))
        if number % _STEP == _STEP - 1:
            progress.advance(_STEP)
    progress.advance(len(rows) % _STEP)
    engine = bm25s.BM25(k1=_K1, b=_B, method="lucene")
    engine.index((bags, vocabulary), show_progress=False)
    out.mkdir(parents=True, exist_ok=True)
    engine.save(str(out), show_progress=False)
    np.save(out / _SPLITS, splits)
    (out / _NAMES).write_bytes(orjson.dumps([row[0] for row in rows]))
    write_json(out / _META, {"version": INDEX_VERSION, "tools": len(rows), "build_hash": build_hash})
    return len(rows)


@dataclass(frozen=True)
class ToolIndex:
    """A loaded index; read-only, so one instance serves any number of episodes."""

    directory: Path
    build_hash: str
    """Of the catalog that was indexed; compare with `Catalog.build_hash`."""
    names: list[str]
    _engine: bm25s.BM25
    _masks: dict[Split, npt.NDArray[np.bool_]]
    _terms: Terms

    @classmethod
    def load(cls, directory: str | Path, catalog: Catalog | None = None) -> Self:
        """Map the index into memory. Raises `RunError` where it is missing, damaged, or made from another catalog."""
        import bm25s

        directory = Path(directory).resolve()
        try:
            meta = orjson.loads((directory / _META).read_bytes())
            names = orjson.loads((directory / _NAMES).read_bytes())
            splits = np.load(directory / _SPLITS, allow_pickle=False)
            engine = bm25s.BM25.load(str(directory), mmap=True, show_progress=False)
        except FileNotFoundError as error:
            raise RunError(f"There is no search index at {directory}: run `paraagent catalog build`") from error
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"The search index at {directory} is damaged: run `paraagent catalog build`") from error
        if meta["version"] != INDEX_VERSION or (catalog is not None and catalog.build_hash != meta["build_hash"]):
            raise RunError(
                f"The search index at {directory} was made from another catalog: run `paraagent catalog build`"
            )
        masks: dict[Split, Any] = {name: splits == number for number, name in enumerate(_SPLIT_NAMES)}
        return cls(directory, meta["build_hash"], names, engine, masks, Terms())

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolIndex.load, (self.directory,)

    def __len__(self) -> int:
        return len(self.names)

    def search(self, slots: Sequence[str], k: int, *, split: Split | None = None) -> list[list[Hit]]:
        """The best `k` tools for each slot, best first, ties by name; `split` keeps to services of that split.

        A tool that shares no word with the slot is no hit, so there may be fewer than `k`.
        """
        mask = None if split is None else self._masks[split]
        found = {slot: self._best(slot, k, mask) for slot in dict.fromkeys(slots)}
        return [found[slot] for slot in slots]

    def _best(self, slot: str, k: int, mask: npt.NDArray[np.bool_] | None) -> list[Hit]:
        ids = self._engine.get_tokens_ids(list(dict.fromkeys(self._terms(slot))))
        if not ids or k < 1:
            return []
        scores = self._engine.get_scores_from_ids(ids, weight_mask=mask)
        candidates = np.flatnonzero(scores)
        if len(candidates) > k:
            values = scores[candidates]
            candidates = candidates[values >= np.partition(values, -k)[-k]]
        order = np.argsort(-scores[candidates], kind="stable")[:k]
        return [Hit(self.names[number], float(scores[number])) for number in candidates[order].tolist()]
