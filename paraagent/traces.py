"""Traces on disk: one episode a line while they grow, Parquet to hand on.

A line is an episode, or `{"unit": …, "row": episode}` as stages write it, perhaps with `made`: the catalog and
the settings that it was played with, which a replay needs. Lines are appended whole; a torn last one is no line yet.
In Parquet a row has columns to query by and the whole episode as JSON in `trace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from paraagent.errors import UsageError
from paraagent.files import append_lines, canonical_json, read_lines, write_atomic
from paraagent.trace import Episode

MADE = "made.json"
"""Beside a file of traces: what all of them were played with, where their lines do not say it."""


class Kept(NamedTuple):
    """An episode as it was found."""

    episode: Episode
    made: dict[str, Any]
    """What it was played with; empty where that is not noted here."""


class Unread(NamedTuple):
    """A row that is no episode, counted from 1, and why."""

    number: int
    why: str


def check_target(path: Path) -> None:
    """Raises UsageError where no file can be written there: it is a folder, or its folder does not exist."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file to write, such as {path / f'episodes{path.suffix}'}")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent} to write {path.name} into: make it first")


def append_trace(path: Path, episode: Episode, made: dict[str, Any]) -> None:
    """Add one episode; any number of processes may do so."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        append_lines(path, [{"unit": episode.episode_id, "row": episode.model_dump(mode="json"), "made": made}])


def read_traces(path: Path, unread: list[Unread] | None = None) -> Iterator[Kept]:
    """The episodes of a JSON Lines or Parquet file, also of one that is being written.

    Args:
        unread: takes the rows that cannot be read, for a file that nobody is writing: its last line counts, too.

    Raises:
        UsageError: there is no such file, or it holds something else.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path} to read traces from")
    for number, row in _rows(path, unread is not None):
        try:
            if isinstance(row, orjson.JSONDecodeError):
                raise row
            yield _kept(row)
        except ValueError as error:
            why = str(error).splitlines()[0]
            if isinstance(error, ValidationError):
                fault = error.errors(include_url=False, include_input=False)[0]
                why = f"{'.'.join(map(str, fault['loc'])) or 'row'}: {fault['msg']}"
            if unread is None:
                raise UsageError(f"Row {number} of {path} is no episode ({why})") from error
            unread.append(Unread(number, why))


def _kept(row: Any) -> Kept:
    whole = isinstance(row, dict) and "row" in row
    return Kept(Episode.model_validate(row["row"] if whole else row), row.get("made", {}) if whole else {})


def write_traces(path: Path, episodes: Iterable[Episode]) -> int:
    """Write `path`, as Parquet or JSON Lines by its ending, and return the number of episodes.

    Raises:
        UsageError: another ending.
    """
    rows = list(episodes)
    if path.suffix == ".parquet":
        write_atomic(path, _parquet(rows))
    elif path.suffix == ".jsonl":
        write_atomic(path, b"".join(canonical_json(episode.model_dump(mode="json")) + b"\n" for episode in rows))
    else:
        raise UsageError(f"Traces are written to .jsonl or .parquet, and {path.name} ends otherwise")
    return len(rows)


def _rows(path: Path, closed: bool) -> Iterator[tuple[int, Any]]:
    """Numbered documents; of a closed file also what is none, as the error that says so."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            texts = pq.read_table(path, columns=["trace"]).column("trace").to_pylist()
            yield from enumerate(map(orjson.loads, texts), 1)
        elif closed:
            with path.open("rb") as file:
                yield from ((number, _document(line)) for number, line in enumerate(file, 1) if line.strip())
        else:
            yield from enumerate(read_lines(path), 1)
    except (orjson.JSONDecodeError, OSError, KeyError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as traces: {str(error).splitlines()[0]}") from error


def _document(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return error


def _parquet(episodes: list[Episode]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number = pa.string(), pa.int64()
    fields = {
        **dict.fromkeys(("episode_id", "task_id", "policy", "paradigm"), text),
        "seed": number,
        **dict.fromkeys(("ended", "request", "answer", "error"), text),
        **dict.fromkeys(("turns", "searches", "calls", "prompt_tokens", "completion_tokens"), number),
        "seconds": pa.float64(),
        "rewards": text,
        "trace": text,
    }
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist([_row(episode) for episode in episodes], schema=pa.schema(fields))
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _row(episode: Episode) -> dict[str, Any]:
    ends = [turn.started + turn.seconds for turn in episode.turns]
    ends += [call.started + call.seconds for call in episode.calls]
    return {
        **{name: getattr(episode, name) for name in ("episode_id", "task_id", "policy", "paradigm", "seed")},
        "ended": episode.end,
        **{name: getattr(episode, name) for name in ("request", "answer", "error")},
        "turns": len(episode.turns),
        "searches": len(episode.searches),
        "calls": len(episode.calls),
        "prompt_tokens": sum(turn.prompt_tokens for turn in episode.turns),
        "completion_tokens": sum(turn.completion_tokens for turn in episode.turns),
        "seconds": max(ends, default=0.0),
        "rewards": None if episode.rewards is None else canonical_json(episode.rewards).decode(),
        "trace": canonical_json(episode.model_dump(mode="json")).decode(),
    }
