"""From a catalog to the files of its search index. Same catalog, same bytes, whatever was reused on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import orjson

from paraagent.catalog.splits import method_family, split_of
from paraagent.catalog.store import Catalog
from paraagent.errors import RunError
from paraagent.files import write_json
from paraagent.progress import Progress, Quiet
from paraagent.retrieval.bm25 import Impacts, Ints, Postings, impacts, merge
from paraagent.retrieval.words import Terms, stop_words
from paraagent.task import Split

INDEX_VERSION = 3
META, NAMES, TERMS = "meta.json", "names.json", "terms.json"
TOOLS, SERVICES, POSTINGS, DIGESTS = "tools", "services", "postings", "digests"
COLUMNS = ("split", "family", "place", "provider", "service", "effect", "source")
"""One value a tool: split, family of versions, place of its service among all, and what a filter looks at."""
FILES = (
    *(f"{TOOLS}.{part}" for part in Impacts._fields),
    *(f"{SERVICES}.{part}" for part in Impacts._fields),
    *COLUMNS,
)
_WEIGHTS = {"name": 4, "title": 2, "service": 2, "description": 2, "provider": 1, "category": 1, "arguments": 1}
"""How much a word counts by where it stands. Descriptions of parameters and names of returned fields are left out:
they cost recall."""
_K1, _B = 3.0, 0.75
_SERVICE_K1, _SERVICE_B = 2.0, 1.0
_STEP = 4_096
_MOST = 65_535

_TEXTS = """
WITH texts AS (
    SELECT tools.name, title, service, description, provider, category, coalesce(words, '') AS arguments
    FROM tools LEFT JOIN (SELECT tool_id, string_agg(name, ' ' ORDER BY name) AS words FROM parameters GROUP BY tool_id)
        USING (tool_id))
"""
_LISTED = f"""
{_TEXTS}
SELECT name, tools.provider, tools.service, source_name, effect, source,
    md5_number_lower(concat_ws(chr(31), name, texts.title, texts.service, texts.description, texts.provider,
        texts.category, arguments))
FROM tools JOIN texts USING (name) ORDER BY name
"""
_READ = f"{_TEXTS} SELECT * FROM texts WHERE name IN (SELECT unnest(?::VARCHAR[])) ORDER BY name"


class _Known(NamedTuple):
    """What an earlier index knows of the texts of tools."""

    row_of: dict[int, int]
    """Digest of a text -> its row in the postings."""
    postings: Postings
    terms: list[str]


def build_index(catalog_path: Path, out: Path, progress: Progress | None = None, reuse: Path | None = None) -> int:
    """Index every tool of the catalog into `out`; returns the number of tools.

    Args:
        reuse: the index of an earlier catalog: texts that it knows are not read again.
    """
    progress = progress or Quiet()
    stop = stop_words()
    known = _known(reuse)
    with Catalog.open(catalog_path) as catalog:
        rows = catalog.rows(_LISTED)
        if not rows:
            raise RunError(
                f"The catalog at {catalog_path} holds no tools, so there is nothing to index: check its sources"
            )
        progress.start(len(rows), "tools")
        postings, terms = _postings(catalog, {row[0]: row[-1] for row in rows}, known, stop, progress)
        build_hash = catalog.build_hash
    columns, values = _columns(rows)
    services = merge(postings, columns["place"], len(values["place"]), len(terms))
    parts: dict[str, Postings | Impacts] = {
        POSTINGS: postings,
        TOOLS: impacts(postings, len(terms), tuple(_WEIGHTS.values()), _K1, _B),
        SERVICES: impacts(services, len(terms), (1,), _SERVICE_K1, _SERVICE_B),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        for piece, array in part._asdict().items():
            np.save(out / f"{name}.{piece}.npy", array)
    for name, array in columns.items():
        np.save(out / f"{name}.npy", array)
    np.save(out / DIGESTS, np.array([row[-1] for row in rows], dtype=np.uint64))
    (out / NAMES).write_bytes(orjson.dumps([row[0] for row in rows]))
    (out / TERMS).write_bytes(orjson.dumps(terms))
    meta = {"version": INDEX_VERSION, "tools": len(rows), "build_hash": build_hash, "stop": stop, "values": values}
    write_json(out / META, meta)
    return len(rows)


def _known(directory: Path | None) -> _Known:
    if directory is None:
        none = np.zeros(0, np.int32)
        return _Known({}, Postings(np.zeros(1, np.int64), none, none.astype(np.uint8), none.astype(np.uint16)), [])
    digests = np.load(directory / f"{DIGESTS}.npy", allow_pickle=False).tolist()
    pieces = (np.load(directory / f"{POSTINGS}.{piece}.npy", allow_pickle=False) for piece in Postings._fields)
    terms = orjson.loads((directory / TERMS).read_bytes())
    return _Known({digest: row for row, digest in enumerate(digests)}, Postings(*pieces), terms)


def _postings(
    catalog: Catalog, digests: dict[str, int], known: _Known, stop: list[str], progress: Progress
) -> tuple[Postings, list[str]]:
    """Every tool's bag, in the order of names, over the sorted list of all terms that occur."""
    fresh = [name for name, digest in digests.items() if digest not in known.row_of]
    texts = iter(catalog.rows(_READ, [fresh]) if fresh else ())
    split, vocabulary = Terms(stop), {term: number for number, term in enumerate(known.terms)}
    rows: list[npt.NDArray[Any]] = []
    for done, digest in enumerate(digests.values(), 1):
        row = known.row_of.get(digest)
        if row is None:
            rows.append(_bag(next(texts), split, vocabulary))
        else:
            part = slice(known.postings.ends[row], known.postings.ends[row + 1])
            rows.append(np.stack([column[part] for column in known.postings[1:]]).astype(np.int32))
        if done % _STEP == 0:
            progress.advance(_STEP)
    progress.advance(len(digests) % _STEP)
    return _canonical(rows, list(vocabulary))


