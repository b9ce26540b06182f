"""Questions in SQL that can neither change anything nor look outside the home.

A connection in memory attaches the catalog read-only, gets the views of `sql/views.sql` over it and over the artifacts
that exist, and is then locked: no file outside the home, no settings, and one SELECT at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import duckdb

from paraagent.errors import ParaAgentError, RunError, UsageError

VIEWS = Path(__file__).parents[2] / "sql" / "views.sql"
_NEEDS = re.compile(r"^-- needs: (\w+)$", re.MULTILINE)
_VIEW = re.compile(r"CREATE VIEW (\w+)")
_MISSING_TABLE = re.compile(r"Table with name \"?(.+?)\"? does not exist")
_CANDIDATES = re.compile(r'(?:Candidate bindings|Did you mean)[: ]+"?([^"\n]+)"')
_BATCH = 2_048


@dataclass(frozen=True)
class Answer:
    """What a query found; `rows` may be read once."""

    columns: tuple[str, ...]
    json_columns: frozenset[str]
    """Columns whose text is JSON."""
    rows: Iterator[tuple[Any, ...]]


class QuerySession:
    """A locked connection. Usable as a context manager."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, root: Path, views: Mapping[str, bool]) -> None:
        self._connection = connection
        self._root = root
        self.views = dict(views)
        """Every view by name, and whether what it needs is there."""

    @classmethod
    def open(cls, root: Path, catalog: Path | None, files: Mapping[str, Sequence[Path]]) -> Self:
        """Make the views and lock the connection.

        Args:
            root: files below this directory may be read, no others.
            catalog: the catalog's file, if there is one.
            files: the files of `tasks`, `demos`, `episodes` and `scores`; the views over what has none are left out.

        Raises:
            RunError: a file is damaged.
        """
        connection = duckdb.connect(
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "temp_directory": "",
            }
        )
        there = {name for name, paths in files.items() if paths}
        try:
            if catalog is not None:
                connection.execute(f"ATTACH {_quoted(catalog.resolve())} AS store (READ_ONLY)")
                there.add("catalog")
            for name in sorted(there & files.keys()):
                paths = ", ".join(_quoted(path) for path in files[name])
                connection.execute(f"SET VARIABLE {name} = [{paths}]")
            views = _create_views(connection, there)
            roots = ", ".join(sorted({_quoted(f"{path}/") for path in (root.absolute(), root.resolve())}))
            connection.execute(f"SET allowed_directories = [{roots}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            connection.close()
            raise RunError(
                f"An artifact of the home {root} cannot be read ({_first_line(error)}): `paraagent run` rebuilds it"
            ) from error
        return cls(connection, root, views)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def run(self, sql: str, values: Mapping[str, str] | None = None) -> Answer:
        """Answer one SELECT, with values for its `$name` parameters.

        Raises:
            UsageError: bad syntax, an unknown name, more or less than one SELECT, or a file outside the home.
            RunError: there is not enough memory.
        """
        given = dict(values or {})
        try:
            _check_values(self._single_select(sql), given)
            result = self._connection.execute(sql, given)
            described = result.description or []
        except duckdb.Error as error:
            raise self._sentence(error, given) from error
        columns = tuple(str(column[0]) for column in described)
        json_columns = frozenset(str(column[0]) for column in described if str(column[1]) == "JSON")
        return Answer(columns, json_columns, self._rows(result, given))

    def _single_select(self, sql: str) -> duckdb.Statement:
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"Give exactly one SELECT, not {len(statements)} statements")
        kind = statements[0].type.name
        if kind == "MULTI":
            raise UsageError("Only one plain SELECT is allowed: name the values of PIVOT with IN (…)")
        if kind != "SELECT":
            word = sql.split(maxsplit=1)[0].upper().rstrip(";")
            raise UsageError(f"Only a SELECT is allowed, not {word}: `paraagent sql` reads and never writes")
        return statements[0]

    def _rows(self, result: duckdb.DuckDBPyConnection, given: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
        try:
            while batch := result.fetchmany(_BATCH):
                yield from batch
        except duckdb.Error as error:
            raise self._sentence(error, given) from error

    def _sentence(self, error: duckdb.Error, given: Mapping[str, str]) -> ParaAgentError:
        text = _first_line(error)
        if isinstance(error, duckdb.OutOfMemoryException):
            return RunError(f"The query needs more memory than there is ({text}): ask for fewer rows or columns")
        if isinstance(error, duckdb.PermissionException):
            return UsageError(f"SQL may read files below {self._root} only ({text})")
        missing = _MISSING_TABLE.search(text)
        if missing and self.views.get(missing[1]) is False:
            return UsageError(f"The table {missing[1]} is not there yet: run `paraagent run`")
        if missing and "/" in missing[1]:
            return UsageError(f"SQL may read files below {self._root} only, and there is none at {missing[1]}")
        if missing:
            present = ", ".join(sorted(name for name, there in self.views.items() if there))
            return UsageError(f"There is no table {missing[1]}: the tables are {present}")
        if given:
            values = " ".join(f"--param {name}={value}" for name, value in given.items())
            return UsageError(f"The SQL cannot be run: {text}{_candidates(error)}; its values are {values}")
        return UsageError(f"The SQL cannot be run: {text}{_candidates(error)}; `paraagent sql --query` lists examples")


def _check_values(statement: duckdb.Statement, given: Mapping[str, str]) -> None:
    """Raise `UsageError` where a `$name` has no value, or a value no `$name`."""
    names = set(statement.named_parameters)
    if missing := sorted(names - given.keys()):
        raise UsageError(f"The SQL asks for ${missing[0]}: add --param {missing[0]}=VALUE")
    if unknown := sorted(given.keys() - names):
        takes = f"it takes {', '.join(f'${name}' for name in sorted(names))}" if names else "it takes none"
        raise UsageError(f"The SQL has no parameter ${unknown[0]}: {takes}")


def _create_views(connection: duckdb.DuckDBPyConnection, there: set[str]) -> dict[str, bool]:
    views: dict[str, bool] = {}
    for statement in connection.extract_statements(VIEWS.read_text("utf-8")):
        name, needs = _VIEW.search(statement.query), _NEEDS.search(statement.query)
        assert name is not None, statement.query
        views[name[1]] = needs is None or needs[1] in there
        if views[name[1]]:
            connection.execute(statement.query)
    return views


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _candidates(error: duckdb.Error) -> str:
    """The names that the database would have understood."""
    found = _CANDIDATES.search(str(error))
    return f" (did you mean {found[1].strip()}?)" if found else ""


def _first_line(error: duckdb.Error) -> str:
    """The message without its kind, the position marker and the candidate list."""
    line = str(error).strip().splitlines()[0]
    return line.split(": ", 1)[-1].strip().rstrip("!.") if ": " in line else line
