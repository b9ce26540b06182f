"""Stage `catalog`: every tool interface of the configured sources in one DuckDB file, with its search index beside it.

Artifact: `catalog.duckdb` (tables of `sql/schema.sql`), `catalog.pack` (its tools for quick look-ups) and `index/`
(what `ToolIndex.load` maps into memory).
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
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
    """Build the catalog, then index it. Added sources go on top of the nearest catalog that is there without them."""
    from paraagent.catalog.build import build_catalog
    from paraagent.catalog.store import pack_catalog
    from paraagent.retrieval.index import build_index

    config = context.profile.catalog
    take_in = partial(
        build_catalog, config, context.downloads, context.out, processes(context.profile.machine), context.progress
    )
    base, there = _nearest(context.profile, context.home)
    file = context.out / "catalog.duckdb"
    built = None if base else take_in()
    for position in range(there, len(config.added)):
        before = base / file.name if base and built is None else file
        built = take_in(sources=config.added[position : position + 1], base=before)
    assert built is not None
    context.progress.message("indexing tools for search")
    pack_catalog(file, base / file.name if base else None)
    build_index(file, context.out / "index", context.progress, reuse=base / "index" if base else None)
    return StageResult(
        rows=built["rows"],
        metrics={"with_returns": built["with_returns"], "quarantine": built["quarantine"], "seconds": built["seconds"]},
        content={file.name: built["content"]},
    )


def _nearest(profile: Profile, home: Path) -> tuple[Path | None, int]:
    """The complete catalog of the same settings with most of the added sources but not all, and how many it has."""
    from pipelines.manifest import Damage, read_manifest, verify
    from pipelines.plan import fingerprint

    added = profile.catalog.added
    for count in reversed(range(len(added))):
        fewer = profile.model_copy(update={"catalog": profile.catalog.model_copy(update={"added": added[:count]})})
        directory = home / "artifacts" / STAGE.name / fingerprint(STAGE, fewer, {}, external(fewer, home))
        with suppress(Damage):
            if (manifest := read_manifest(directory)) is not None:
                verify(directory, manifest)
                return directory, count
    return None, 0


def external(profile: Profile, home: Path) -> dict[str, str]:
    """Content hashes of what a person's own sources name; archives are pinned by version and need none."""
    from paraagent.catalog.crawl import snapshot
    from paraagent.catalog.spec import parse_spec

    specs = [parse_spec(text) for text in (*profile.catalog.sources, *profile.catalog.added)]
    return {spec.text: snapshot(spec, home / "downloads") for spec in specs if spec.own}


STAGE = Stage(
    name="catalog",
    version=4,
    title="Collect tool interfaces, clean them, index them",
    build=build,
    sections=("catalog",),
    contracts=(Contract("tools", frames.tools), Contract("parameters", frames.parameters)),
    external=external,
    network=True,
)
