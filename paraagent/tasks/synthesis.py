"""Synthesis: from the catalog to verified tasks, each split from its own services.

Only tools that are drawn are parsed. Drafts that withstand the search are combined into single and parallel requests,
and every rejection is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, get_args

from paraagent.progress import Progress, Quiet
from paraagent.seeds import derive, rng
from paraagent.task import Atom, Reach, ReferenceCall, Shape, Slot, Split, Task
from paraagent.tasks.demand import LINKED, Kind, demand_of, widths_of
from paraagent.tasks.facts import answerable, value_at
from paraagent.tasks.graph import Draft, closure, compose
from paraagent.tasks.links import Links, Sketch, read_links, single_changes
from paraagent.tasks.phrasing import also, clause, phrase
from paraagent.tasks.play import play
from paraagent.tasks.pool import TOGETHER, Candidate, pools_of
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.target import Target, draft
from paraagent.tasks.toolless import check_unmet, deed, question
from paraagent.tasks.verify import (
    Outline,
    check_answer,
    check_found,
    check_request,
    difficulty,
    nearest,
    solved_by_oracle,
)

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.config import EnvConfig, ShapeName, TasksConfig
    from paraagent.retrieval.index import Hit, ToolIndex

T = TypeVar("T")

_OUTLINES = "SELECT name, source_name, effect, description FROM tools WHERE name IN (SELECT unnest(?::VARCHAR[]))"
_CHUNK = 192
_ROUNDS = 4
"""How often a tool may serve, with other arguments, where the catalog is small."""
_REACHES: tuple[tuple[Reach, float], ...] = (("service", 0.3), ("provider", 0.2), ("providers", 0.5))
_TRIES = 5
_MOST_USES = 6
"""Graphs in which one tool may stand."""


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
    pools = pools_of(catalog, config.max_required, seed, rejected)
    links = read_links(catalog, config.max_required) if set(config.shapes) & set(LINKED) else {}
    changes = single_changes(catalog, config.max_required, rng(seed, "changes")) if config.writing else {}
    for split in get_args(Split):
        maker = _Maker(catalog, index, env, split, derive(seed, split), pools[split], rejected)
        demand = demand_of(config, wanted[split])
        tasks += maker.make_graphs(demand, links.get(split), changes.get(split), progress)
        tasks += maker.make_toolless(demand, progress)
        tasks += maker.make(widths_of(config.shapes, demand), progress)
    return Synthesis(sorted(tasks, key=lambda task: (task.split, task.task_id)), dict(sorted(rejected.items())))


@dataclass
class _Maker:
    """Makes the tasks of one split."""

    catalog: Catalog
    index: ToolIndex
    env: EnvConfig
    split: Split
    seed: int
    pool: list[Candidate]
    rejected: Counter[str]
    spare: list[Target] = field(default_factory=list)
    """Verified drafts that no task uses yet."""
    made: int = 0
    requests: set[str] = field(default_factory=set)
    hits: dict[str, list[Hit]] = field(default_factory=dict)
    """What each need finds."""
    outlines: dict[str, Outline] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    """In how many graphs a tool stands."""
    drafts: Iterator[list[Target]] | None = None

    @property
    def restriction(self) -> Split | None:
        """Training and validation search their own services, evaluation searches everything."""
        return None if self.split == "test" else self.split

    def make(self, widths: list[int], progress: Progress) -> list[Task]:
        tasks: list[Task] = []
        exhausted = False
        while widths:
            exhausted = not self._stock(2 * sum(widths[:_CHUNK]))
            found = self._played([self._task(width) for width in widths])
            kept = [task for task in found if task is not None]
            tasks += kept
            progress.advance(len(kept))
            widths = [width for width, task in zip(widths, found, strict=True) if task is None]
            if exhausted and not kept:
                break
        progress.advance(len(widths))  # what the catalog has no room for
        return tasks

    def make_graphs(
        self, demand: dict[Kind, int], links: Links | None, changes: Iterator[Sketch] | None, progress: Progress
    ) -> list[Task]:
        """The tasks whose calls hang together or change something; takes from `demand` what it could make."""
        tasks: list[Task] = []
        for kind in [kind for kind in demand if kind.writes or kind.shape in LINKED]:
            choices = rng(self.seed, "sketches", kind.shape, kind.writes)
            if kind.shape == "single":
                sketches = changes or iter(())
            else:
                sketches = links.sketches(kind.shape, writing=kind.writes, choices=choices) if links else iter(())
            while demand[kind] and (chunk := list(islice(sketches, min(_CHUNK, 3 * demand[kind])))):
                written = [self._attempt(self._composed, sketch, kind) for sketch in self._findable_sketches(chunk)]
                kept = [task for task in self._played(written) if task is not None][: demand[kind]]
                demand[kind] -= len(kept)
                progress.advance(len(kept))
                tasks += kept
        return tasks

    def make_toolless(self, demand: dict[Kind, int], progress: Progress) -> list[Task]:
        """The tasks that need no tool, and those that none can solve."""
        tasks: list[Task] = []
        for kind in [kind for kind in demand if kind.shape in ("no-tool", "unsolvable")]:
            for _ in range(_TRIES * demand[kind]):
                if not demand[kind]:
                    break
                task = self._attempt(self._toolless, kind.shape)
                if task is not None:
                    tasks.append(task)
                    demand[kind] -= 1
                    progress.advance(1)
        return tasks

    def _toolless(self, shape: ShapeName) -> Task:
        self.made += 1
        choices, seed = rng(self.seed, "toolless", self.made), derive(self.seed, "world", self.made)
        parts: dict[str, Any] = {"task_id": f"{self.split}-{self.made:05d}", "split": self.split, "seed": seed}
        parts |= {"shape": shape, "width": 0, "reach": "service", "calls": ()}
        if shape == "no-tool":
            asked = question(choices)
            parts |= {"request": asked.request, "slots": (), "atoms": (Atom(call="", path="", value=asked.answer),)}
        else:
            request, need = deed(choices)
            [hits] = self.index.search([need], self.env.k, split=self.restriction)
            outlines = self._outlined([hit.name for hit in hits])
            check_unmet(need, [f"{hit.name} {outlines[hit.name].description}" for hit in hits])
            parts |= {"request": request, "slots": (Slot(text=need, tool=""),), "atoms": ()}
        return self._accepted(Task(**parts))

    def _accepted(self, task: Task) -> Task:
        if task.request in self.requests:
            raise RejectionError("request is asked already")
        self.requests.add(task.request)
        return task

    def _stock(self, count: int) -> bool:
        """Draft until there are `count` spare drafts; False where the catalog holds no more."""
        self.drafts = self.drafts or self._supply()
        while len(self.spare) < count:
            more = next(self.drafts, None)
            if more is None:
                return False
            self.spare += more
        return True

    def _findable_sketches(self, sketches: Sequence[Sketch]) -> list[Sketch]:
        """The sketches whose needs each find their tool, and nothing too like it."""
        self._search(dict.fromkeys(member.need for sketch in sketches for member in sketch.members))
        self._outlined(dict.fromkeys(member.name for sketch in sketches for member in sketch.members))
        return [sketch for sketch in sketches if self._passes(self._check_sketch, sketch)]

    def _check_sketch(self, sketch: Sketch) -> None:
        names = {member.name for member in sketch.members}
        if len({member.need for member in sketch.members}) < len(names):
            raise RejectionError("two needs are the same")
        if max(self.uses[name] for name in names) >= _MOST_USES:
            raise RejectionError("a tool has served often enough")
        for member in dict.fromkeys(sketch.members):
            check_found(self.outlines[member.name], self.hits[member.need], self.outlines, names)

    def _composed(self, sketch: Sketch, kind: Kind) -> Task:
        self.made += 1
        seed = derive(self.seed, "world", self.made)
        tools = self.catalog.get_many(member.name for member in sketch.members)
        drafted = compose(sketch, tools, seed, self.env.max_result_chars)
        target = self._aside(drafted) if kind.shape == "mixed" else None
        task = self._graph_task(kind.shape, drafted, target, seed)
        if target is not None:
            tools = {**tools, target.tool.name: target.tool}
        check_request(task)
        check_answer(task, tools, self.env)
        self.uses.update(task.targets)
        return self._accepted(task)

    def _aside(self, drafted: Draft) -> Target:
        """A spare draft that fits beside a chain."""
        self._stock(TOGETHER)
        used = {call.tool for call in drafted.calls}
        for place, target in enumerate(self.spare):
            if target.tool.name not in used and target.slot not in [slot.text for slot in drafted.slots]:
                return self.spare.pop(place)
        raise RejectionError("nothing fits beside it")

    def _graph_task(self, shape: ShapeName, drafted: Draft, target: Target | None, seed: int) -> Task:
        request, calls, slots, atoms = drafted.request, drafted.calls, drafted.slots, drafted.atoms
        if target is not None:
            call = ReferenceCall(id=f"c{len(calls) + 1}", tool=target.tool.name, arguments=target.arguments)
            request += " " + also("aside", clause(target.item, rng(seed, "aside")), rng(seed, "words"))
            calls, slots = (*calls, call), (*slots, Slot(text=target.slot, tool=target.tool.name))
            atoms = (*atoms, *_answers(target, call, seed, self.env.max_result_chars))
        tools = self.catalog.get_many(call.tool for call in calls)
        return self._rated(
            Task(
                task_id=f"{self.split}-{self.made:05d}",
                request=request,
                shape="chain" if shape.startswith("chain") else cast("Shape", shape),
                width=len(calls),
                reach=_reach(list(tools.values())),
                split=self.split,
                seed=seed,
                slots=slots,
                calls=calls,
                atoms=atoms,
                state=drafted.state,
                hard_edges=drafted.hard_edges,
                soft_edges=closure(drafted.hard_edges),
            ),
            tools,
        )

    def _rated(self, task: Task, tools: Mapping[str, ToolInterface]) -> Task:
        """The task with the tools that lead astray, and how hard it is."""
        self._outlined(hit.name for slot in task.slots for hit in self.hits[slot.text])
        beside = [nearest(self.outlines[slot.tool], self.hits[slot.text], self.outlines) for slot in task.slots]
        names = dict.fromkeys(name for name, _ in beside if name and name not in task.targets)
        optional = sum(len(tool.properties) - len(tool.required) for tool in tools.values())
        hard = difficulty(task, max((likeness for _, likeness in beside), default=0.0), optional)
        return task.model_copy(update={"distractors": tuple(names), "difficulty": hard})

    def _search(self, needs: Iterable[str]) -> None:
        """Look up what each need finds, once."""
        fresh = [need for need in needs if need not in self.hits]
        self.hits.update(zip(fresh, self.index.search(fresh, self.env.k, split=self.restriction), strict=True))
        self._outlined(hit.name for need in fresh for hit in self.hits[need])

    def _outlined(self, names: Iterable[str]) -> dict[str, Outline]:
        fresh = sorted({name for name in names if name not in self.outlines})
        for row in self.catalog.rows(_OUTLINES, [fresh]) if fresh else ():
            self.outlines[row[0]] = Outline(*row)
        return self.outlines

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
            good: list[Candidate] = []
            for start in range(0, len(pool), _CHUNK):
                chunk = pool[start : start + _CHUNK] if number else self._findable(pool[start : start + _CHUNK])
                targets = self._drafted(chunk, number)
                taken = {target.tool.name for target in targets}
                good += [candidate for candidate in chunk if candidate.name in taken]
                yield targets
            pool = good

    def _findable(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates whose need finds them, and nothing too like them."""
        self._search(dict.fromkeys(candidate.need for candidate in candidates))
        outlines = self._outlined(candidate.name for candidate in candidates)
        return [
            candidate
            for candidate in candidates
            if self._passes(check_found, outlines[candidate.name], self.hits[candidate.need], outlines)
        ]

    def _drafted(self, candidates: Sequence[Candidate], number: int) -> list[Target]:
        tools = self.catalog.get_many(candidate.name for candidate in candidates)
        drafts: list[Target] = []
        for candidate in candidates:
            seed = derive(self.seed, "draft", number, candidate.name)
            made = self._attempt(draft, tools[candidate.name], candidate.need, seed, self.env.max_result_chars)
            drafts += [made] if made is not None else []
        return drafts

    def _attempt(self, make: Callable[..., T], *given: Any) -> T | None:
        """What `make` gives; None, and the reason counted, where it rejects."""
        try:
            return make(*given)
        except RejectionError as rejection:
            self.rejected[str(rejection)] += 1
            return None

    def _passes(self, check: Callable[..., None], *given: Any) -> bool:
        def passed() -> bool:
            check(*given)
            return True

        return self._attempt(passed) is True

    def _task(self, width: int) -> Task | None:
        """A task of this width from spare drafts, or None where they do not allow one now."""
        choices = rng(self.seed, "task", self.made)
        self.made += 1
        chosen = self._choose(width, choices.choices(*zip(*_REACHES, strict=True))[0])
        if chosen is None:
            return None
        reach, targets = chosen
        return self._attempt(self._write, targets, reach)

    def _choose(self, width: int, wanted: Reach) -> tuple[Reach, list[Target]] | None:
        """The first spare drafts that fit together; `wanted` is a preference."""
        if width == 1:
            return ("service", [self.spare.pop(0)]) if self.spare else None
        for reach in [wanted, *(reach for reach, _ in _REACHES if reach != wanted)]:
            group = _first_group(self.spare, width, reach)
            if group is not None:
                self.spare = [target for target in self.spare if all(target is not other for other in group)]
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
                atom
                for call, target in zip(calls, targets, strict=True)
                for atom in _answers(target, call, seed, self.env.max_result_chars)
            ),
        )
        check_request(task)
        tools = {target.tool.name: target.tool for target in targets}
        check_answer(task, tools, self.env)
        return self._accepted(self._rated(task, tools))


def _answers(target: Target, call: ReferenceCall, seed: int, max_chars: int) -> list[Atom]:
    result = play([call], {target.tool.name: target.tool}, seed, max_chars)[call.id]
    try:
        values = [value_at(result, path) for path in target.paths]
    except (LookupError, ValueError):
        raise RejectionError("answer does not stand in every world") from None
    if not all(map(answerable, values)):
        raise RejectionError("answer does not stand in every world")
    return [Atom(call=call.id, path=path, value=value) for path, value in zip(target.paths, values, strict=True)]


def _reach(tools: Sequence[ToolInterface]) -> Reach:
    if len({(tool.provider, tool.service) for tool in tools}) == 1:
        return "service"
    return "provider" if len({tool.provider for tool in tools}) == 1 else "providers"


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
