"""Synthesis: from the catalog to verified tasks, each split from its own services.

Tools are drawn with a query, providers in turn, so that the largest do not crowd out the others; only drawn tools are
parsed. Drafts that withstand the search are combined into single and parallel requests, and every rejection is counted.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from paraagent.catalog.splits import service_family, split_of
from paraagent.progress import Progress, Quiet
from paraagent.seeds import derive, rng
from paraagent.task import Atom, Reach, ReferenceCall, Slot, Split, Task
from paraagent.tasks.facts import answerable, value_at
from paraagent.tasks.needs import need_of
from paraagent.tasks.phrasing import phrase
from paraagent.tasks.target import RejectionError, Target, draft
from paraagent.tasks.verify import Outline, check_answer, check_found, check_request, solved_by_oracle
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.config import EnvConfig, ShapeName, TasksConfig
    from paraagent.retrieval.index import ToolIndex

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
_OUTLINES = "SELECT name, source_name, effect, description FROM tools WHERE name IN ({names})"
_TOGETHER = 4
"""Tools of one provider drawn in a row, so that requests within one service or provider can be made."""
_CHUNK = 192
_ROUNDS = 4
"""How often a tool may serve, with other arguments, where the catalog is small."""
_REACHES: tuple[tuple[Reach, float], ...] = (("service", 0.3), ("provider", 0.2), ("providers", 0.5))
_WIDTHS: dict[ShapeName, int] = {"single": 1, "parallel-2": 2, "parallel-3": 3}


class _Candidate(NamedTuple):
    """A tool that may become a target; nothing of its schemas is read yet."""

    name: str
    need: str


class Synthesis(NamedTuple):
    tasks: list[Task]
    """Sorted by split and id."""
    rejected: dict[str, int]
    """Drafts and tasks not taken, by reason."""


def synthesise(
    catalog: Catalog, index: ToolIndex, config: TasksConfig, env: EnvConfig, seed: int, progress: Progress | None = None
) -> Synthesis:
    """Make the tasks of every split, fewer where the catalog holds too little. Same inputs, same tasks."""
    progress = progress or Quiet()
    wanted: dict[Split, int] = {"train": config.train, "validation": config.validation, "test": config.test}
    progress.start(sum(wanted.values()), "tasks")
    tasks: list[Task] = []
    rejected: Counter[str] = Counter()
    pools = _pools(catalog, config.max_required, seed, rejected)
    for split in get_args(Split):
        maker = _Maker(catalog, index, env, split, derive(seed, split), pools[split], rejected)
        tasks += maker.make(_widths(config.shapes, wanted[split]), progress)
    return Synthesis(sorted(tasks, key=lambda task: (task.split, task.task_id)), dict(sorted(rejected.items())))


@dataclass
class _Maker:
    """Makes the tasks of one split."""

    catalog: Catalog
    index: ToolIndex
    env: EnvConfig
    split: Split
    seed: int
    pool: list[_Candidate]
    rejected: Counter[str]
    spare: list[Target] = field(default_factory=list)
    """Verified drafts that no task uses yet."""
    made: int = 0
    requests: set[str] = field(default_factory=set)

    @property
    def restriction(self) -> Split | None:
        """Training and validation search their own services, evaluation searches everything."""
        return None if self.split == "test" else self.split

    def make(self, widths: list[int], progress: Progress) -> list[Task]:
        tasks: list[Task] = []
        supply, exhausted = self._supply(), False
        while widths:
            while not exhausted and len(self.spare) < 2 * sum(widths[:_CHUNK]):
                more = next(supply, None)
                exhausted = more is None
                self.spare += more or []
            found = self._played([self._task(width) for width in widths])
            kept = [task for task in found if task is not None]
            tasks += kept
            progress.advance(len(kept))
            widths = [width for width, task in zip(widths, found, strict=True) if task is None]
            if exhausted and not kept:
                break
        progress.advance(len(widths))  # what the catalog has no room for
        return tasks

    def _played(self, tasks: Sequence[Task | None]) -> list[Task | None]:
        """The tasks that the reference solution solves; None in place of the others."""
        made = [task for task in tasks if task is not None]
        solved = solved_by_oracle(made, self.catalog, self.index, self.env, self.restriction)
        failed = {task.task_id for task, good in zip(made, solved, strict=True) if not good}
        if failed:
            self.rejected["the reference solution does not earn the full outcome"] += len(failed)
        return [None if task is None or task.task_id in failed else task for task in tasks]

    def _supply(self) -> Iterator[list[Target]]:
        """Verified drafts, chunk by chunk; after the last tool the first ones again, with other arguments."""
        pool = self.pool
        for number in range(_ROUNDS):
            good: list[_Candidate] = []
            for start in range(0, len(pool), _CHUNK):
                chunk = pool[start : start + _CHUNK] if number else self._findable(pool[start : start + _CHUNK])
                targets = self._drafted(chunk, number)
                taken = {target.tool.name for target in targets}
                good += [candidate for candidate in chunk if candidate.name in taken]
                yield targets
            pool = good

    def _findable(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """The candidates whose need finds them, and nothing too like them."""
        found = self.index.search([candidate.need for candidate in candidates], self.env.k, split=self.restriction)
        names = sorted({hit.name for hits in found for hit in hits} | {candidate.name for candidate in candidates})
        quoted = ", ".join(f"'{name}'" for name in names)
        rows = self.catalog.relation(_OUTLINES.format(names=quoted)).fetchall()
        outlines = {row[0]: Outline(*row) for row in rows}
        return [
            candidate
            for candidate, hits in zip(candidates, found, strict=True)
            if self._passes(lambda: check_found(outlines[candidate.name], hits, outlines))  # noqa: B023
        ]

    def _drafted(self, candidates: Sequence[_Candidate], number: int) -> list[Target]:
        tools = self.catalog.get_many(candidate.name for candidate in candidates)
        drafts: list[Target] = []
        for candidate in candidates:
            seed = derive(self.seed, "draft", number, candidate.name)
            try:
                drafts.append(draft(tools[candidate.name], candidate.need, seed, self.env.max_result_chars))
            except RejectionError as rejection:
                self.rejected[str(rejection)] += 1
        return drafts

    def _passes(self, check: Callable[[], None]) -> bool:
        try:
            check()
        except RejectionError as rejection:
            self.rejected[str(rejection)] += 1
            return False
        return True

    def _task(self, width: int) -> Task | None:
        """A task of this width from spare drafts, or None where they do not allow one now."""
        choices = rng(self.seed, "task", self.made)
        self.made += 1
        chosen = self._choose(width, choices.choices(*zip(*_REACHES, strict=True))[0])
        if chosen is None:
            return None
        reach, targets = chosen
        try:
            task = self._write(targets, reach)
        except RejectionError as rejection:
            self.rejected[str(rejection)] += 1
            return None
        self.requests.add(task.request)
        return task

    def _choose(self, width: int, wanted: Reach) -> tuple[Reach, list[Target]] | None:
        """The first spare drafts that fit together; `wanted` is a preference."""
        if width == 1:
            return ("service", [self.spare.pop(0)]) if self.spare else None
        for reach in [wanted, *(reach for reach, _ in _REACHES if reach != wanted)]:
            group = _first_group(self.spare, width, reach)
            if group is not None:
                taken = {target.tool.name for target in group}
                self.spare = [target for target in self.spare if target.tool.name not in taken]
                return reach, group
        return None

    def _write(self, targets: list[Target], reach: Reach) -> Task:
        """The task of these targets, checked in its world."""
        number = self.made
        seed = derive(self.seed, "world", number)
        calls = tuple(
            ReferenceCall(id=f"c{position}", tool=target.tool.name, arguments=target.arguments)
            for position, target in enumerate(targets, 1)
        )
        task = Task(
            task_id=f"{self.split}-{number:05d}",
            request=phrase([target.item for target in targets], rng(self.seed, "words", number)),
            shape="single" if len(targets) == 1 else "parallel",
            width=len(targets),
            reach=reach,
            split=self.split,
            seed=seed,
            slots=tuple(Slot(text=target.slot, tool=target.tool.name) for target in targets),
            calls=calls,
            atoms=tuple(
                Atom(call=call.id, path=target.path, value=_answer(target, seed, self.env.max_result_chars))
                for call, target in zip(calls, targets, strict=True)
            ),
        )
        if task.request in self.requests:
            raise RejectionError("request is asked already")
        check_request(task)
        check_answer(task, {target.tool.name: target.tool for target in targets}, self.env)
        return task


def _answer(target: Target, seed: int, max_chars: int) -> str | int | float:
    result = fit_json(GroundedSimulator(seed).call(target.tool, target.arguments).result, max_chars)
    try:
        value = value_at(result, target.path)
    except (LookupError, ValueError):
        raise RejectionError("answer does not stand in every world") from None
    if not answerable(value):
        raise RejectionError("answer does not stand in every world")
    answer: str | int | float = value
    return answer


def _first_group(spare: Sequence[Target], width: int, reach: Reach) -> list[Target] | None:
    """The first drafts of one service, of one provider's different services, or of different providers."""
    groups: dict[tuple[str, ...], dict[str, Target]] = {}
    for target in spare:
        provider, service = target.tool.provider, target.tool.service
        place, member = {
            "service": ((provider, service), target.slot),
            "provider": ((provider,), service),
            "providers": ((), provider),
        }[reach]
        group = groups.setdefault(place, {})
        if target.slot not in [other.slot for other in group.values()]:
            group.setdefault(member, target)
        if len(group) == width:
            return list(group.values())
    return None


