"""The tools that may become targets of independent calls: drawn with a query, providers in turn, so that the largest do
not crowd out the others."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from paraagent.catalog.splits import service_family, split_of
from paraagent.seeds import rng
from paraagent.task import Split
from paraagent.tasks.needs import need_of

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog

T = TypeVar("T")

_POOL = """
SELECT name, provider, service, description FROM tools
WHERE effect = 'read' AND NOT deprecated AND returns IS NOT NULL
  AND n_required BETWEEN 1 AND {max_required} AND n_parameters <= 8
  AND length(name) <= 40 AND length(description) BETWEEN 15 AND 1500
  AND length(parameters) <= 4000 AND length(returns) <= 12000
  AND tool_id NOT IN (
    SELECT tool_id FROM parameters WHERE required AND type NOT IN ('string', 'integer', 'number', 'boolean'))
ORDER BY name
"""
TOGETHER = 4
"""Tools of one provider drawn in a row, so that requests within one service or provider can be made."""


class Candidate(NamedTuple):
    """A tool that may become a target; nothing of its schemas is read yet."""

    name: str
    need: str


def pools_of(catalog: Catalog, max_required: int, seed: int, rejected: Counter[str]) -> dict[Split, list[Candidate]]:
    """Tools to draft, by split; providers take turns, some tools of one family at a time."""
    families: dict[Split, dict[str, dict[str, list[Candidate]]]] = {split: {} for split in get_args(Split)}
    for name, provider, service, text in catalog.relation(_POOL.format(max_required=max_required)).fetchall():
        need = need_of(text)
        if need is None:
            rejected["description gives no need"] += 1
            continue
        of_provider = families[split_of(provider, service)].setdefault(provider, {})
        of_provider.setdefault(service_family(provider, service), []).append(Candidate(name, need))
    pools: dict[Split, list[Candidate]] = {}
    for split, providers in families.items():
        turns: dict[int, list[list[Candidate]]] = defaultdict(list)
        choices = rng(seed, "pool", split)
        for provider in sorted(providers):
            grouped = _shuffled(list(providers[provider].values()), choices)
            ordered = [candidate for family in grouped for candidate in _shuffled(family, choices)]
            for start in range(0, len(ordered), TOGETHER):
                turns[start].append(ordered[start : start + TOGETHER])
        pools[split] = [each for start in sorted(turns) for group in _shuffled(turns[start], choices) for each in group]
    return pools


def _shuffled(items: Sequence[T], choices: random.Random) -> list[T]:
    return choices.sample(items, len(items))
