"""Collect: from artifact directories to the plain facts that the page shows. Nothing here depends on the clock.

Every figure in the report is read from an artifact; none is typed in, and none is left out because it is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import orjson

from paraagent.catalog.store import Catalog
from paraagent.config import Profile
from paraagent.files import read_lines
from paraagent.report.episodes import EpisodeView, choose_examples
from paraagent.task import Task

_SAMPLES = 5
_PROVIDERS = 12
_LICENCES = 3


@dataclass(frozen=True)
class Facts:
    """All that the page is made of."""

    profile: Profile
    fingerprint: str
    stages: list[dict[str, Any]]
    """One a stage: name, fingerprint, rows."""
    contracts: list[dict[str, Any]]
    """One a data contract: stage, suite, rows, success, and its checks."""
    versions: dict[str, str]
    catalog: dict[str, Any]
    tasks: dict[str, Any]
    demos: dict[str, Any]
    sft: list[dict[str, Any]]
    """Rows of the training log."""
    validation: list[dict[str, Any]]
    """One row for each time that validation tasks were played along it."""
    rl: list[dict[str, Any]]
    """One row an update."""
    summary: dict[str, Any]
    """`summary.json` of the evaluation."""
    examples: list[EpisodeView]


def collect(artifacts: Mapping[str, Path], profile: Profile, fingerprint: str) -> Facts:
    """Read the complete artifacts of a run.

    Args:
        artifacts: directories by stage: catalog, tasks, model, demos, sft, rl, evaluate.
        profile: the settings of the run.
        fingerprint: of the report itself.
    """
    manifests = {name: orjson.loads((path / "manifest.json").read_bytes()) for name, path in artifacts.items()}
    tasks = [Task.model_validate(row) for row in read_lines(artifacts["tasks"] / "tasks.jsonl")]
    with Catalog.open(artifacts["catalog"] / "catalog.duckdb") as catalog:
        numbers = catalog_facts(catalog)
    return Facts(
        profile=profile,
        fingerprint=fingerprint,
        stages=[
            {"name": name, "fingerprint": manifest["fingerprint"], "rows": manifest["rows"]}
            for name, manifest in manifests.items()
        ],
        contracts=[
            _contract(name, path)
            for name, folder in artifacts.items()
            for path in sorted((folder / "contracts").glob("*.json"))
        ],
        versions=dict(sorted(manifests["evaluate"]["versions"].items())),
        catalog=numbers,
        tasks=task_facts(tasks) | {"rejected": _counts(artifacts["tasks"] / "rejected.json")},
        demos={"rows": manifests["demos"]["rows"], "rejected": _counts(artifacts["demos"] / "rejected.json")},
        sft=list(read_lines(artifacts["sft"] / "log.jsonl")),
        validation=list(read_lines(artifacts["sft"] / "validation.jsonl")),
        rl=list(read_lines(artifacts["rl"] / "log.jsonl")),
        summary=orjson.loads((artifacts["evaluate"] / "summary.json").read_bytes()),
        examples=choose_examples(artifacts["evaluate"], tasks, profile.evaluate.systems, profile.report.examples),
    )


def catalog_facts(catalog: Catalog) -> dict[str, Any]:
    """The catalog in numbers: totals, by source, by provider, by effect, and what was refused."""
    totals = _query(
        catalog,
        """SELECT count(*) AS tools, count(returns) AS with_returns, count(DISTINCT provider) AS providers,
                  count(DISTINCT (provider, service)) AS services, sum(n_parameters)::BIGINT AS parameters,
                  median(n_parameters) AS median_parameters
           FROM tools""",
    )[0]
    by_source = _query(
        catalog,
        f"""WITH licences AS (
                SELECT source, source_version AS version, licence, count(*) AS tools, count(returns) AS with_returns
                FROM tools GROUP BY ALL)
            SELECT source, version, list(licence ORDER BY tools DESC, licence)[:{_LICENCES}] AS licences,
                   count(*) - {_LICENCES} AS more_licences, sum(tools)::BIGINT AS tools,
                   sum(with_returns)::BIGINT AS with_returns
            FROM licences GROUP BY ALL ORDER BY tools DESC, source, version""",
    )
    by_provider = _query(
        catalog,
        f"""SELECT provider AS label, count(*) AS tools FROM tools
            GROUP BY ALL ORDER BY tools DESC, label LIMIT {_PROVIDERS}""",
    )
    by_effect = _query(catalog, "SELECT effect AS label, count(*) AS tools FROM tools GROUP BY ALL ORDER BY 2 DESC, 1")
    quarantine = _query(
        catalog, "SELECT reason AS label, count(*) AS tools FROM quarantine GROUP BY ALL ORDER BY 2 DESC, 1"
    )
    return {
        "totals": totals,
        "by_source": by_source,
        "by_provider": by_provider,
        "by_effect": by_effect,
        "quarantine": quarantine,
    }


def task_facts(tasks: list[Task]) -> dict[str, Any]:
    """Tasks by shape and split, and a few of the test split in which the shapes take turns."""
    shapes = sorted({(task.width, task.shape) for task in tasks})
    queues = [[task for task in tasks if task.split == "test" and task.width == width] for width, _ in shapes]
    samples = (task for turn in zip_longest(*queues) for task in turn if task is not None)
    counts = Counter((task.split, task.width, task.shape) for task in tasks)
    return {
        "total": len(tasks),
        "by_shape": [
            {
                "label": shape if width <= 1 else f"{shape}-{width}",
                **{split: counts[split, width, shape] for split in ("train", "validation", "test")},
            }
            for width, shape in shapes
        ],
        "samples": list(islice(samples, _SAMPLES)),
    }


def _contract(stage: str, path: Path) -> dict[str, Any]:
    """The full result that the check of a contract left beside the artifact, in short."""
    result = orjson.loads(path.read_bytes())
    checks = [{key: entry[key] for key in ("description", "success", "severity")} for entry in result["results"]]
    return {"stage": stage, **{key: result[key] for key in ("suite", "rows", "success")}, "checks": checks}


def _counts(path: Path) -> dict[str, int]:
    """Reasons with their counts, most frequent first."""
    counts: dict[str, int] = orjson.loads(path.read_bytes())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _query(catalog: Catalog, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = catalog.relation(sql).pl().to_dicts()
    return rows
