"""Pack: the tools once more, one compressed row each, for episodes that look up a few tools among tens of thousands.

DuckDB stores columns in blocks, so that one row costs it milliseconds; here it is one read of some hundred bytes. The
pack lies beside its catalog and only saves time: without it, or with one of another catalog, the database is asked.

Layout: compressed rows in the order of names, the names as JSON, the rows' ends as 64-bit integers, a trailer.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import orjson

from paraagent.files import write_atomic

SUFFIX = ".pack"
_TRAILER = struct.Struct("<8sQQQ")
_MAGIC = b"PAPACK01"
_LEVEL = 1


def pack_path(catalog: Path) -> Path:
    return catalog.with_suffix(SUFFIX)


def pack_rows(rows: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Compress (name, JSON) for `write_pack`."""
    for name, row in rows:
        yield name, zlib.compress(row, _LEVEL)


def write_pack(catalog: Path, rows: Iterable[tuple[str, bytes]]) -> Path:
    """Write the pack of a catalog. `rows` are packed, sorted by name; equal rows give equal bytes."""
    parts: list[bytes] = []
    names: list[str] = []
    ends = array("Q")
    size = 0
    for name, packed in rows:
        size += len(packed)
        parts.append(packed)
        names.append(name)
        ends.append(size)
    listed = orjson.dumps(names)
    trailer = _TRAILER.pack(_MAGIC, size, size + len(listed), catalog.stat().st_size)
    path = pack_path(catalog)
    write_atomic(path, b"".join([*parts, listed, ends.tobytes(), trailer]))
    return path


class Pack:
    """An open pack, mapped into memory; processes share its pages."""

    def __init__(self, data: mmap.mmap, names_at: int, ends_at: int) -> None:
        self._data = data
        self._names_at = names_at
        self._ends_at = ends_at

    @classmethod
    def find(cls, catalog: Path) -> Pack | None:
        """The pack of this catalog, or None where there is none that belongs to it."""
        path = pack_path(catalog)
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        if len(data) < _TRAILER.size:
            return None
        magic, names_at, ends_at, catalog_size = _TRAILER.unpack(data[-_TRAILER.size :])
        if magic != _MAGIC or catalog_size != catalog.stat().st_size:
            return None
        return cls(data, names_at, ends_at)

    @cached_property
    def _places(self) -> dict[str, int]:
        names = orjson.loads(self._data[self._names_at : self._ends_at])
        return {name: place for place, name in enumerate(names)}

    @cached_property
    def _ends(self) -> array[int]:
        ends = array("Q")
        ends.frombytes(self._data[self._ends_at : len(self._data) - _TRAILER.size])
        return ends

    def get(self, name: str) -> bytes | None:
        """The JSON of a tool's row, or None where there is no such tool."""
        place = self._places.get(name)
        return None if place is None else zlib.decompress(self._slice(place))

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Every name with its packed row, sorted by name."""
        for name, place in self._places.items():
            yield name, self._slice(place)

    def _slice(self, place: int) -> bytes:
        return self._data[self._ends[place - 1] if place else 0 : self._ends[place]]

    def close(self) -> None:
        self._data.close()
