"""Selection: which attempts become demonstrations, in an order of which every beginning is balanced.

Attempts of one kind (shape, width, reach, recoveries) form a group; the groups take turns until each is empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paraagent.demos.sketch import likeness

Facts = Mapping[str, Any]


class Selection(NamedTuple):
    kept: list[int]
    """Places of the demonstrations among the attempts, in the order of the data set."""
    reasons: dict[int, str]
    """Why each of the others was left out."""


def select(attempts: Sequence[tuple[str, Facts]], limit: int, max_likeness: float) -> Selection:
    """Choose among attempts, each (why it is no demonstration, facts); at most `limit` of each split, 0 for all."""
    reasons = {place: reason for place, (reason, _) in enumerate(attempts) if reason}
    alike: dict[tuple[str, ...], list[Sequence[int]]] = defaultdict(list)
    for place, (reason, facts) in enumerate(attempts):
        if reason:
            continue
        others = alike[tuple(facts["targets"])]
        if any(likeness(facts["sketch"], other) > max_likeness for other in others):
            reasons[place] = "nearly the same as another"
        else:
            others.append(facts["sketch"])
    places = [place for place in range(len(attempts)) if place not in reasons]
    order = list(_by_turns(places, [facts for _, facts in attempts]))
    counts: dict[str, int] = defaultdict(int)
    kept = []
    for place in order:
        split = attempts[place][1]["split"]
        counts[split] += 1
        if limit and counts[split] > limit:
            reasons[place] = "more than demos.limit"
        else:
            kept.append(place)
    return Selection(kept, reasons)


def _by_turns(places: Sequence[int], facts: Sequence[Facts]) -> Iterator[int]:
    """One of each group, then the next of each: what is rare comes early, what is frequent fills the end."""
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place in places:
        each = facts[place]
        groups[each["split"], each["shape"], each["width"], each["reach"], tuple(each["recoveries"])].append(place)
    ordered = [groups[key] for key in sorted(groups)]
    for rank in range(max(map(len, ordered), default=0)):
        yield from (group[rank] for group in ordered if rank < len(group))
