"""What a source would bring, before anything is built from it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from paraagent.catalog.chunks import chunks, converter, documents
from paraagent.catalog.crawl import Archive
from paraagent.catalog.normalize import Normalizer
from paraagent.catalog.operation import Rejected
from paraagent.catalog.workers import row_of
from paraagent.config import CatalogConfig


class Trial(NamedTuple):
    usable: int
    rejected: Counter[str]
    """How many by reason."""
    example: str
    """The first rejection in words; empty where there is none."""


def trial(archive: Archive, config: CatalogConfig) -> Trial:
    """Read and convert everything, and keep nothing. Raises RunError where an archive cannot be read."""
    normalizer = Normalizer(config)
    usable, rejected, example = 0, Counter[str](), ""
    for chunk in chunks([archive], config.exclude):
        convert = converter(chunk.origin.kind).convert
        for unit, broken in documents(chunk):
            rows = [Rejected(name, "", "", "unreadable", error) for name, error in broken]
            for item in (*rows, *convert(unit)):
                row = item if isinstance(item, Rejected) else row_of(normalizer, *item)
                if isinstance(row, Rejected):
                    rejected[row.reason] += 1
                    example = example or f"{row.source_name}: {row.reason}, {row.detail}"
                else:
                    usable += 1
    return Trial(usable, rejected, example)
