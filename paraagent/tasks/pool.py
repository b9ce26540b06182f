"""The tools that may become targets, by split; providers take turns, so that the largest crowd out no other."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from paraagent.catalog.splits import service_family, split_of
from paraagent.errors import UsageError
from paraagent.seeds import rng
from paraagent.task import Split
from paraagent.tasks.needs import need_of

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.config import TasksConfig

T = TypeVar("T")

_POOL = """
SELECT name, provider, service, effect, description FROM tools
WHERE NOT deprecated AND n_required BETWEEN 1 AND ? AND n_parameters <= 12
  AND (effect = 'read' AND returns IS NOT NULL OR effect IN ('create', 'update', 'delete'))
  AND length(name) <= ? AND length(description) BETWEEN 15 AND 1500
  AND length(parameters) <= 6000 AND coalesce(length(returns), 0) <= 16000
  AND tool_id NOT IN (
    SELECT tool_id FROM parameters WHERE required AND type NOT IN ('string', 'integer', 'number', 'boolean'))
  AND (len(?::VARCHAR[]) = 0 OR source IN (SELECT unnest(?::VARCHAR[])))
ORDER BY name
"""
_HOUSES = {"amazonaws.com": "AWS", "googleapis.com": "Google"}
"""Providers whose services are known by names of their own."""
_TOGETHER = 4
"""Tools of one provider drawn in a row, so that requests within one service or provider can be made."""


class Member(NamedTuple):
    """A tool that a task may need; nothing of its schemas is read yet."""

    name: str
    provider: str
    service: str
    effect: str
    need: str

    @property
    def writes(self) -> bool:
        return self.effect != "read"

    def placed(self) -> Member:
        """The same, its need saying whose service is meant."""
        return self._replace(need=f"{self.need} {where(self.provider, self.service)}")


class Candidate(NamedTuple):
    """A tool of which it is not known yet whether its description gives a need."""

    name: str
    provider: str
    service: str
    effect: str
    description: str

    def member(self) -> Member | None:
        need = member_need(self.description, self.effect)
        return None if need is None else Member(self.name, self.provider, self.service, self.effect, need)


class Pool(NamedTuple):
    """The tools of one split that may be asked for alone."""

    reading: list[Candidate]
    changing: list[Candidate]


def read_pools(catalog: Catalog, config: TasksConfig, seed: int) -> dict[Split, Pool]:
    """The pool of each split, in the order in which tools are to be tried.

    Raises:
        UsageError: `config.sources` names a source that the catalog does not have.
    """
    if config.sources:
        there = [source for (source,) in catalog.rows("SELECT DISTINCT source FROM tools ORDER BY source")]
        for name in config.sources:
            if name not in there:
                raise UsageError(f"The setting tasks.sources names {name}: the sources are {', '.join(there)}")
    found: dict[tuple[Split, bool], list[Candidate]] = defaultdict(list)
    for row in catalog.rows(_POOL, [config.max_required, config.max_name, *2 * [config.sources]]):
        candidate = Candidate(*row)
        for split in serves(candidate.provider, candidate.service, config):
            found[split, candidate.effect != "read"].append(candidate)
    return {
        split: Pool(*(_in_order(found[split, writes], rng(seed, "pool", split, writes)) for writes in (False, True)))
        for split in get_args(Split)
    }


def serves(provider: str, service: str, config: TasksConfig) -> tuple[Split, ...]:
    """The splits whose tasks may need tools of a service."""
    return get_args(Split) if config.held_out == "tasks" else (split_of(provider, service),)


def where(provider: str, service: str) -> str:
    """`on Adyen`, `in AWS quicksight`: how a person says whose service is meant."""
    house = _HOUSES.get(provider)
    if house:
        return f"in {house} {service.partition(':')[0]}"
    host = provider.partition("/")[0].split(".")
    brand = host[-2] if len(host) > 1 else host[0]
    return f"on {brand[:1].upper()}{brand[1:]}"


def member_need(description: str, effect: str) -> str | None:
    """The need of a tool that may write; None where the description gives none, or two."""
    need = need_of(description, writing=effect != "read")
    return None if need is None or (effect != "read" and " or " in need) else need


def in_turn(groups: Sequence[Sequence[T]]) -> Iterator[T]:
    """One of each group, then the next of each, to the end."""
    return (item for turn in zip_longest(*groups) for item in turn if item is not None)


def shuffled(items: Sequence[T], choices: random.Random) -> list[T]:
    return choices.sample(items, len(items))


def _in_order(members: Sequence[Candidate], choices: random.Random) -> list[Candidate]:
    """Providers in turn, some tools of one family at a time."""
    providers: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        providers[member.provider][service_family(member.provider, member.service)].append(member)
    turns: dict[int, list[list[Candidate]]] = defaultdict(list)
    for provider in sorted(providers):
        families = shuffled(list(providers[provider].values()), choices)
        ordered = [member for family in families for member in shuffled(family, choices)]
        for start in range(0, len(ordered), _TOGETHER):
            turns[start].append(ordered[start : start + _TOGETHER])
    return [member for start in sorted(turns) for group in shuffled(turns[start], choices) for member in group]
