"""Who can feed whom: the table `edges`, from the tables `tools`, `parameters` and `fields`.

Both ends of an edge are of one entity (`paraagent/catalog/entities.py`). For each entity the best producers are kept,
one field each, so the number of edges grows with the number of parameters and not with its square.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from paraagent.catalog.entities import WORLD, Typed, may_type, type_of_field, type_of_parameter
from paraagent.catalog.subject import OPERATION, Subject
from paraagent.catalog.worldtypes import WORLD_NAMES, world_name

PRODUCERS = 6
"""Most producers of one parameter."""
WORLDLY = 100
"""Producers among which those of a value of the world are spread, so that not all consumers get the same few."""
KINDS = {"list": 0.97, "get": 0.94, "create": 0.92, "update": 0.88, "reference": 0.86, "world": 0.8}
"""How a producer comes by an entity, best first, and how sure that makes an edge."""
DOUBTS = {"resource": 0.0, "place": 0.0, "world": 0.0, "compound": 0.02, "described": 0.05, "role": 0.08}
"""What each rule of `Typed.rule` takes from that, on either side."""

_BATCH = 50_000
_NAMES = pa.schema([("name", pa.string())])
_TOOLS = f"""
    SELECT tool_id, provider, service, source, source_name, effect, http_method, path,
        coalesce(names, []), coalesce(is_operation, false)
    FROM tools
    LEFT JOIN (SELECT tool_id, list(name) AS names FROM parameters GROUP BY tool_id) USING (tool_id)
    LEFT JOIN (SELECT DISTINCT tool_id, true AS is_operation FROM fields
        WHERE path IN ({", ".join(f"'{field}'" for field in sorted(OPERATION))})) USING (tool_id)
    WHERE tool_id IN (SELECT tool_id FROM takers UNION SELECT tool_id FROM givers)
"""
_SAYS_ID = r"regexp_matches(description, '(?i)\b(id|identifier|name)\b')"
_TABLES = """
    CREATE OR REPLACE TEMP TABLE taken (tool_id VARCHAR, parameter VARCHAR, required BOOLEAN, entity VARCHAR,
        scope VARCHAR, class VARCHAR, rule VARCHAR, trail VARCHAR);
    CREATE OR REPLACE TEMP TABLE given (tool_id VARCHAR, field VARCHAR, depth INTEGER, is_own BOOLEAN, entity VARCHAR,
        scope VARCHAR, class VARCHAR, rule VARCHAR, trail VARCHAR);
