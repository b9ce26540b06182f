"""Recorded calls: what a real tool once answered is answered again.

A file holds one call a row: `tool` (its name in the catalog), `arguments`, and `response` or `error`
(`{"type", "msg"}`). In JSON Lines these are JSON values, in Parquet the columns hold JSON texts. A call matches a row
with the same arguments, else one whose arguments differ only in whether numbers are written as strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from paraagent.catalog.interface import ToolInterface
from paraagent.errors import UsageError
from paraagent.files import canonical_json, sha256_file
from paraagent.paraact.executor import ERROR_TYPES
from paraagent.paraact.protocol import fold
from paraagent.toolenv.simulator import Response
from paraagent.trace import ErrorInfo

_SHAPE = (
    'a row looks like {"tool": "NAME", "arguments": {…}, "response": …},'
    ' or has "error": {"type": "NotFoundError", "msg": "TEXT"} in place of "response"'
)
_COLUMNS = ("tool", "arguments", "response", "error")
_Key = tuple[str, bytes]


class _Row(BaseModel):
    """One recorded call."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str
    arguments: dict[str, Any]
    response: Any = None
    error: ErrorInfo | None = None

    @model_validator(mode="after")
    def _known_error(self) -> _Row:
        if self.error is None and "response" not in self.model_fields_set:
            raise ValueError("neither a response nor an error is in it")
        if self.error is not None and self.response is not None:
            raise ValueError("both a response and an error are in it")
        if self.error is not None and self.error.type not in ERROR_TYPES:
            raise ValueError(f"{self.error.type} is no error of a tool: those are {', '.join(sorted(ERROR_TYPES))}")
        return self


class Recordings:
    """Recorded calls by what was asked; read-only, shared by any number of episodes."""

    name = "recorded"

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `UsageError` for a file that cannot be read, naming the row."""
        self._exact: dict[_Key, bytes] = {}
        self._alike: dict[_Key, bytes] = {}
        self._tools: dict[Path, set[str]] = {path: set() for path in paths}
        for path in paths:
            for where, row in _rows(path):
                try:
                    kept = orjson.dumps({"response": row.response, "error": row.error and row.error.model_dump()})
                    exact, alike = _keys(row.tool, row.arguments)
                except (orjson.JSONEncodeError, RecursionError):
                    raise UsageError(f"{where}: nested too deep") from None
                self._exact.setdefault(exact, kept)
                self._alike.setdefault(alike, kept)
                self._tools[path].add(exact[0])
            if not self._tools[path]:
                raise UsageError(f"{path} holds no recorded call: {_SHAPE}")

    def __len__(self) -> int:
        return len(self._exact)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any], Response]]:
        """Each call, with the folded name of its tool and what is answered to it."""
        for (tool, arguments), kept in self._exact.items():
            yield tool, orjson.loads(arguments), self._response(kept)

    def foreign(self, names: Iterable[str]) -> list[Path]:
        """The files of which no row is about one of these tools."""
        known = set(map(fold, names))
        return [path for path, tools in self._tools.items() if not tools & known]

    async def answer(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response | None:
        """What was recorded for this call; None where nothing was."""
        exact, alike = _keys(tool.name, arguments)
        kept = self._exact.get(exact) or self._alike.get(alike)
        return None if kept is None else self._response(kept)

    def _response(self, kept: bytes) -> Response:
        found = orjson.loads(kept)
        error = found["error"] and ErrorInfo(**found["error"])
        return Response(error, None if error else found["response"], self.name)


def open_recordings(paths: Sequence[str]) -> Recordings:
    """The recordings of these files, read once in a process as long as the files do not change.

    Raises:
        UsageError: a file is missing or cannot be read; the sentence names the row.
    """
    stats = [(path, path.stat()) for path in _files(paths)]
    return _read(tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats))


def recording_hashes(paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of each file, in order. Raises `UsageError` where one is missing."""
    return {str(path): sha256_file(path) for path in _files(paths)}


def _files(paths: Sequence[str]) -> list[Path]:
    for path in paths:
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder: env.recordings names the files in it one by one")
        if not Path(path).is_file():
            raise UsageError(f"There is no file {path}, which env.recordings names")
    return [Path(path) for path in paths]


@lru_cache(maxsize=2)
def _read(files: tuple[tuple[Path, int, int], ...]) -> Recordings:
    return Recordings([path for path, _, _ in files])


def _keys(tool: str, arguments: dict[str, Any]) -> tuple[_Key, _Key]:
    """What is looked up first, and what is looked up then."""
    name = fold(tool)
    return (name, canonical_json(arguments)), (name, canonical_json(_as_text(arguments)))


def _as_text(value: Any) -> Any:
    """The value with every number as the string that writes it: 5 and 5.0 as "5"."""
    if isinstance(value, dict):
        return {key: _as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_text(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _rows(path: Path) -> Iterator[tuple[str, _Row]]:
    """Every row with where it stands."""
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(path)
    for where, raw in rows:
        try:
            yield where, _Row.model_validate(raw)
        except ValidationError as error:
            raise UsageError(f"{where}: {_fault(error)}; {_SHAPE}") from None


def _fault(error: ValidationError) -> str:
    """The first thing that is wrong with a row, in words for whoever wrote it."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = f"`{'.'.join(map(str, fault['loc']))}`" if fault["loc"] else "the row"
    said = {
        "missing": "is missing",
        "extra_forbidden": "has no place in it",
        "string_type": "should be a text",
        "dict_type": "should be an object",
        "model_type": "should be an object",
    }.get(fault["type"])
    return f"{place} {said}" if said else fault["msg"].removeprefix("Value error, ")


def _json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield f"{path}, line {number}", orjson.loads(line)
            except orjson.JSONDecodeError as error:
                torn = "" if line.endswith(b"\n") else ", which seems to be torn off: record that call again or cut it"
                raise UsageError(f"{path}, line {number} is not JSON ({error.msg}){torn}") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in _COLUMNS if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    values = {name: _value(name, text) for name, text in row.items() if text is not None}
                    yield f"{path}, row {number}", values
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path}, row {number} holds a text that is not JSON ({error.msg})") from None
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0][:200]}") from None


def _value(column: str, text: Any) -> Any:
    return text if column == "tool" or not isinstance(text, str) else orjson.loads(text)
