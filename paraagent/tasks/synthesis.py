"""Synthesis: from the catalog to verified tasks, each split from its own services or all from the same.

The plan hands out jobs (`paraagent.tasks.maker`) in rounds, takes what came of them in their order, and hands out
more until there is enough or the catalog holds no more. So the tasks are the same in any number of processes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple, get_args

from paraagent.progress import Progress, Quiet
from paraagent.seeds import rng
from paraagent.task import Split, Task
from paraagent.tasks.demand import INDEPENDENT, TOOLLESS, Kind, demand_of, instead
from paraagent.tasks.links import Links, Sketch, read_links
from paraagent.tasks.maker import Job, Made, Maker
from paraagent.tasks.pool import Candidate, Member, read_pools
from paraagent.workers import Workers

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.config import EnvConfig, TasksConfig
    from paraagent.retrieval.index import ToolIndex

_AT_ONCE = 16
"""Tasks that one job is to make."""
_ALONE = (*INDEPENDENT, "mixed")
"""Shapes that draw on tools that are asked for alone."""
_SKETCHES = 5
"""Sketches that a job is given for each task of calls that hang together."""
_MEMBERS, _MEMBERS_AGAIN = 6, 2
"""Tools that a job is given for each independent call: those that were never tried, and those that did well before."""
_SERVES, _TRIES = 6, 3
"""Independent calls that one tool of many may serve, and jobs for each of them that it may be given to."""
_MOST_USES = 40
"""Sketches in which one tool may stand; many services can be entered through one list only."""


class Synthesis(NamedTuple):
    tasks: list[Task]
    """Sorted by split and id."""
    rejected: dict[str, int]
    """Drafts and tasks not taken, by reason."""


def synthesise(
    catalog: Catalog,
    index: ToolIndex,
    config: TasksConfig,
    env: EnvConfig,
    seed: int,
    progress: Progress | None = None,
    processes: int = 1,
) -> Synthesis:
    """Make the tasks of every split, fewer where the catalog holds too little. Same inputs, same tasks.

    Raises:
        UsageError: the catalog has no such source as `config.sources` names.
        RunError: a worker process died.
    """
    progress = progress or Quiet()
    wanted: dict[Split, int] = {"train": config.train, "validation": config.validation, "test": config.test}
    total, shown = sum(wanted.values()), 0
    progress.start(total, "tasks")
    rejected: Counter[str] = Counter()
    material = _Material(catalog, config, seed, rejected)
    parts = {split: _Part(split, demand_of(config, wanted[split]), material) for split in get_args(Split)}
    numbers = count()
    with Workers(partial(Maker.prepare, catalog, index, env, seed), processes) as workers:
        while any(part.demand for part in parts.values()):
            jobs: dict[int, Job] = {}
            found: dict[int, Made] = {}
            for made in workers.run(_noted((job for part in parts.values() for job in part.jobs(numbers)), jobs)):
                found[made.number] = made
                progress.advance(len(made.tasks))
                shown += len(made.tasks)
            for number, job in jobs.items():
                parts[job.split].take(job, found[number])
    tasks = [task for part in parts.values() for task in part.tasks]
    progress.advance(max(0, total - shown))
    if len(tasks) < total:
        progress.message(f"{total - len(tasks)} of {total} tasks not made: the catalog has nothing more to ask for")
    return Synthesis(sorted(tasks, key=lambda task: (task.split, task.task_id)), dict(sorted(rejected.items())))


def _noted(jobs: Iterable[Job], seen: dict[int, Job]) -> Iterator[Job]:
    for job in jobs:
        seen[job.number] = job
        yield job


class _Material:
    """What of the catalog tasks can be made of; links are read when they are first asked for."""

    def __init__(self, catalog: Catalog, config: TasksConfig, seed: int, rejected: Counter[str]) -> None:
        self.config, self.seed, self.rejected = config, seed, rejected
        self._catalog = catalog
        self.pools = read_pools(catalog, config, seed)
        self.requests: set[str] = set()
        """Of all splits: no task is held out that is trained on."""

    @cached_property
    def links(self) -> dict[Split, Links]:
        return read_links(self._catalog, self.config)


class _Part:
    """The tasks of one split: what is still wanted, what is left to make it of, and what was made."""

    def __init__(self, split: Split, demand: dict[Kind, int], material: _Material) -> None:
        self.split, self.demand, self.tasks = split, demand, list[Task]()
        self._material = material
        self._few = material.config.held_out == "tasks"
        self._within = None if split == "test" or self._few else split
        pool = material.pools[split]
        self._reading, self._changing = (
            _Queue(tools, material.rejected, self._serves(tools)) for tools in (pool.reading, pool.changing)
        )
        self._sketches: dict[Kind, Iterator[Sketch]] = {}
        self._uses: Counter[str] = Counter()

    def _serves(self, tools: Sequence[Candidate]) -> int:
        """Independent calls that each of these tools may serve: of a service of one's own, as many as it takes."""
        if not self._few:
            return _SERVES
        calls = sum(INDEPENDENT.get(kind.shape, 1) * number for kind, number in self.demand.items())
        return max(_SERVES, 2 * calls // max(1, len(tools)))

    def jobs(self, numbers: Iterator[int]) -> Iterator[Job]:
        """The jobs of one round: enough for what is wanted, if they go as they mostly do."""
        self._reading.refill()
        self._changing.refill()
        wanted = [
            (start, kind, min(_AT_ONCE, missing - start))
            for kind, missing in self.demand.items()
            for start in range(0, missing, _AT_ONCE)
        ]
        given_up: set[Kind] = set()
        for start, kind, number in sorted(wanted, key=lambda each: (each[1].shape not in _ALONE, *each)):
            if kind in given_up:
                continue
            job = self._job(next(numbers), kind, number)
            if job is not None:
                yield job
            elif self._is_exhausted(kind):
                given_up.add(kind)
                self._give_up(kind, self.demand[kind] - start)

    def take(self, job: Job, made: Made) -> None:
        """Take what came of a job."""
        self._material.rejected.update(made.rejected)
        for task in made.tasks:
            if task.request in self._material.requests:
                self._material.rejected["request is asked already"] += 1
            elif self.demand.get(job.kind):
                self._material.requests.add(task.request)
                self.tasks.append(task.model_copy(update={"task_id": f"{self.split}-{len(self.tasks) + 1:05d}"}))
                self.demand[job.kind] -= 1
        targets = {tool for task in made.tasks for tool in task.targets}
        for member in made.good:
            (self._changing if member.writes else self._reading).give_back(member, member.name in targets)
        if not self.demand.get(job.kind, 1) or (job.kind.shape in TOOLLESS and not made.tasks):
            self.demand.pop(job.kind, None)

    def _job(self, number: int, kind: Kind, wanted: int) -> Job | None:
        """A job for so many tasks, or None where nothing is left for it now."""
        if kind.shape in TOOLLESS:
            return Job(number, self.split, self._within, kind, wanted)
        members: list[Member] = []
        sketches: list[Sketch] = []
        width = INDEPENDENT.get(kind.shape, 1)
        if kind.writes and kind.shape in INDEPENDENT:
            members = self._changing.draw(wanted)
            members += self._reading.draw(wanted * (width - 1)) if members else []
        elif kind.shape in _ALONE:
            members = self._reading.draw(wanted * width)
        if kind.shape not in INDEPENDENT:
            sketches = list(islice(self._fresh(kind), _SKETCHES * wanted))
        enough = members if kind.shape in INDEPENDENT else sketches
        return Job(number, self.split, self._within, kind, wanted, tuple(sketches), tuple(members)) if enough else None

    def _fresh(self, kind: Kind) -> Iterator[Sketch]:
        """The sketches of a kind that are left, those with a tool that has served often enough aside."""
        if kind not in self._sketches:
            links = self._material.links.get(self.split)
            choices = rng(self._material.seed, self.split, "sketches", *kind)
            found = links.sketches(kind.shape, writing=kind.writes, choices=choices) if links else iter(())
            self._sketches[kind] = self._again(list(found), kind) if self._few else filter(self._may_serve, found)
        return self._sketches[kind]

    def _again(self, found: list[Sketch], kind: Kind) -> Iterator[Sketch]:
        """These sketches as often as it takes; every task has values and words of its own."""
        return iter(found * -(-_SKETCHES * self.demand[kind] // max(1, len(found))))

    def _may_serve(self, sketch: Sketch) -> bool:
        names = {member.name for member in sketch.members}
        if max(self._uses[name] for name in names) >= _MOST_USES:
            self._material.rejected["a tool has served often enough"] += 1
            return False
        self._uses.update(names)
        return True

    def _is_exhausted(self, kind: Kind) -> bool:
        """Whether there will be nothing more for a kind."""
        return kind.shape not in INDEPENDENT or (self._changing if kind.writes else self._reading).exhausted

    def _give_up(self, kind: Kind, missing: int) -> None:
        """Ask for calls that read and do not need each other, in place of what the catalog has no room for."""
        self.demand[kind] -= missing
        if not self.demand[kind]:
            del self.demand[kind]
        if kind.writes or kind.shape not in INDEPENDENT:
            for other, number in instead(self._material.config, missing).items():
                self.demand[other] = self.demand.get(other, 0) + number


class _Queue:
    """Tools to be asked for alone; where there are few, they come up again."""

    def __init__(self, candidates: Iterable[Candidate], rejected: Counter[str], serves: int) -> None:
        """`serves`: independent calls that one tool may serve, with other arguments."""
        self._waiting, self._rejected = deque[Candidate | Member](candidates), rejected
        self._again: list[Member] = []
        self._serves = serves
        self._tried, self._served = Counter[str](), Counter[str]()
        self.exhausted = False
        self.rate = _MEMBERS
        """How many to draw for each that is needed."""

    def draw(self, count: int) -> list[Member]:
        """The next ones that can be asked for in words."""
        drawn: list[Member] = []
        while self._waiting and len(drawn) < count * self.rate:
            candidate = self._waiting.popleft()
            member = candidate if isinstance(candidate, Member) else candidate.member()
            if member is None:
                self._rejected["description gives no need"] += 1
            else:
                drawn.append(member)
                self._tried[member.name] += 1
        return drawn

    def give_back(self, member: Member, served: bool) -> None:
        """A tool that did well in a job, and whether it came to serve."""
        self._served[member.name] += served
        if self._served[member.name] < self._serves and self._tried[member.name] < _TRIES * self._serves:
            self._again.append(member)

    def refill(self) -> None:
        """Begin anew with the tools that did well, where all have been drawn."""
        if not self._waiting:
            self._waiting, self._again, self.rate = deque(self._again), [], _MEMBERS_AGAIN
            self.exhausted = not self._waiting