def _bag(texts: tuple[str, ...], split: Terms, vocabulary: dict[str, int]) -> Ints:
    """(3, entries): terms, fields and counts of one tool."""
    entries: list[tuple[int, int, int]] = []
    for position, text in enumerate(texts):
        bag: dict[int, int] = {}
        for term in split(text):
            number = vocabulary.setdefault(term, len(vocabulary))
            bag[number] = bag.get(number, 0) + 1
        entries += [(number, position, min(count, _MOST)) for number, count in bag.items()]
    return np.array(entries, dtype=np.int32).reshape(-1, 3).T


def _canonical(rows: list[Ints], vocabulary: list[str]) -> tuple[Postings, list[str]]:
    """Number the terms that occur in the order of the alphabet, so that the files depend on the texts alone."""
    sizes = np.array([row.shape[1] for row in rows])
    given, fields, counts = np.concatenate(rows, axis=1)
    by_word = sorted(np.unique(given).tolist(), key=vocabulary.__getitem__)
    number_of = np.zeros(len(vocabulary), dtype=np.int32)
    number_of[by_word] = np.arange(len(by_word), dtype=np.int32)
    terms = number_of[given]
    order = np.lexsort((fields, terms, np.repeat(np.arange(len(sizes)), sizes)))
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    postings = Postings(ends, terms[order], fields[order].astype(np.uint8), counts[order].astype(np.uint16))
    return postings, [vocabulary[number] for number in by_word]


def _columns(rows: list[tuple[Any, ...]]) -> tuple[dict[str, npt.NDArray[Any]], dict[str, list[str]]]:
    """A code for every tool in every column, and the values that the codes stand for."""
    splits = get_args(Split)
    texts: dict[str, list[str]] = {
        "family": [method_family(provider, service, name) for _, provider, service, name, *_ in rows],
        "place": [f"{provider}/{service}" for _, provider, service, *_ in rows],
        "provider": [row[1] for row in rows],
        "service": [row[2] for row in rows],
        "effect": [row[4] for row in rows],
        "source": [row[5] for row in rows],
    }
    columns: dict[str, npt.NDArray[Any]] = {
        "split": np.array([splits.index(split_of(provider, service)) for _, provider, service, *_ in rows], np.uint8)
    }
    values: dict[str, list[str]] = {}
    for column, given in texts.items():
        values[column] = sorted(set(given))
        code = {value: number for number, value in enumerate(values[column])}
        columns[column] = np.array([code[value] for value in given], np.int32)
    del values["family"]
    return columns, values
