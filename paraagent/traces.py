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


def append_trace(path: Path, episode: Episode, made: dict[str, Any]) -> None:
    """Add one episode; any number of processes may do so."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        append_lines(path, [{"unit": episode.episode_id, "row": episode.model_dump(mode="json"), "made": made}])


def read_traces(path: Path) -> Iterator[Kept]:
    """The episodes of a JSON Lines or Parquet file, also of one that is being written.

    Raises:
        UsageError: there is no such file, or it holds something else.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {path} to read traces from")
    for number, row in enumerate(_rows(path), 1):
        found = row.get("row", row) if isinstance(row, dict) else row
        try:
            episode = Episode.model_validate(found)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"])) or "row"
            raise UsageError(f"Row {number} of {path} is no episode ({where}: {fault['msg']})") from error
        yield Kept(episode, row.get("made", {}) if "row" in row else {})


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


def _rows(path: Path) -> Iterator[Any]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            for text in pq.read_table(path, columns=["trace"]).column("trace").to_pylist():
                yield orjson.loads(text)
        else:
            yield from read_lines(path)
    except (orjson.JSONDecodeError, OSError, KeyError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as traces: {str(error).splitlines()[0]}") from error


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