"""
_EDGES = f"""
    WITH kinds(kind, place, sure) AS (VALUES {", ".join(str((k, i, s)) for i, (k, s) in enumerate(KINDS.items()))}),
    rules(rule, doubt) AS (VALUES {", ".join(str(item) for item in DOUBTS.items())}),
    -- what a tool deletes is gone, and what it must be told it need not be asked for
    classed AS (
        SELECT given.*, tools.n_required, tools.deprecated, tools.effect,
            CASE WHEN scope = '{WORLD}' THEN 'world' WHEN NOT is_own THEN 'reference'
                WHEN effect = 'read' AND contains(field, '[]') THEN 'list' WHEN effect = 'read' THEN 'get'
                WHEN effect = 'create' THEN 'create' ELSE 'update' END AS kind
        FROM given JOIN tools USING (tool_id)
        WHERE effect != 'delete' AND NOT EXISTS (
            FROM taken WHERE taken.tool_id = given.tool_id AND taken.entity = given.entity AND taken.required)
    ),
    -- the best field of a tool; a single value goes into a list too
    best AS (
        SELECT * FROM classed JOIN kinds USING (kind) JOIN rules USING (rule),
            (VALUES ('string'), ('integer'), ('array')) AS wanted(takes)
        WHERE takes = class OR takes = 'array'
        QUALIFY row_number() OVER (PARTITION BY entity, takes, tool_id ORDER BY kinds.place, doubt, depth, field) = 1
    ),
    -- what a whole provider shares comes from the tools that are about it, if there are any
    kept AS (
        SELECT * FROM best
        WHERE kind NOT IN ('update', 'reference') OR contains(scope, '/') OR entity NOT IN (
            SELECT entity FROM best WHERE NOT contains(scope, '/') AND kind NOT IN ('update', 'reference', 'world'))
        QUALIFY row_number() OVER (
            PARTITION BY entity, takes, trail
            ORDER BY deprecated, place, effect != 'read', n_required, doubt, depth, tool_id
        ) <= CASE WHEN scope = '{WORLD}' THEN {WORLDLY} ELSE {PRODUCERS + 1} END
    ),
    asked AS (
        SELECT taken.*, rules.doubt AS more, required AND tools.effect != 'create' AS must_exist
        FROM taken JOIN tools USING (tool_id) JOIN rules USING (rule)
    ),
    homes AS (SELECT DISTINCT entity FROM kept WHERE kind != 'reference'),
    ambiguous AS (
        SELECT entity FROM taken WHERE contains(trail, '/') GROUP BY entity HAVING count(DISTINCT trail) > 1
    ),
    pairs AS (
        SELECT kept.tool_id AS producer, field, asked.tool_id AS consumer, parameter, kind, entity,
            round(sure - doubt - more, 2) AS confidence
        FROM asked JOIN kept USING (entity)
        WHERE takes = asked.class AND kept.tool_id != asked.tool_id AND (must_exist OR entity IN (FROM homes)) AND (
            kept.trail = asked.trail OR asked.trail = ''
            OR (kept.trail = '' AND NOT (contains(asked.trail, '/') AND entity IN (FROM ambiguous)))
            OR ends_with(kept.trail, '/' || asked.trail) OR ends_with(asked.trail, '/' || kept.trail))
        QUALIFY row_number() OVER (
            PARTITION BY asked.tool_id, parameter
            ORDER BY deprecated, place,
                CASE WHEN kept.scope = '{WORLD}' THEN md5(concat(kept.tool_id, ' ', asked.tool_id)) ELSE '' END,
                effect != 'read', n_required, doubt, depth, kept.tool_id
        ) <= {PRODUCERS}
    )
    FROM pairs
"""
_FILL = "INSERT INTO edges SELECT * FROM found ORDER BY consumer, parameter, confidence DESC, producer, field"


def build_edges(connection: duckdb.DuckDBPyConnection, providers: Collection[str] | None = None) -> int:
    """Fill `edges` and return its rows.

    Args:
        connection: on a catalog that holds `tools`, `parameters` and `fields`.
        providers: those of which tools came or went. Only entities of theirs, and of the world, are looked at
            again; the result is the same as without this.
    """
    touched = None if providers is None else frozenset(providers)
    connection.execute(_TABLES)
    with _no_collection():
        _type_values(connection, touched)
    kept = "" if touched is None else f"UNION ALL SELECT * FROM edges WHERE NOT {_within(touched)}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS ({_EDGES}) {kept}")
    connection.execute("DELETE FROM edges")
    connection.execute(_FILL)
    for table in ("takers", "givers", "taken", "given", "found", "telling", "worldly"):
        connection.execute(f"DROP TABLE {table}")
    [(count,)] = connection.execute("SELECT count(*) FROM edges").fetchall()
    return int(count)


def _type_values(connection: duckdb.DuckDBPyConnection, touched: frozenset[str] | None) -> None:
    """Fill the tables `taken` and `given`."""
    _find_candidates(connection, touched)
    subjects = {tool_id: Subject.read(row) for tool_id, *row in _rows(connection, _TOOLS)}
    _insert(connection, "taken", _taken(_rows(connection, "FROM takers"), subjects), touched)
    _insert(connection, "given", _given(_rows(connection, "FROM givers"), subjects), touched)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of rows pass and no cycles: looking for these takes a fifth of the time."""
    there = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if there:
            gc.enable()


