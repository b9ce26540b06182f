"""The data set on disk: Parquet that `datasets` and TRL read unchanged, and a data card that says what is in it.

`messages` is the conversation, `discovered_tools` the signatures of the tools that its searches found, one JSON
document each (a column named `tools` would be rendered into prompts by many chat templates), `mistakes` the places in
`messages` of turns that went wrong on purpose and should carry no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from paraagent.markdown import render_markdown

FILES = {"train": "demos.parquet", "validation": "validation.parquet"}
"""File of each split."""
CARD = "README.md"
_ROWS = 512
"""Rows written at a time."""


def features() -> Any:
    """The columns, as `datasets.Features`."""
    from datasets import Features, List, Value

    text, number = Value("string"), Value("int64")
    return Features(
        {
            "task_id": text,
            "seed": number,
            "messages": List({"role": text, "content": text}),
            "mistakes": List(number),
            "discovered_tools": List(text),
            "shape": text,
            "width": number,
            "reach": text,
            "split": text,
            "recoveries": List(text),
            "n_turns": number,
            "n_tokens": number,
            "n_model_tokens": number,
        }
    )


def write_demos(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write rows as Parquet that `datasets.load_dataset` reads with its types; returns how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Dataset

    columns = features()
    # The features stand in the schema's metadata, as `datasets` itself writes them.
    schema = Dataset.from_dict({name: [] for name in columns}, features=columns).data.table.schema
    iterator, total = iter(rows), 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := list(islice(iterator, _ROWS)):
            writer.write_table(pa.Table.from_pylist([{name: row[name] for name in columns} for row in some], schema))
            total += len(some)
    return total


def distinct(texts: Iterable[str], length: int) -> float:
    """Share of different ones among all runs of `length` words: 1 where none comes twice."""
    runs: set[tuple[str, ...]] = set()
    total = 0
    for text in texts:
        words = text.casefold().split()
        for start in range(len(words) - length + 1):
            runs.add(tuple(words[start : start + length]))
            total += 1
    return len(runs) / total if total else 0.0


class Statistics:
    """Counts of a data set, gathered row by row."""

    def __init__(self) -> None:
        self.shapes: Counter[str] = Counter()
        self.reaches: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        self.recoveries: Counter[str] = Counter()
        self.licences: Counter[str] = Counter()
        self.tokens: list[int] = []
        self.model_tokens = self.recovered = 0
        self.thoughts: list[str] = []
        self.requests: list[str] = []

    def add(self, row: Mapping[str, Any], licences: Sequence[str]) -> None:
        width = f"-{row['width']}" if row["width"] > 1 else ""
        self.shapes[f"{row['shape']}{width}"] += 1
        self.reaches[row["reach"]] += 1
        self.splits[row["split"]] += 1
        self.recoveries.update(row["recoveries"])
        self.recovered += bool(row["recoveries"])
        self.licences.update(licences)
        self.tokens.append(row["n_tokens"])
        self.model_tokens += row["n_model_tokens"]
        said = [message["content"] for message in row["messages"] if message["role"] == "assistant"]
        self.thoughts += [text.partition("<think>")[2].partition("</think>")[0] for text in said]
        self.requests.append(next(message["content"] for message in row["messages"] if message["role"] == "user"))

    def summary(self) -> dict[str, Any]:
        """Everything as plain values."""
        tokens = sorted(self.tokens)
        count = len(tokens)
        return {
            "demos": count,
            "splits": _sorted(self.splits),
            "shapes": _sorted(self.shapes),
            "reaches": _sorted(self.reaches),
            "recoveries": _sorted(self.recoveries),
            "recovered_share": round(self.recovered / count, 4) if count else 0.0,
            "tokens": sum(tokens),
            "model_tokens": self.model_tokens,
            "tokens_median": tokens[count // 2] if count else 0,
            "tokens_p95": tokens[int(0.95 * (count - 1))] if count else 0,
            "distinct_thoughts": {str(n): round(distinct(self.thoughts, n), 4) for n in (1, 2, 3)},
            "distinct_requests": {str(n): round(distinct(self.requests, n), 4) for n in (1, 2, 3)},
            "licences": _sorted(self.licences),
        }


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def data_card(summary: Mapping[str, Any], made: Mapping[str, str], names: Sequence[str]) -> str:
    """The data card: front matter that names the files, how it was made, statistics, licences."""
    splits = {name: split for split, name in FILES.items()}
    return render_markdown(
        Path(__file__).parent / "card.md.jinja",
        summary=summary,
        made=made,
        files={splits[name]: name for name in names},
    )
