"""Stage `demos`: demonstrations that a team plays on training and validation tasks, or that a file brings.

Artifact: `demos.parquet` and `validation.parquet` (a Hugging Face data set with `README.md`, its data card),
`episodes.jsonl` (the episodes behind them), `statistics.json`, `rejected.json` (what was left out, by reason) and
`rejected.jsonl` (each of them).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from paraagent.config import Profile
from paraagent.errors import RunError, UsageError
from paraagent.files import append_lines, read_lines, sha256_file, write_atomic, write_json, write_lines
from paraagent.task import Task
from pipelines import frames
from pipelines.catalog import processes as machine_processes
from pipelines.environment import LLM_CACHE, open_backends, recordings
from pipelines.stage import Contract, Stage, StageContext, StageResult, UnitLog, batched

if TYPE_CHECKING:
    from paraagent.demos.attempts import Attempt, Unit
    from paraagent.demos.dataset import Statistics

ROUNDS = 2
"""How often a unit that an endpoint broke off is taken up in one run."""
_BATCH = 32
"""Units that a process plays together."""
_SPLITS = ("train", "validation")
_PLACE = re.compile(r"\A(?:message|turn) \d+:? ")
_NAMED = re.compile(r"'[^']*'|`[^`]*`|\d+")


def build(context: StageContext) -> StageResult:
    """Play the tasks, or read the file, and write what is worth learning from.

    Raises:
        RunError: nothing qualifies, or the team's endpoint broke off too often; finished units are kept.
        UsageError: the file of `demos.source` is none that can be read.
    """
    source = context.profile.demos.source
    if source != "team":
        return _import(context, Path(source.partition(":")[2]))
    return _play(context)


def _play(context: StageContext) -> StageResult:
    from paraagent.catalog.store import Catalog
    from paraagent.demos.attempts import Studio, plan_units

    profile = context.profile
    rows = (Task.model_validate(row) for row in read_lines(context.inputs["tasks"] / "tasks.jsonl"))
    tasks = sorted((task for task in rows if task.split in _SPLITS), key=lambda task: _SPLITS.index(task.split))
    units = plan_units(tasks, profile.demos.attempts, context.seed("demos"))
    with Catalog.open(context.inputs["catalog"] / "catalog.duckdb") as catalog:
        open_backends(context, catalog)
    studio = Studio(
        catalog=context.inputs["catalog"],
        model=context.inputs["model"] / "model",
        env=profile.env,
        demos=profile.demos,
        rewards=profile.rewards,
        cache=context.home / LLM_CACHE,
    )
    log = UnitLog(context.out, "attempts")
    play_owed(units, studio, log, context)
    return _write(context, units, log)


def play_owed(units: Sequence[Unit], studio: Any, log: UnitLog, context: StageContext) -> None:
    """Play the units that are not finished.

    Raises:
        RunError: the endpoint broke off units in every round.
    """
    from paraagent.workers import Workers

    finished = log.scan(lambda row: None).keys()
    owed = [unit for unit in units if unit.key not in finished]
    if len(owed) < len(units):
        context.progress.message(f"{len(units) - len(owed)} of {len(units)} episodes were played before")
    context.progress.start(len(units), "episodes")
    context.progress.advance(len(units) - len(owed))
    team = context.profile.demos.team
    processes, size = machine_processes(context.profile.machine), _BATCH
    if team.model:  # what counts is how many questions are under way, which one process sees to
        processes, size = 1, 2 * team.concurrency
    for _ in range(ROUNDS):
        lost: set[str] = set()
        with Workers(studio.open, processes) as workers:
            for attempts in workers.run(batched(owed, size)):
                if played := [(each.key, _kept(each)) for each in attempts if not each.lost]:
                    log.add(played)
                for each in attempts:
                    if each.lost:
                        log.fail(each.key, each.lost)
                        lost.add(each.key)
                context.progress.advance(len(played))
                if attempts and all(each.lost for each in attempts):
                    raise RunError(f"{attempts[0].lost}; run the same command again, finished episodes are kept")
        owed = [unit for unit in owed if unit.key in lost]
        if not owed:
            return
    raise RunError(
        f"{len(owed)} of {len(units)} episodes were broken off {ROUNDS} times by the endpoint: read {log.failed_path}, "
        "then run the same command again; finished episodes are kept"
    )


def _kept(attempt: Attempt) -> dict[str, Any]:
    return {
        "reason": attempt.reason,
        "facts": attempt.facts,
        "demo": orjson.Fragment(attempt.row),
        "episode": orjson.Fragment(attempt.episode),
    }


def _write(context: StageContext, units: Sequence[Unit], log: UnitLog) -> StageResult:
    """Select among the attempts and write the artifact, one attempt in memory at a time."""
    from paraagent.demos.dataset import FILES, Statistics, write_demos
    from paraagent.demos.selection import select

    config = context.profile.demos
    found = log.scan(lambda row: (row["reason"], row["facts"]))
    keys = [unit.key for unit in units]
    chosen = select([found[key][1] for key in keys], config.limit, config.max_likeness)
    rejected = dict(sorted(Counter(chosen.reasons.values()).items()))
    write_json(context.out / "rejected.json", rejected)
    write_lines(
        context.out / "rejected.jsonl",
        (
            {"unit": keys[place], "reason": reason, "episode": row["episode"]}
            for (place, reason), row in zip(
                sorted(chosen.reasons.items()),
                log.at(found[keys[place]][0] for place in sorted(chosen.reasons)),
                strict=True,
            )
        ),
    )
    statistics = Statistics()
    (context.out / "episodes.jsonl").unlink(missing_ok=True)
    files = []
    for split, name in FILES.items():
        places = [place for place in chosen.kept if units[place].task.split == split]
        rows = _demos(context, log, [found[keys[place]][0] for place in places], statistics)
        if places and write_demos(rows, context.out / name):
            files.append(name)
    if FILES["train"] not in files:
        helps = "let another model play the team" if config.team.model else "raise tasks.train"
        if "too long" in rejected:
            helps = f"raise demos.max_tokens, or {helps}"
        raise RunError(
            f"none of {len(units)} episodes gave a demonstration ({rejected}): {helps}; "
            f"{context.out / 'rejected.jsonl'} has the episodes"
        )
    log.path.unlink()
    log.failed_path.unlink(missing_ok=True)
    return _finish(context, statistics, rejected, files, len(units))


def _demos(
    context: StageContext, log: UnitLog, offsets: Sequence[int], statistics: Statistics
) -> Iterator[dict[str, Any]]:
    """The rows at these offsets; their episodes are written on the way."""
    for some in batched(list(offsets), _BATCH):
        rows = list(log.at(some))
        append_lines(context.out / "episodes.jsonl", (row["episode"] for row in rows))
        for row in rows:
            statistics.add(row["demo"], row["facts"]["licences"])
            yield row["demo"]


def _import(context: StageContext, path: Path) -> StageResult:
    from paraagent.agents.language_model import load_tokenizer
    from paraagent.agents.transcript import Transcriber
    from paraagent.demos.dataset import FILES, Statistics, write_demos
    from paraagent.demos.sharegpt import episode_of, read_sharegpt

    transcriber = Transcriber(load_tokenizer(context.inputs["model"] / "model"))
    (context.out / "episodes.jsonl").unlink(missing_ok=True)
    statistics, refused = Statistics(), list[dict[str, Any]]()
    total = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal total
        for found in read_sharegpt(path, transcriber, context.profile.demos.max_tokens):
            total += 1
            if found.row is None:
                refused.append({"unit": f"row {found.number}", "reason": found.reason})
                continue
            statistics.add(found.row, ["imported: not stated"])
            append_lines(context.out / "episodes.jsonl", [episode_of(found.row).model_dump(mode="json")])
            yield found.row

    kept = write_demos(rows(), context.out / FILES["train"])
    rejected = dict(sorted(Counter(_kind(each["reason"]) for each in refused).items()))
    write_json(context.out / "rejected.json", rejected)
    write_lines(context.out / "rejected.jsonl", refused)
    if not kept:
        raise RunError(f"none of {total} rows of {path} is a demonstration: read {context.out / 'rejected.jsonl'}")
    context.progress.message(
        f"{kept} of {total} rows taken over; the others are in rejected.jsonl, each with its reason"
    )
    return _finish(context, statistics, rejected, [FILES["train"]], total)


def _kind(reason: str) -> str:
    """A reason without its places, so that equal ones are counted together."""
    return _NAMED.sub("…", _PLACE.sub("", reason))


def _finish(
    context: StageContext, statistics: Statistics, rejected: dict[str, int], files: Sequence[str], units: int
) -> StageResult:
    from paraagent.demos.dataset import CARD, data_card

    summary = statistics.summary()
    if rejected:
        frequent = sorted(rejected.items(), key=lambda item: -item[1])
        told = ", ".join(f"{count} {reason}" for reason, count in frequent[:5])
        context.progress.message(f"{units - summary['demos']} of {units} left out: {told}")
    write_json(context.out / "statistics.json", summary)
    config = context.profile.demos
    player = config.team.model or "the scripted team" if config.source == "team" else "imported conversations"
    made = {
        "episodes": player,
        "seed": str(context.profile.seed),
        "catalog": context.inputs["catalog"].name,
        "tasks": context.inputs["tasks"].name,
        "tokenizer of": context.profile.model.source,
        "kept": f"{summary['demos']:,} of {units:,}",
        "left out": "; ".join(f"{reason}: {count:,}" for reason, count in rejected.items()) or "none",
    }
    write_atomic(context.out / CARD, data_card(summary, made, files).encode())
    shown = ("recovered_share", "recoveries", "shapes", "tokens", "model_tokens", "tokens_median", "tokens_p95")
    return StageResult(
        rows={"demos": summary["demos"]},
        metrics={
            "rejected": rejected,
            "yield": round(summary["demos"] / units, 4),
            **{name: summary[name] for name in shown},
        },
    )


def _outside(profile: Profile, home: Path) -> dict[str, str]:
    """Content hashes of recordings and of the file that demonstrations are imported from."""
    hashes = recordings(profile, home)
    if profile.demos.source != "team":
        path = Path(profile.demos.source.partition(":")[2])
        if not path.is_file():
            found = "a folder: give the file in it" if path.is_dir() else "where there is no file"
            raise UsageError(f"demos.source names {path}, {found}")
        hashes[f"sharegpt:{path.name}"] = sha256_file(path)
    return hashes


STAGE = Stage(
    name="demos",
    version=5,
    title="Let the team play training tasks",
    build=build,
    inputs=("catalog", "tasks", "model"),
    sections=("demos", "env", "rewards"),
    contracts=(Contract("demos", frames.demos), Contract("episodes", frames.episodes)),
    external=_outside,
)
