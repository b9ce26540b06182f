"""The laws over a whole catalog: tools drawn at random, each with its service's others about the same kind of thing.

Every family is played in two processes, the second time in the opposite order, and the bytes are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from paraagent.catalog.store import Catalog
from paraagent.progress import Progress
from paraagent.seeds import derive, rng
from paraagent.toolenv.laws.findings import LAWS, Findings
from paraagent.toolenv.laws.play import check_laws
from paraagent.toolenv.meaning import Meaning

_LARGEST = 12
"""Tools that are played together; a kind of thing with more has several families."""
_BATCH = 10
"""Families of one piece of work."""

Family = tuple[str, ...]
"""Names of tools of one service that are about the same kind of thing."""


def take_census(path: Path, n: int, seeds: int, seed: int, processes: int, progress: Progress) -> dict[str, Any]:
    """Check the laws on `n` tools of the catalog (all where 0) with the rest of their families, in `seeds` worlds each.

    Returns:
        `tools`, `families`, `seeds`; `laws`: by number the text, the checks made, the tools checked and the violations;
        `outside`: by reason the tools that some law cannot be asked of.
    """
    progress.message("drawing tools and their families")
    with Catalog.open(path) as catalog:
        families = list(draw_families(catalog, n, seed))
    worlds = [derive(seed, "laws", number) for number in range(seeds)]
    batches = [families[start : start + _BATCH] for start in range(0, len(families), _BATCH)]
    played = sum(map(len, families))
    progress.start(2 * played, "tools")
    with ProcessPoolExecutor(max(processes, 1), mp_context=get_context("spawn")) as pool:
        first = [pool.submit(play_families, path, batch, worlds) for batch in batches]
        second = [pool.submit(play_families, path, batch[::-1], worlds) for batch in batches[::-1]]
        for task, batch in zip([*first, *second], [*batches, *batches[::-1]], strict=True):
            task.result()
            progress.advance(sum(map(len, batch)))
    found = [each for task in first for each in task.result()]
    again = [each for task in second for each in task.result()][::-1]
    for family, one, other in zip(families, found, again, strict=True):
        one.check(1, family[0], one.digest == other.digest, "another answer in another process")
    return {"tools": played, "families": len(families), "seeds": seeds, **_summary(found)}


def draw_families(catalog: Catalog, n: int, seed: int) -> Iterator[Family]:
    """Families of tools drawn at random until they hold `n` tools; all where `n` is 0."""
    place = {name: f"{provider}/{service}" for name, provider, service in catalog.rows(_PLACES)}
    services = defaultdict(list)
    for name, service in place.items():
        services[service].append(name)
    drawn = sorted(place)
    rng(seed, "families").shuffle(drawn)
    kinds: dict[str, dict[str, Family]] = {}
    taken, seen = 0, set[str]()
    for name in drawn:
        if n and taken >= n:
            return
        if name in seen:
            continue
        service = place[name]
        if service not in kinds:
            kinds[service] = _kinds(catalog, services[service])
        family = kinds[service][name]
        seen.update(family)
        taken += len(family)
        yield family


_PLACES = "SELECT name, provider, service FROM tools ORDER BY name"


def _kinds(catalog: Catalog, names: Sequence[str]) -> dict[str, Family]:
    """The family of each tool of one service."""
    groups = defaultdict(list)
    for name, tool in catalog.get_many(names).items():
        groups[Meaning(tool).kind].append(name)
    cut = [group[start : start + _LARGEST] for group in groups.values() for start in range(0, len(group), _LARGEST)]
    return {name: tuple(part) for part in cut for name in part}


def play_families(path: Path, families: Sequence[Family], seeds: Sequence[int]) -> list[Findings]:
    """What the laws give on each family, over all seeds."""
    found = []
    with Catalog.open(path) as catalog:
        for family in families:
            tools = list(catalog.get_many(family).values())
            whole = Findings()
            for seed in seeds:
                whole.add(check_laws(tools, seed))
            found.append(whole)
    return found


def _summary(found: Sequence[Findings]) -> dict[str, Any]:
    whole = Findings()
    for each in found:
        whole.add(each)
    reasons = Counter(whole.outside.values())
    return {
        "laws": {
            str(law): {
                "law": text,
                "checks": sum(count for (number, _), count in whole.checks.items() if number == law),
                "tools": sum(number == law for number, _ in whole.checks),
                "violations": [each._asdict() for each in whole.violations if each.law == law],
            }
            for law, text in LAWS.items()
        },
        "outside": dict(reasons.most_common()),
    }
