"""The catalog as everyone else reads it: one DuckDB file, opened read-only, that gives `ToolInterface`s.

Opening costs some milliseconds and little memory, so every process opens its own; a pickled `Catalog` is its path.
"""

from __future__ import annotations

import hashlib
import heapq
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb
import orjson

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.pack import Pack, pack_rows, write_pack
from paraagent.errors import RunError

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = tuple(ToolInterface.__dataclass_fields__)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tools"
_PARAMETERS, _RETURNS = _COLUMNS.index("parameters"), _COLUMNS.index("returns")
BUILD_HASH = "texts"
"""Key of `build_info` under which `Catalog.build_hash` stands."""
_CACHED_TOOLS = 8_192
_BATCH = 4_096


class Catalog:
    """A read-only catalog. Safe to share between threads; usable as a context manager."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._connection = connection
        self._pack = Pack.find(path)
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, ToolInterface] = OrderedDict()
        self._names: list[str] | None = None
        self._build_hash: str | None = None

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the file read-only. Raises `RunError` where there is no catalog, or none that can be read."""
        path = Path(path).resolve()
        if not path.is_file():
            raise RunError(f"There is no tool catalog at {path}: run `paraagent catalog build`")
        try:
            connection = duckdb.connect(str(path), read_only=True, config={"threads": 1})
            connection.execute(f"{_SELECT} LIMIT 0").fetchall()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise RunError(
                f"The tool catalog at {path} cannot be read ({reason}): run `paraagent catalog build`"
            ) from error
        return cls(path, connection)

    def close(self) -> None:
        self._connection.close()
        if self._pack is not None:
            self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Catalog.open(state["path"]).__dict__)

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        """Every tool's name, sorted."""
        if self._names is None:
            self._names = [name for (name,) in self.rows("SELECT name FROM tools ORDER BY name")]
        return list(self._names)

    def get(self, name: str) -> ToolInterface | None:
        """The tool of exactly this name, or None. The last few thousand are kept parsed."""
        with self._lock:
            cached = self._cache.get(name)
        return cached or self.get_many([name]).get(name)

    def get_many(self, names: Iterable[str]) -> dict[str, ToolInterface]:
        """The tools that exist, by name, in the order asked for; one query for all that are not cached."""
        wanted = list(dict.fromkeys(names))
        with self._lock:
            found = {name: self._cache[name] for name in wanted if name in self._cache}
        missing = [name for name in wanted if name not in found]
        if missing:
            found.update((tool.name, tool) for tool in self._read(missing))
        with self._lock:
            for name, tool in found.items():
                self._cache[name] = tool
                self._cache.move_to_end(name)
            while len(self._cache) > _CACHED_TOOLS:
                self._cache.popitem(last=False)
        return {name: found[name] for name in wanted if name in found}

    def _read(self, names: list[str]) -> Iterator[ToolInterface]:
        if self._pack is None:
            rows = self.rows(f"{_SELECT} WHERE name IN (SELECT unnest(?::VARCHAR[]))", [names])
            yield from (_tool(row) for row in rows)
            return
        for name in names:
            packed = self._pack.get(name)
            if packed is not None:
                yield ToolInterface(**orjson.loads(packed))

    def nearest(self, name: str, n: int = 3) -> list[str]:
        """The `n` names most like `name`, best first: for "did you mean"."""
        sql = "SELECT name FROM tools ORDER BY jaro_winkler_similarity(lower(name), lower(?)) DESC, name LIMIT ?"
        return [row[0] for row in self.rows(sql, [name, n])]

    def frame(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        """The columns of the table `tools` (all where none is named), sorted by name."""
        chosen = ", ".join(f'"{column}"' for column in columns) or "*"
        frame: pl.DataFrame = self.relation(f"SELECT {chosen} FROM tools ORDER BY name").pl()
        return frame

    def relation(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A query of our own code, on a connection of its own; for what people type, see `paraagent.catalog.query`."""
        return self._connection.cursor().sql(sql)

    def info(self) -> dict[str, str]:
        """The table `build_info`: sources, checksums, counts, software versions."""
        return dict(self.rows("SELECT key, value FROM build_info ORDER BY key"))

    @property
    def build_hash(self) -> str:
        """Identity of what the search index is made of: two catalogs with the same value find the same tools."""
        if self._build_hash is None:
            noted = self.rows("SELECT value FROM build_info WHERE key = ?", [BUILD_HASH])
            self._build_hash = noted[0][0] if noted else texts_hash(self._connection.cursor())
        return self._build_hash

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query of our own code, with values for its `?`."""
        return self._connection.cursor().execute(sql, list(values)).fetchall()


def texts_hash(connection: duckdb.DuckDBPyConnection, schema: str = "main") -> str:
    """The value of `Catalog.build_hash`, from the tables; a finished catalog has it in `build_info`."""
    parts = "concat_ws(chr(31), name, provider, service, title, description, n_parameters)"
    [(texts,)] = connection.execute(f"SELECT bit_xor(md5_number({parts})) FROM {schema}.tools").fetchall()
    parts = "concat_ws(chr(31), tool_id, name)"
    [(names,)] = connection.execute(f"SELECT bit_xor(md5_number({parts})) FROM {schema}.parameters").fetchall()
    return hashlib.sha256(f"{texts} {names}".encode()).hexdigest()


def pack_catalog(path: Path, base: Path | None = None) -> Path:
    """Write the pack beside a finished catalog, so that single tools are read in microseconds.

    Args:
        base: the catalog that this one is an extension of; what its pack holds is not packed again.
    """
    before = Pack.find(base) if base is not None else None
    packed = dict(before.items()) if before is not None else {}
    with Catalog.open(path) as catalog:
        names = [name for name in catalog.names() if name not in packed]
        sql = f"{_SELECT} WHERE name IN (SELECT unnest(?::VARCHAR[])) ORDER BY name"
        fresh = pack_rows(_json_rows(catalog._connection.execute(sql, [names])))
        rows = heapq.merge(packed.items(), fresh) if packed else fresh
        return write_pack(catalog.path, rows)


def _json_rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, bytes]]:
    while batch := result.fetchmany(_BATCH):
        for row in batch:
            values = dict(zip(_COLUMNS, row, strict=True))
            for schema in ("parameters", "returns"):
                values[schema] = None if values[schema] is None else orjson.Fragment(values[schema])
            yield values["name"], orjson.dumps(values)


def _tool(row: tuple[Any, ...]) -> ToolInterface:
    values = list(row)
    values[_PARAMETERS] = orjson.loads(values[_PARAMETERS])
    if values[_RETURNS] is not None:
        values[_RETURNS] = orjson.loads(values[_RETURNS])
    return ToolInterface(**dict(zip(_COLUMNS, values, strict=True)))