def _find_candidates(connection: duckdb.DuckDBPyConnection, touched: frozenset[str] | None) -> None:
    """Fill `takers` and `givers`: the rows whose name or description leaves it open that they identify something."""
    tools = "true" if touched is None else f"tool_id IN (SELECT tool_id FROM tools WHERE {_among(touched)})"
    worldly = ", ".join(f"'{name}'" for name in sorted(WORLD_NAMES))
    sql = " UNION ".join(
        f"SELECT name FROM {table} WHERE {tools} OR regexp_replace(lower(name), '[^a-z0-9]', '', 'g') IN ({worldly})"
        " OR NOT regexp_full_match(name, '[ -~]*')"
        for table in ("parameters", "fields")
    )
    names = [name for (name,) in connection.execute(f"{sql} ORDER BY name").fetchall()]
    for temporary, rule in (("telling", may_type), ("worldly", world_name)):
        rows = pa.table({"name": [name for name in names if rule(name)]}, schema=_NAMES)
        connection.register("names_batch", rows)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {temporary} AS SELECT name FROM names_batch")
        connection.unregister("names_batch")
    where = f"type NOT IN ('object', 'boolean') AND (name IN (FROM telling) OR {_SAYS_ID})"
    if touched is not None:
        where = f"(name IN (FROM worldly) OR {tools}) AND {where}"
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE takers AS
            SELECT tool_id, name, type, description, format, required FROM parameters WHERE {where};
        CREATE OR REPLACE TEMP TABLE givers AS
            SELECT tool_id, path, type, description, format FROM fields WHERE {where};
    """)


def _among(providers: frozenset[str]) -> str:
    quoted = ["'" + name.replace("'", "''") + "'" for name in sorted(providers)]
    return f"provider IN ({', '.join(quoted)})" if quoted else "false"


def _within(providers: frozenset[str]) -> str:
    """Whether the entity of an edge is of these providers or of the world."""
    provider = "split_part(split_part(entity, ':', 1), '/', 1)"
    return f"(SELECT {_among(providers | {WORLD})} FROM (SELECT {provider} AS provider))"


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[tuple[Any, ...]]:
    """All rows; other statements may run between them."""
    for batch in connection.sql(sql).to_arrow_table().to_batches(max_chunksize=_BATCH):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _taken(rows: Iterator[tuple[Any, ...]], subjects: dict[str, Subject]) -> Iterator[tuple[Any, ...]]:
    """Rows of the table `taken`."""
    for tool_id, name, type, description, format, required in rows:
        typed = type_of_parameter(subjects[tool_id], name, type, description, format, required)
        if typed is not None:
            yield tool_id, name, required, *_columns(typed, type)


def _given(rows: Iterator[tuple[Any, ...]], subjects: dict[str, Subject]) -> Iterator[tuple[Any, ...]]:
    """Rows of the table `given`."""
    for tool_id, path, type, description, format in rows:
        typed = type_of_field(subjects[tool_id], path, type, description, format)
        if typed is not None:
            yield tool_id, path, path.count("."), typed.is_own, *_columns(typed, type)


def _columns(typed: Typed, type: str) -> tuple[str, str, str, str, str]:
    """The columns that both tables share."""
    kind = "integer" if type == "number" else type
    return str(typed.entity), typed.entity.scope, kind, typed.rule, typed.trail


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Iterator[tuple[Any, ...]], touched: frozenset[str] | None
) -> None:
    """Into a temporary table, without what is of no provider looked at."""
    wanted = (row for row in rows if touched is None or row[-4].split("/")[0] in touched | {WORLD})
    while batch := list(itertools.islice(wanted, _BATCH)):
        columns = [pa.array(column) for column in zip(*batch, strict=True)]
        connection.register("typed_batch", pa.table(columns, names=[f"c{i}" for i in range(len(columns))]))
        connection.execute(f"INSERT INTO {table} SELECT * FROM typed_batch")
        connection.unregister("typed_batch")
