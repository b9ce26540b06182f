"""Links: which tool's result feeds which tool's parameter, and the sketches of requests that they allow.

A link is an edge of the catalog's graph whose both ends somebody could ask for in words. A sketch joins links into a
small graph of calls: a chain, one call that feeds several, or several that feed one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import TYPE_CHECKING, NamedTuple

from paraagent.task import Reach, Split
from paraagent.tasks.pool import Member, in_turn, member_need, serves, shuffled

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.config import TasksConfig

_LINKABLE = """
WITH pool AS (
    SELECT * FROM tools
    WHERE (len(?::VARCHAR[]) = 0 OR source IN (SELECT unnest(?::VARCHAR[])))
      AND NOT deprecated AND n_required <= ? AND n_parameters <= 12 AND length(name) <= ?
      AND length(description) BETWEEN 15 AND 1500 AND length(parameters) <= 6000
      AND coalesce(length(returns), 0) <= 16000
      AND tool_id NOT IN (
        SELECT tool_id FROM parameters WHERE required AND type NOT IN ('string', 'integer', 'number', 'boolean'))
)
SELECT p.name, p.provider, p.service, p.effect, p.description,
    c.name, c.provider, c.service, c.effect, c.description, field, parameter, kind
FROM edges JOIN pool p ON p.tool_id = producer JOIN pool c ON c.tool_id = consumer
JOIN parameters q ON q.tool_id = consumer AND q.name = parameter AND q.required
WHERE p.returns IS NOT NULL AND p.effect IN ('read', 'create') AND c.effect != 'other'
  AND (c.effect != 'read' OR c.returns IS NOT NULL)
  AND NOT regexp_matches(parameter, '(?i)^(lat|lon|lng|latitude|longitude)$')
ORDER BY c.name, parameter, confidence DESC, p.name, field
"""
_MOST_USES = 4
"""Sketches in which one tool may be the last one."""


class Link(NamedTuple):
    """A value that leads from one call to the next."""

    producer: str
    field: str
    """Path in the producer's result, `[]` for the elements of a list."""
    consumer: str
    parameter: str
    kind: str


class Join(NamedTuple):
    """A link between two places of a sketch."""

    first: int
    second: int
    link: Link
    element: int
    """Which element of the list is meant."""


class Sketch(NamedTuple):
    """Calls that hang together, in an order that their joins allow."""

    members: tuple[Member, ...]
    joins: tuple[Join, ...]

    @property
    def reach(self) -> Reach:
        return reach_of(self.members)

    @property
    def writes(self) -> bool:
        return any(member.writes for member in self.members)


def reach_of(members: Sequence[Member]) -> Reach:
    """How far apart tools lie."""
    if len({(member.provider, member.service) for member in members}) == 1:
        return "service"
    return "provider" if len({member.provider for member in members}) == 1 else "providers"


