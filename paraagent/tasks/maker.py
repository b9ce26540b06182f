"""Maker: does one job of synthesis, from tools that may do to verified tasks.

A job says all that decides its result, so jobs can be done in any process and order. Only tools that are drawn are
parsed, and every rejection is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from paraagent.seeds import derive, rng
from paraagent.task import Atom, Reach, Shape, Slot, Split, Task
from paraagent.tasks.demand import INDEPENDENT, TOOLLESS, Kind
from paraagent.tasks.graph import Draft, closure, compose
from paraagent.tasks.links import Sketch, reach_of
from paraagent.tasks.pool import Member
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.toolless import check_unmet, deed, question
from paraagent.tasks.verify import (
    Outline,
    check_answer,
    check_found,
    check_request,
    difficulty,
    nearest,
    solved_by_oracle,
    with_equivalents,
)

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.catalog.store import Catalog
    from paraagent.config import EnvConfig
    from paraagent.retrieval.index import Hit, ToolIndex

T = TypeVar("T")

_TOGETHER = 12
"""Tools of which groups are formed at a time."""
_TRIES = 4
"""How many requests without a tool are drafted for each that is wanted: some are asked already."""
_REACHES: tuple[tuple[Reach, float], ...] = (("service", 0.3), ("provider", 0.2), ("providers", 0.5))


class Job(NamedTuple):
    """So many tasks of one kind, from these tools."""

    number: int
    """Of all jobs of a synthesis; it is what random choices derive from."""
    split: Split
    within: Split | None
    """The split whose services are searched; all services where it is None, as evaluation does."""
    kind: Kind
    wanted: int
    sketches: tuple[Sketch, ...] = ()
    """For calls that hang together."""
    members: tuple[Member, ...] = ()
    """For calls that do not need others."""


class Made(NamedTuple):
    """What came of a job."""

    number: int
    tasks: list[Task]
    """At most as many as were asked for; their ids are those of the job."""
    rejected: Counter[str]
    good: tuple[Member, ...]
    """Of the members, those whose need finds them."""


class Maker:
    """Does jobs, one at a time; what it has looked up for one helps the next."""

    def __init__(self, catalog: Catalog, index: ToolIndex, env: EnvConfig, seed: int) -> None:
        self._catalog, self._index, self._env, self._seed = catalog, index, env, seed
        self._hits: dict[tuple[Split | None, str], list[Hit]] = {}
        self._outlines: dict[str, Outline] = {}

    @classmethod
    def prepare(cls, catalog: Catalog, index: ToolIndex, env: EnvConfig, seed: int) -> Callable[[Job], Made]:
        return cls(catalog, index, env, seed).make

    def make(self, job: Job) -> Made:
        """Do a job. Equal jobs give equal results, whatever was done before."""
        rejected: Counter[str] = Counter()
        attempt = partial(_attempt, rejected)
        good: list[Member] = []
        if job.kind.shape in TOOLLESS:
            drafts = (attempt(self._toolless, job, place) for place in range(_TRIES * job.wanted))
        else:
            good = self._findable(job, attempt)
            sketches = enumerate(self._sketches(job, good, attempt))
            drafts = (attempt(self._task, job, sketch, place) for place, sketch in sketches)
        tasks = list(islice((task for task in drafts if task is not None), job.wanted))
        solved = solved_by_oracle(tasks, self._catalog, self._index, self._env)
        if not all(solved):
            rejected["the reference solution does not earn the full outcome"] += solved.count(False)
        kept = [task for task, right in zip(tasks, solved, strict=True) if right]
        return Made(job.number, kept, rejected, tuple(good))

    def _choices(self, job: Job, *what: str | int) -> int:
        """The seed of a choice within a job."""
        return derive(self._seed, job.split, job.number, *what)

    def _toolless(self, job: Job, place: int) -> Task:
        choices = rng(self._choices(job, "toolless", place))
        asked: dict[str, Any]
        if job.kind.shape == "no-tool":
            request, answer = question(choices)
            asked = {"request": request, "slots": (), "atoms": (Atom(call="", path="", value=answer),)}
        else:
            request, need = deed(choices)
            hits = self._search(job.within, [need])[need]
            check_unmet(need, [f"{hit.name} {self._outlines[hit.name].description}" for hit in hits])
            asked = {"request": request, "slots": (Slot(text=need, tool=""),), "atoms": ()}
        return Task(
            task_id=f"{job.split}-{job.number}-{place}",
            shape=cast("Shape", job.kind.shape),
            width=0,
            reach="service",
            split=job.split,
            within=job.within,
            seed=self._choices(job, "world", place),
            calls=(),
            **asked,
        )

    def _findable(self, job: Job, attempt: Attempt) -> list[Member]:
        """The members whose need finds them, and nothing too like them."""
        told = self._told(job.within, job.members)

        def findable(member: Member) -> Member:
            self._check_found(job.within, member)
            return member

        return [told[member] for member in job.members if attempt(findable, told[member])]

    def _told(self, within: Split | None, members: Iterable[Member]) -> dict[Member, Member]:
        """The members, those that their need does not find with a need that says whose service is meant."""
        known = {member: member for member in members}
        found = self._search(within, [member.need for member in known])
        missed = [member for member in known if member.name not in [hit.name for hit in found[member.need]]]
        known |= {member: member.placed() for member in missed}
        self._search(within, [known[member].need for member in missed])
        return known

    def _check_found(self, within: Split | None, member: Member, targets: Collection[str] = ()) -> None:
        self._outline([member.name])
        check_found(self._outlines[member.name], self._hits[within, member.need], self._outlines, targets)

    def _sketches(self, job: Job, good: list[Member], attempt: Attempt) -> Iterator[Sketch]:
        """What the tasks of a job may be made of; takes from `good` what turns out to be no good."""
        if job.kind.shape not in INDEPENDENT:
            spare = list(good)
            for sketch in self._findable_sketches(job, attempt):
                if job.kind.shape != "mixed":
                    yield sketch
                elif beside := next((member for member in spare if _fits(member, sketch.members)), None):
                    spare.remove(beside)
                    yield sketch._replace(members=(*sketch.members, beside))
            return
        width, waiting = INDEPENDENT[job.kind.shape], iter(tuple(good))
        spare, reaches = list[Member](), rng(self._choices(job, "reaches"))
        while more := list(islice(waiting, _TOGETHER)):
            for member in more:
                if attempt(self._drafted, job, member):
                    spare.append(member)
                else:
                    good.remove(member)
            leads = [member for member in spare if member.writes or not job.kind.writes]
            while leads and len(spare) >= width:
                lead, wanted = leads.pop(0), reaches.choices(*zip(*_REACHES, strict=True))[0]
                group = group_of(lead, [member for member in spare if member != lead], width, wanted)
                spare = [member for member in spare if member != lead and member not in group]
                leads = [member for member in leads if member not in group]
                if group:
                    yield Sketch(tuple(group), ())

    def _findable_sketches(self, job: Job, attempt: Attempt) -> list[Sketch]:
        """The sketches whose needs each find their tool, and nothing too like it."""
        told = self._told(job.within, [member for sketch in job.sketches for member in sketch.members])

        def findable(sketch: Sketch) -> Sketch:
            members = tuple(told[member] for member in sketch.members)
            names = {member.name for member in members}
            if len({member.need for member in members}) < len(names):
                raise RejectionError("two needs are the same")
            for member in dict.fromkeys(members):
                self._check_found(job.within, member, names)
            return sketch._replace(members=members)

        return [known for sketch in job.sketches if (known := attempt(findable, sketch))]

    def _drafted(self, job: Job, member: Member) -> Draft:
        """A member alone, so that what cannot be asked for spoils no group."""
        tools, seed = self._catalog.get_many([member.name]), self._choices(job, "draft", member.name)
        return compose(Sketch((member,), ()), tools, seed, self._env.max_result_chars, worlds=2)

    def _task(self, job: Job, sketch: Sketch, place: int) -> Task:
        seed = self._choices(job, "world", place)
        tools = self._catalog.get_many(member.name for member in sketch.members)
        drafted = compose(sketch, tools, seed, self._env.max_result_chars)
        task = Task(
            task_id=f"{job.split}-{job.number}-{place}",
            request=drafted.request,
            shape=cast("Shape", job.kind.shape.rstrip("-23")),
            width=len(drafted.calls),
            reach=sketch.reach,
            split=job.split,
            within=job.within,
            seed=seed,
            slots=drafted.slots,
            calls=drafted.calls,
            atoms=drafted.atoms,
            state=drafted.state,
            hard_edges=drafted.hard_edges,
            soft_edges=closure(drafted.hard_edges),
        )
        check_request(task)
        check_answer(task, tools, self._env)
        return self._rated(self._weighed(task, tools), tools)

    def _weighed(self, task: Task, tools: Mapping[str, ToolInterface]) -> Task:
        """The task with its equivalent tools; rejected where another one that is shown would do as well."""
        found = self._search(task.within, [slot.text for slot in task.slots])
        beside = {slot: [hit.name for hit in hits if hit.name not in tools] for slot, hits in found.items()}
        versions = {name: self._index.versions(name) for name in tools}
        known = self._catalog.get_many(name for names in [*beside.values(), *versions.values()] for name in names)
        return with_equivalents(
            task,
            tools,
            {slot: [known[name] for name in names] for slot, names in beside.items()},
            {target: [known[name] for name in names] for target, names in versions.items()},
            self._env,
        )

    def _rated(self, task: Task, tools: Mapping[str, ToolInterface]) -> Task:
        """The task with the tools that lead astray, and how hard it is."""
        found = self._search(task.within, [slot.text for slot in task.slots])
        beside = [nearest(self._outlines[slot.tool], found[slot.text], self._outlines) for slot in task.slots]
        optional = sum(len(tool.properties) - len(tool.required) for tool in tools.values())
        hard = difficulty(task, max((likeness for _, likeness in beside), default=0.0), optional)
        astray = tuple("" if name in task.targets else name for name, _ in beside)
        return task.model_copy(update={"distractors": astray, "difficulty": hard})

    def _search(self, within: Split | None, needs: Iterable[str]) -> dict[str, list[Hit]]:
        """What each need finds; the outlines of all of it are known then."""
        wanted = list(dict.fromkeys(needs))
        fresh = [need for need in wanted if (within, need) not in self._hits]
        found = self._index.search(fresh, self._env.k, split=within)
        self._hits.update(zip([(within, need) for need in fresh], found, strict=True))
        self._outline(hit.name for hits in found for hit in hits)
        return {need: self._hits[within, need] for need in wanted}

    def _outline(self, names: Iterable[str]) -> None:
        fresh = [name for name in names if name not in self._outlines]
        self._outlines.update((name, Outline.of(tool)) for name, tool in self._catalog.get_many(fresh).items())


def group_of(lead: Member, others: Sequence[Member], width: int, wanted: Reach) -> list[Member]:
    """`lead` and the first others that fit it: of one service, of one provider's different services, or of different
    providers, as wanted where there are such; fewer than `width` where there are none."""
    for reach in dict.fromkeys([wanted, *(reach for reach, _ in _REACHES)]):
        group = [lead]
        for other in others:
            if len(group) < width and _fits(other, group) and all(reach_of([other, one]) == reach for one in group):
                group.append(other)
        if len(group) == width:
            return group
    return []


def _fits(member: Member, others: Sequence[Member]) -> bool:
    """Whether a member asks for something else than the others do."""
    return all(member.name != other.name and member.need != other.need for other in others)


Attempt = Callable[..., Any]


def _attempt(rejected: Counter[str], make: Callable[..., T], *given: Any) -> T | None:
    """What `make` gives; None, and the reason counted, where it rejects."""
    try:
        return make(*given)
    except RejectionError as rejection:
        rejected[str(rejection)] += 1
        return None
