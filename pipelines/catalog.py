"""Stage `catalog`: every tool interface of the configured sources in one DuckDB file, with its search index beside it.

Artifact: `catalog.duckdb` (tables of `sql/schema.sql`), `catalog.pack` (its tools for quick look-ups) and `index/`
(what `ToolIndex.load` maps into memory).
"""

from __future__ import annotations

import os
from pathlib import Path

from paraagent.config import MachineConfig, Profile
from pipelines import frames
from pipelines.stage import Contract, Stage, StageContext, StageResult


def processes(machine: MachineConfig) -> int:
    """Worker processes to use: as configured, else one for each core that this process may run on."""
    if machine.processes:
        return machine.processes
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build(context: StageContext) -> StageResult:
    """Build the catalog, then index it."""
    from paraagent.catalog.build import build_catalog
    from paraagent.catalog.store import pack_catalog
    from paraagent.retrieval.index import build_index

    config = context.profile.catalog
    workers = processes(context.profile.machine)
    built = build_catalog(config, context.downloads, context.out, workers, context.progress)
    context.progress.message("indexing tools for search")
    pack_catalog(context.out / "catalog.duckdb")
    build_index(context.out / "catalog.duckdb", context.out / "index", context.progress)
    return StageResult(
        rows=built["rows"],
        metrics={"with_returns": built["with_returns"], "quarantine": built["quarantine"], "seconds": built["seconds"]},
    )


def external(profile: Profile, home: Path) -> dict[str, str]:
    """Content hashes of the files that `openapi:` sources name; archives are pinned by version and need none."""
    from paraagent.catalog.crawl import parse_spec, snapshot

    specs = [parse_spec(text) for text in profile.catalog.sources]
    return {spec.text: snapshot(Path(spec.name)) for spec in specs if spec.scheme == "openapi"}


STAGE = Stage(
    name="catalog",
    version=2,
    title="Collect tool interfaces, clean them, index them",
    build=build,
    sections=("catalog",),
    contracts=(Contract("tools", frames.tools), Contract("parameters", frames.parameters)),
    external=external,
    network=True,
)
