"""Saved queries: `sql/queries/*.sql`, each with a first line that says what it answers and a line for each parameter.

```sql
-- Which services have the most tools?
-- $limit = 20: rows to show
SELECT …
```
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paraagent.errors import UsageError

FOLDER = Path(__file__).parents[2] / "sql" / "queries"
_PARAMETER = re.compile(r"-- \$(?P<name>\w+)(?: = (?P<default>[^:]*))?: (?P<description>.+)")


@dataclass(frozen=True)
class QueryParameter:
    """A value that a person may give with `--param name=value`."""

    name: str
    default: str | None
    """None where it must be given."""
    description: str


@dataclass(frozen=True)
class SavedQuery:
    """One question that people ask of the catalog and the artifacts."""

    name: str
    answers: str
    """The question, as a sentence."""
    parameters: tuple[QueryParameter, ...]
    sql: str

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """The value of every parameter. Raises `UsageError` on a missing or an unknown one."""
        known = {parameter.name for parameter in self.parameters}
        for name in given:
            if name not in known:
                takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
                raise UsageError(f"The query {self.name} has no parameter {name}: {takes}")
        values: dict[str, str] = {}
        for parameter in self.parameters:
            value = given.get(parameter.name, parameter.default)
            if value is None:
                raise UsageError(
                    f"The query {self.name} needs {parameter.name} ({parameter.description}):"
                    f" add --param {parameter.name}=VALUE"
                )
            values[parameter.name] = value
        return values


def saved_queries(folder: Path = FOLDER) -> list[SavedQuery]:
    """Every saved query, by name."""
    return [_read(path) for path in sorted(folder.glob("*.sql"))]


def saved_query(name: str) -> SavedQuery:
    """The query of this name. Raises `UsageError`, naming the nearest, where there is none."""
    queries = {query.name: query for query in saved_queries()}
    if name not in queries:
        near = difflib.get_close_matches(name, queries, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else "`paraagent sql --query` lists them"
        raise UsageError(f"There is no saved query {name}: {hint}")
    return queries[name]


def _read(path: Path) -> SavedQuery:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    parameters = tuple(
        QueryParameter(found["name"], found["default"], found["description"])
        for line in lines
        if (found := _PARAMETER.fullmatch(line))
    )
    return SavedQuery(path.stem, lines[0].removeprefix("-- ").strip(), parameters, text)