class Links:
    """All links of one split."""

    def __init__(self, members: Mapping[str, Member], links: Sequence[Link]) -> None:
        self.members = members
        self.into: dict[str, dict[str, list[Link]]] = defaultdict(dict)
        """Consumer -> parameter -> links, the surest first."""
        self.out: dict[tuple[str, str], list[Link]] = defaultdict(list)
        """(producer, field) -> links."""
        for link in links:
            self.into[link.consumer].setdefault(link.parameter, []).append(link)
            self.out[link.producer, link.field].append(link)

    def sketches(self, shape: str, *, writing: bool, choices: random.Random) -> Iterator[Sketch]:
        """Sketches of one shape, providers in turn; those that reach beyond a service, and each way of combining
        reading with writing, as early as the others."""
        special = {"chain-3": self._long_chains, "fan-out": self._fans_out, "fan-in": self._fans_in}
        made = special.get(shape, self._chains)
        sorts: dict[tuple[str, ...], dict[str, list[Sketch]]] = defaultdict(lambda: defaultdict(list))
        for consumer in sorted(self.into):
            found = [sketch for sketch in made(consumer, choices) if sketch.writes == writing]
            for sketch in found[:_MOST_USES]:
                sort = (sketch.reach, *(member.effect for member in sketch.members if writing))
                sorts[sort][self.members[consumer].provider].append(sketch)
        return in_turn([list(in_turn([shuffled(group, choices) for group in of.values()])) for of in sorts.values()])

    def _sketch(self, names: Sequence[str], joins: Sequence[Join]) -> Sketch:
        return Sketch(tuple(self.members[name] for name in names), tuple(joins))

    def _chains(self, consumer: str, choices: random.Random) -> list[Sketch]:
        links = [link for parameter in self.into[consumer].values() for link in parameter if link.producer != consumer]
        choices.shuffle(links)
        links.sort(key=lambda link: self.members[link.producer].provider == self.members[consumer].provider)
        return [self._sketch([link.producer, consumer], [Join(0, 1, link, 0)]) for link in links]

    def _long_chains(self, consumer: str, choices: random.Random) -> list[Sketch]:
        found = []
        for short in self._chains(consumer, choices)[:_MOST_USES]:
            middle = short.joins[0].link.producer
            for long in self._chains(middle, choices)[:2] if middle in self.into else []:
                first = long.joins[0].link
                if first.producer != consumer:
                    joins = [Join(0, 1, first, 0), Join(1, 2, short.joins[0].link, 0)]
                    found.append(self._sketch([first.producer, middle, consumer], joins))
        return found

    def _fans_out(self, consumer: str, choices: random.Random) -> list[Sketch]:
        """Two tools on one value, or one tool on the first two elements of a list."""
        found = []
        for short in self._chains(consumer, choices)[:_MOST_USES]:
            link = short.joins[0].link
            if "[]" in link.field and link.kind == "list" and short.members[1].effect == "read":
                joins = [Join(0, 1, link, 0), Join(0, 2, link, 1)]
                found.append(self._sketch([link.producer, consumer, consumer], joins))
            others = [other for other in self.out[link.producer, link.field] if other.consumer > consumer]
            for other in choices.sample(others, min(2, len(others))):
                if other.consumer != link.producer:
                    joins = [Join(0, 1, link, 0), Join(0, 2, other, 0)]
                    found.append(self._sketch([link.producer, consumer, other.consumer], joins))
        return shuffled(found, choices)

    def _fans_in(self, consumer: str, choices: random.Random) -> list[Sketch]:
        """Two parameters from two tools; the one may need what the other gives, as a list within a project does."""
        found = []
        for first, second in permutations(sorted(self.into[consumer]), 2):
            for one, two in product(self.into[consumer][first][:2], self.into[consumer][second][:2]):
                if len({one.producer, two.producer, consumer}) < 3:
                    continue
                within = [link for links in self.into[two.producer].values() for link in links if _same(link, one)]
                if not within and second < first:
                    continue  # the other way round it is the same
                joins = [Join(0, 2, one, 0), *(Join(0, 1, link, 0) for link in within[:1]), Join(1, 2, two, 0)]
                found.append(self._sketch([one.producer, two.producer, consumer], joins))
        return shuffled(found, choices)


def _same(link: Link, other: Link) -> bool:
    """Whether two links start at the same value."""
    return (link.producer, link.field) == (other.producer, other.field)


def read_links(catalog: Catalog, config: TasksConfig) -> dict[Split, Links]:
    """The links of every split; both ends of a link serve it."""
    members: dict[str, Member | None] = {}
    links: dict[Split, list[Link]] = defaultdict(list)
    for row in catalog.rows(_LINKABLE, [*2 * [config.sources], config.max_required, config.max_name]):
        ends, (field, parameter, kind) = (row[:5], row[5:10]), row[10:]
        for name, provider, service, effect, text in ends:
            if name not in members:
                need = member_need(text, effect)
                members[name] = Member(name, provider, service, effect, need) if need else None
        producer, consumer = members[ends[0][0]], members[ends[1][0]]
        if producer is None or consumer is None or field.count("[]") > 1:
            continue
        both = [set(serves(end.provider, end.service, config)) for end in (producer, consumer)]
        for split in set.intersection(*both):
            links[split].append(Link(producer.name, field, consumer.name, parameter, kind))
    known = {name: member for name, member in members.items() if member is not None}
    return {split: Links(known, chosen) for split, chosen in links.items()}
