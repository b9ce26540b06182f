"""Frames: each data set that crosses a stage boundary as its contract sees it, one Arrow-backed pandas frame a suite.

Schemas and conversations are not carried along, only what can be counted or compared of them, so that eighty thousand
tools or ten thousand episodes are checked in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraagent.files import read_lines, sha256_bytes

if TYPE_CHECKING:
    import pandas as pd

_TOOLS = """
SELECT tools.* EXCLUDE (parameters, returns), lower(name) AS name_folded, length(tools.parameters) AS parameters_chars,
    length(returns) AS returns_chars,
    json_valid(tools.parameters) AND coalesce(json_valid(returns), true) AS schemas_valid,
    coalesce(n, 0) AS parameter_rows, coalesce(n_needed, 0) AS required_rows
FROM tools LEFT JOIN (SELECT tool_id, count(*) AS n, count(*) FILTER (required) AS n_needed FROM parameters
    GROUP BY tool_id) USING (tool_id)
ORDER BY name
"""

_PARAMETERS = """
SELECT parameters.*, tools.name AS tool,
    choices IS NULL OR CASE WHEN json_valid(choices) THEN json_type(choices) = 'ARRAY' ELSE false END AS choices_valid
FROM parameters LEFT JOIN tools USING (tool_id)
ORDER BY tool_id, parameters.name
"""


def tools(out: Path) -> pd.DataFrame:
    """One row a tool of `catalog.duckdb`, with the characters of its two schemas and its rows in `parameters`."""
    return _query(out / "catalog.duckdb", _TOOLS)


def parameters(out: Path) -> pd.DataFrame:
    """One row a top-level parameter of `catalog.duckdb`; `tool` is null for an orphan."""
    return _query(out / "catalog.duckdb", _PARAMETERS)


def tasks(out: Path) -> pd.DataFrame:
    """One row a task of `tasks.jsonl`, with what its parts must agree on."""
    return _frame(_task_row(row) for row in read_lines(out / "tasks.jsonl"))


def demos(out: Path) -> pd.DataFrame:
    """One row a demonstration of both splits, its conversation reduced to roles and counts."""
    import pyarrow.parquet as pq

    from paraagent.demos.dataset import FILES

    columns = ["task_id", "seed", "shape", "split", "messages", "mistakes", "discovered_tools", "n_turns"]
    files = [out / name for name in FILES.values() if (out / name).exists()]
    batches = (batch for file in files for batch in pq.ParquetFile(file).iter_batches(256, columns=columns))
    return _frame(_demo_row(row) for batch in batches for row in batch.to_pylist())


def pairs(out: Path) -> pd.DataFrame:
    """One row a pair of both files that the simulator learns from and is compared on, its texts reduced to counts."""
    import pyarrow.parquet as pq

    tables = {name: pq.read_table(out / f"{name}.parquet").to_pylist() for name in ("pairs", "held_out")}
    return _frame(_pair_row(row, name) for name, rows in tables.items() for row in rows)


def episodes(out: Path) -> pd.DataFrame:
    """One row an episode of `episodes.jsonl` or of every `episodes/*.jsonl`, its turns counted."""
    paths = sorted((out / "episodes").glob("*.jsonl")) or [out / "episodes.jsonl"]
    finished = [path for path in paths if not path.name.endswith(".failed.jsonl")]
    return _frame(_episode_row(row.get("row", row)) for path in finished for row in read_lines(path))


def scores(out: Path) -> pd.DataFrame:
    """One row a scored episode of `scores.parquet`; `trajectory_gap` is what the reward formula leaves unexplained."""
    import pandas as pd

    frame = pd.read_parquet(out / "scores.parquet", dtype_backend="pyarrow")
    parts = frame["outcome"] + frame["step"] - frame["penalty"]
    return frame.assign(trajectory_gap=(frame["trajectory"] - parts).abs())


def _query(path: Path, sql: str) -> pd.DataFrame:
    import pandas as pd

    from paraagent.catalog.store import Catalog

    with Catalog.open(path) as catalog:
        table = catalog.relation(sql).to_arrow_table()
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def _frame(rows: Iterator[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    table = pa.Table.from_pylist(list(rows))
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def _task_row(task: dict[str, Any]) -> dict[str, Any]:
    called = {call["tool"] for call in task["calls"]}
    useful = {atom["call"] for atom in task["atoms"]} | {change["call"] for change in task["state"]}
    useful |= {first for first, _ in task["hard_edges"]}
    request = task["request"].lower()
    return {
        **{name: task[name] for name in ("task_id", "request", "shape", "width", "reach", "split", "seed")},
        "n_slots": len(task["slots"]),
        "n_calls": len(task["calls"]),
        "n_targets": len(called),
        "n_atoms": len(task["atoms"]),
        "n_changes": len(task["state"]),
        "n_checks": len(task["atoms"]) + len(task["state"]) + (task["shape"] == "unsolvable"),
        "n_hard": len(task["hard_edges"]),
        "useful_calls": len(useful & {call["id"] for call in task["calls"]}),
        "slots_of_calls": len({slot["tool"] for slot in task["slots"]} & called),
        "difficulty": task["difficulty"],
        "names_a_tool": any(tool.lower() in request for tool in called),
    }


def _demo_row(demo: dict[str, Any]) -> dict[str, Any]:
    roles = [message["role"] for message in demo["messages"]]
    written = [message["content"] for message in demo["messages"] if message["role"] == "assistant"]
    return {
        **{name: demo[name] for name in ("task_id", "seed", "shape", "split", "n_turns")},
        "n_messages": len(roles),
        "least_messages": {"no-tool": 3, "unsolvable": 5, "open": 3}.get(demo["shape"], 7),
        "least_tools": 0 if demo["shape"] in ("no-tool", "unsolvable", "open") else 1,
        "n_written": len(written),
        "misplaced_mistakes": sum(place >= len(roles) - 1 or roles[place] != "assistant" for place in demo["mistakes"]),
        "roles": " ".join(roles),
        "n_tools": len(demo["discovered_tools"]),
        "n_empty": sum(not message["content"].strip() for message in demo["messages"]),
        "turns_without_thought": sum(not text.startswith("<think>") for text in written),
        "ends_with_answer": bool(written) and written[-1].rstrip().endswith("</answer>"),
    }


def _pair_row(pair: dict[str, Any], file: str) -> dict[str, Any]:
    asked, answer = pair["messages"][-2]["content"], pair["messages"][-1]["content"]
    return {
        **{name: pair[name] for name in ("tool", "family", "split", "backend", "outcome", "n_tokens")},
        "misplaced": (pair["split"] == "train") != (file == "pairs"),
        "roles": " ".join(message["role"] for message in pair["messages"]),
        "asked": sha256_bytes(asked.encode()),
        "says_error": not answer.startswith('{"error":null,"response":'),
        "is_error": pair["outcome"] != "success",
        "answer_chars": len(answer),
    }


def _episode_row(episode: dict[str, Any]) -> dict[str, Any]:
    turns = episode["turns"]
    events = [event for turn in turns for event in turn["events"]]
    searches = [event for event in events if event["kind"] == "search"]
    calls = [event for event in events if event["kind"] == "call"]
    return {
        **{name: episode[name] for name in ("episode_id", "task_id", "policy", "paradigm", "seed", "end")},
        "answered": episode["answer"] is not None,
        "error": episode["error"] or "",
        "n_turns": len(turns),
        "n_searches": len(searches),
        "n_calls": len(calls),
        "n_failed": sum(call["error"] is not None for call in calls),
        "n_unwell": sum(not turn["well_formed"] for turn in turns),
        "n_problem_turns": sum(bool(turn["problems"]) for turn in turns),
        "completion_tokens": sum(turn["completion_tokens"] for turn in turns),
        "last_family": turns[-1]["family"] if turns else "",
    }
