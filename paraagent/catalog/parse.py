"""Bytes of a document into JSON values: fast for the archives, strict for what people bring.

A document of a person's own that says one key twice is left out: which of the two counts would be a guess.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from typing import Any

import orjson

from paraagent.catalog.yaml import load

MAX_DOCUMENT = 256_000_000
"""Bytes of one document, unpacked."""
YAML_NAMES = (".yaml", ".yml")


class UnreadableError(ValueError):
    """Why a document cannot be read, in words for the quarantine."""


def unpack(data: bytes) -> bytes:
    """A gzipped document, never more of it than a document may have."""
    inflater = zlib.decompressobj(31)
    try:
        found = inflater.decompress(data, MAX_DOCUMENT)
    except zlib.error as error:
        raise UnreadableError(f"damaged: {error}") from error
    if inflater.unconsumed_tail:
        raise UnreadableError(f"larger than {MAX_DOCUMENT // 1_000_000} MB when unpacked")
    if not inflater.eof:
        raise UnreadableError("damaged: it ends too early")
    return found


def parse(name: str, data: bytes, strict: bool) -> Any:
    """The value of a JSON document, or of a YAML one by its name. Raises UnreadableError."""
    try:
        if name.endswith(".gz"):
            data = unpack(data)
        if name.lower().endswith(YAML_NAMES):
            return load(data)
        value = orjson.loads(data)
        if strict:
            json.loads(data, object_pairs_hook=_once)
        return value
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise UnreadableError(f"the key {twice[:60]!r} stands twice in one object")
    return found