def _pools(catalog: Catalog, max_required: int, seed: int, rejected: Counter[str]) -> dict[Split, list[_Candidate]]:
    """Tools to draft, by split; providers take turns, some tools of one family at a time."""
    families: dict[Split, dict[str, dict[str, list[_Candidate]]]] = {split: {} for split in get_args(Split)}
    for name, provider, service, text in catalog.relation(_POOL.format(max_required=max_required)).fetchall():
        need = need_of(text)
        if need is None:
            rejected["description gives no need"] += 1
            continue
        of_provider = families[split_of(provider, service)].setdefault(provider, {})
        of_provider.setdefault(service_family(provider, service), []).append(_Candidate(name, need))
    pools: dict[Split, list[_Candidate]] = {}
    for split, providers in families.items():
        turns: dict[int, list[list[_Candidate]]] = defaultdict(list)
        choices = rng(seed, "pool", split)
        for provider in sorted(providers):
            grouped = _shuffled(list(providers[provider].values()), choices)
            ordered = [candidate for family in grouped for candidate in _shuffled(family, choices)]
            for start in range(0, len(ordered), _TOGETHER):
                turns[start].append(ordered[start : start + _TOGETHER])
        pools[split] = [each for start in sorted(turns) for group in _shuffled(turns[start], choices) for each in group]
    return pools


def _shuffled(items: Sequence[T], choices: random.Random) -> list[T]:
    return choices.sample(items, len(items))


def _widths(shapes: Mapping[ShapeName, float], count: int) -> list[int]:
    """The width of each task, shares by largest remainder, wide ones first since they are hardest to fill."""
    total = sum(shapes.values())
    exact = {shape: count * weight / total for shape, weight in sorted(shapes.items())}
    counts = {shape: int(share) for shape, share in exact.items()}
    for shape in sorted(exact, key=lambda shape: counts[shape] - exact[shape])[: count - sum(counts.values())]:
        counts[shape] += 1
    return sorted((_WIDTHS[shape] for shape, number in counts.items() for _ in range(number)), reverse=True)
