"""Data contracts: a Great Expectations suite for every data set that crosses a stage boundary.

Suites are JSON under `data_contracts/`. A broken expectation of severity `critical` stops the run with a sentence that
names it, the count and three rows; lesser ones are reported. The full result is written beside the artifact either way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from paraagent.errors import RunError
from paraagent.files import write_atomic
from pipelines.stage import Contract

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.core import ExpectationSuite, ExpectationValidationResult

SUITES = Path(__file__).parents[1] / "data_contracts"
_EXAMPLES = 3
_TEXT = 80
_SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True)
class ContractReport:
    """What a check found; it exists only where nothing critical is broken."""

    suite: str
    success: bool
    """Every expectation holds, those of lesser severity too."""
    rows: int
    expectations: int
    problems: tuple[str, ...]
    """One sentence for each broken expectation of lesser severity."""
    path: Path
    """The full result."""


def check(contract: Contract, out: Path) -> ContractReport:
    """Check the data set of the artifact in `out`; the full result goes to `out/contracts/<suite>.json`.

    Raises:
        RunError: an expectation of severity `critical` is broken, or the suite itself is faulty.
    """
    frame = contract.frame(out)
    results = _validate(load_suite(contract.suite), frame)
    broken = [entry for entry in results if not entry["success"]]
    path = out / "contracts" / f"{contract.suite}.json"
    document = {"suite": contract.suite, "success": not broken, "rows": len(frame), "results": results}
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    write_atomic(path, orjson.dumps(document, default=str, option=options) + b"\n")
    critical = [entry for entry in broken if entry["severity"] == "critical"]
    if critical:
        more = f" (and {len(critical) - 1} more)" if len(critical) > 1 else ""
        raise RunError(
            f"The data contract `{contract.suite}` is broken{more}: {_sentence(critical[0])}; "
            f"the full result is in {path}"
        )
    problems = tuple(_sentence(entry) for entry in broken)
    return ContractReport(contract.suite, not broken, len(frame), len(results), problems, path)


def load_suite(name: str, folder: Path = SUITES) -> ExpectationSuite:
    """Read a suite. Raises `RunError` on a malformed file and on any expectation that the library would drop."""
    _quiet()
    from great_expectations.core import ExpectationSuite

    path = folder / f"{name}.json"
    try:
        written = orjson.loads(path.read_bytes())
        expectations = written["expectations"]
        faults = [entry["type"] for entry in expectations if not _complete(entry)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"The data contract {path} cannot be read ({error}): mend the file") from error
    if faults or not expectations:
        what = f"`{faults[0]}` has no description or no severity" if faults else "it expects nothing"
        raise RunError(f"The data contract {path} is incomplete: {what}")
    suite = ExpectationSuite(**written)
    if len(suite.expectations) != len(expectations):
        known = {expectation.expectation_type for expectation in suite.expectations}
        unknown = next((entry["type"] for entry in expectations if entry["type"] not in known), "one of them twice")
        raise RunError(
            f"The data contract {path} holds an expectation that does not exist or has wrong arguments ({unknown}): "
            "correct its type and kwargs"
        )
    return suite


def _complete(entry: dict[str, Any]) -> bool:
    return bool(entry["type"] and entry.get("description")) and entry.get("severity") in _SEVERITIES


def _quiet() -> None:
    """No usage statistics, neither now nor in processes that start from here; before the first import."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"


def _validate(suite: ExpectationSuite, frame: pd.DataFrame) -> list[dict[str, Any]]:
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_pandas(suite.name)
    definition = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("whole")
    batch = definition.get_batch({"dataframe": frame})
    key = (suite.meta or {}).get("key", [])
    found = batch.validate(
        suite,
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": key,
            "return_unexpected_index_query": False,
        },
    )
    return sorted(map(_entry, found.results), key=_order)


def _entry(found: ExpectationValidationResult) -> dict[str, Any]:
    """One expectation's result as plain values, without anything that differs between two runs on the same data."""
    config = found.expectation_config
    assert config is not None
    return {
        "type": config.type,
        "description": config.description,
        "severity": str(getattr(config.severity, "value", config.severity)),
        "kwargs": {key: value for key, value in config.kwargs.items() if key != "batch_id"},
        "success": bool(found.success),
        "result": found.result,
        "exception": _exception(found.exception_info or {}),
    }


def _exception(info: Mapping[str, Any]) -> str:
    """Message of an expectation that could not be evaluated, for want of a column say; empty where it could."""
    nested = [info, *(value for value in info.values() if isinstance(value, dict))]
    return next((str(entry["exception_message"]) for entry in nested if entry.get("raised_exception")), "")


def _order(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["type"], orjson.dumps(entry["kwargs"], default=str, option=orjson.OPT_SORT_KEYS).decode()


def _sentence(entry: dict[str, Any]) -> str:
    """What is expected, how many rows break it, and three of them."""
    kwargs, result = entry["kwargs"], entry["result"] or {}
    columns = [str(kwargs[key]) for key in ("column", "column_A", "column_B") if key in kwargs]
    where = f" on {' and '.join(columns)}" if columns else ""
    head = f"{entry['description'].rstrip('.')} ({entry['type']}{where})"
    if entry["exception"]:
        return f"{head}: it cannot be evaluated: {entry['exception'].splitlines()[0]}"
    if "unexpected_count" not in result:
        return f"{head}: found {_short(result.get('details') or result.get('observed_value'))}"
    rows = result.get("partial_unexpected_index_list") or result.get("partial_unexpected_list") or []
    examples = "; ".join(_short(row) for row in rows[:_EXAMPLES])
    return f"{head}: {result['unexpected_count']} of {result['element_count']} rows, for example {examples}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(part)}" for key, part in value.items()) + "}"
    text = " ".join(str(value).split())
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
