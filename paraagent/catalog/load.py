"""Arrow files of the workers into one DuckDB file: written under a private name, published by rename."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from importlib import resources
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraagent.catalog.graph import build_edges
from paraagent.catalog.selection import Prior, Selection, key
from paraagent.catalog.shards import SCHEMAS, digest_of, shard
from paraagent.catalog.spec import kind_of
from paraagent.catalog.store import BUILD_HASH, texts_hash
from paraagent.files import sha256_bytes

ROW_GROUP = 16_384
"""Rows of a block; small ones let a look-up by name skip most of the file."""
_BATCH = 65_536
TABLES = ("tools", "parameters", "fields", "edges", "quarantine", "build_info")
_FILE_NAME = "catalog.duckdb"


def read_shards(folder: Path, table: str, count: int) -> tuple[pa.Table, list[int]]:
    """All chunks' rows in stream order, memory-mapped, and how many each chunk has."""
    batches = []
    for index in range(count):
        with pa.memory_map(str(shard(folder, table, index))) as file:
            batches.append(pa.ipc.open_file(file).get_batch(0))
    return pa.Table.from_batches(batches, schema=SCHEMAS[table]), [batch.num_rows for batch in batches]


class Loader:
    """One catalog file in the making, from nothing or from a copy of a finished one."""

    def __init__(self, out: Path, base: Path | None = None) -> None:
        self._final = out / _FILE_NAME
        self._private = out / f".{_FILE_NAME}.{os.getpid()}"
        self._private.unlink(missing_ok=True)
        if base is not None:
            shutil.copyfile(base, self._private)
        # One thread lays rows out the same way in any number of processes, and more of them saved no time.
        self._connection = duckdb.connect(config={"threads": 1, "preserve_insertion_order": True})
        target = str(self._private).replace("'", "''")
        self._connection.execute(f"ATTACH '{target}' AS catalog (STORAGE_VERSION 'latest', ROW_GROUP_SIZE {ROW_GROUP})")
        self._connection.execute("USE catalog")
        self._connection.execute("SET zstd_min_string_length = 64")
        if base is None:
            self._connection.execute(schema_sql())
        self._connection.execute("BEGIN")

    def prior(self, providers: Collection[str]) -> Prior:
        """What is in the catalog already; copies are recognised for these providers."""
        rows = self._connection.execute("SELECT lower(name), tool_id FROM catalog.tools").fetchall()
        same = self._connection.execute(
            "SELECT source, provider, service, source_name, http_method, path, parameters, tool_id FROM catalog.tools"
            " WHERE provider IN (SELECT unnest(?::VARCHAR[])) ORDER BY name",
            [sorted(providers)],
        ).fetchall()
        seen = {
            key(kind_of(source), provider, service, name, method, path, digest_of(parameters.encode())): tool_id
            for source, provider, service, name, method, path, parameters, tool_id in same
        }
        return Prior(frozenset(name for name, _ in rows), frozenset(tool_id for _, tool_id in rows), seen)

    def info(self) -> dict[str, str]:
        """The facts of `build_info`, taken out: they are written anew; with what the tables say of themselves."""
        facts = dict(self._connection.execute("SELECT key, value FROM catalog.build_info").fetchall())
        self._connection.execute("DELETE FROM catalog.build_info")
        return facts | {BUILD_HASH: texts_hash(self._connection, "catalog")}

    def count(self, what: str) -> int:
        """`SELECT count(…) FROM …`, as in `tools` or `tools WHERE returns IS NOT NULL`."""
        [(rows,)] = self._connection.execute(f"SELECT count(*) FROM catalog.{what}").fetchall()
        return int(rows)

    def insert(self, table: str, batches: Iterator[pa.Table]) -> int:
        rows = 0
        for batch in batches:
            self._connection.register("batch", batch)
            columns = ", ".join(f'"{name}"' for name in batch.column_names)
            self._connection.execute(f"INSERT INTO catalog.{table} ({columns}) SELECT {columns} FROM batch")
            self._connection.unregister("batch")
            rows += batch.num_rows
        return rows

    def connect(self, providers: Collection[str] | None) -> int:
        """Fill `edges`; with providers, look again only at what tools of these touch."""
        return build_edges(self._connection, providers)

    def counts(self, table: str, column: str) -> dict[str, int]:
        """Rows by value of a column, sorted by value."""
        sql = f"SELECT {column}, count(*) FROM catalog.{table} GROUP BY ALL ORDER BY ALL"
        return dict(self._connection.execute(sql).fetchall())

    def content(self) -> str:
        """Identity of all tables: the same rows give the same, in whatever order."""
        sums = [
            self._connection.execute(
                f"SELECT count(*), sum(hash(rows)::HUGEINT) FROM catalog.{table} AS rows"
            ).fetchall()
            for table in TABLES
        ]
        return sha256_bytes(repr(sums).encode())

    def publish(self) -> Path:
        self._connection.execute("COMMIT")
        self._connection.execute("CHECKPOINT catalog")
        self._connection.execute("USE memory")
        self._connection.execute("DETACH catalog")
        self._connection.close()
        with self._private.open("rb") as file:
            os.fsync(file.fileno())
        return self._private.replace(self._final)

    def abandon(self) -> None:
        self._connection.close()
        for path in (self._private, self._private.with_name(self._private.name + ".wal")):
            path.unlink(missing_ok=True)


def schema_sql() -> str:
    return (resources.files("sql") / "schema.sql").read_text("utf-8")


def tools(table: pa.Table, selection: Selection, constants: Mapping[str, list[str]]) -> Iterator[pa.Table]:
    """Rows of `tools` in final order. `constants` has a value for every converted row."""
    rows = np.asarray(selection.rows, dtype=np.int64)
    for start in range(0, len(rows), ROW_GROUP):
        part = rows[start : start + ROW_GROUP]
        batch = table.take(part).drop_columns(["candidate", "digest"])
        batch = batch.append_column("tool_id", pa.array(selection.tool_ids[start : start + ROW_GROUP], pa.string()))
        batch = batch.append_column("name", pa.array(selection.names[start : start + ROW_GROUP], pa.string()))
        for name, values in constants.items():
            batch = batch.append_column(name, pa.array([values[i] for i in part], pa.string()))
        yield batch


def children(table: pa.Table, counts: list[int], tools: list[int], selection: Selection) -> Iterator[pa.Table]:
    """Rows of `parameters` or `fields` in the order of their tools; `counts` and `tools` are rows of each chunk here
    and in `tools`."""
    first = np.cumsum([0, *tools[:-1]], dtype=np.int64)
    owner = table.column("tool").to_numpy() + np.repeat(first, counts)
    rank = np.full(sum(tools), -1, dtype=np.int64)
    rank[np.asarray(selection.rows, dtype=np.int64)] = np.arange(len(selection.rows))
    owner_rank = rank[owner]
    order = np.argsort(owner_rank, kind="stable")
    order = order[np.searchsorted(owner_rank[order], 0) :]
    ids = pa.array(selection.tool_ids, pa.string())
    table = table.drop_columns(["tool"])
    for start in range(0, len(order), _BATCH):
        part = order[start : start + _BATCH]
        batch = table.take(part)
        yield batch.append_column("tool_id", pc.take(ids, pa.array(owner_rank[part])))
