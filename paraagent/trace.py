"""Trace: the one record of an episode, read by rewards, training, evaluation and report.

An `Episode` holds `Turn`s, a turn holds `Event`s (searches or calls). Times are seconds since the episode began:
simulated ones where the world is, so that the same seed leaves the same bytes, and measured ones where a real tool or a
remote model took them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Family = Literal["search", "call", "answer", "mixed", "invalid"]
"""What a turn does; `invalid` has no usable block, `mixed` has blocks of several families."""
PlanRule = Literal["required", "optional", "forbidden"]
PlanKind = Literal["initial", "revise", "restart", "redundant", "over_budget", "invalid", "unsupported"]
End = Literal["answer", "turn_limit", "token_limit", "error"]

ParadigmName = Literal["paraact", "react-ete", "react-eae"]

TRACE_VERSION = 3
"""What is written; what an earlier version wrote can be read."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ErrorInfo(_Record):
    """An error that the model sees as `{"error": {"type", "msg"}}`."""

    type: str
    msg: str


class Search(_Record):
    """One search and what came back."""

    kind: Literal["search"] = "search"
    slot: str = ""
    """The label that the model gave it."""
    query: str
    hits: tuple[str, ...]
    """Names of the tools returned, best first."""
    visible: bool = True
    """False where the observation did not fit and was dropped: it earns no credit."""


class Call(_Record):
    """One call and what came back."""

    kind: Literal["call"] = "call"
    name: str
    """As written by the model; empty where the block could not be read."""
    arguments: dict[str, Any]
    """As the tool got them."""
    references: dict[str, str] = {}
    """Which of them the model took from another call of the turn: path of the argument, and what stood there."""
    occurrence: str = ""
    """The planned call that it was; empty without a plan, and where the plan did not have it ready."""
    error: ErrorInfo | None = None
    result: Any = None
    backend: str = ""
    """Which simulator layer answered; empty where none was asked."""
    injected: bool = False
    """True where the error was drawn by chance: an injected fault, or a latency beyond the timeout."""
    started: float = 0.0
    """When the call began, in seconds since the episode did."""
    seconds: float = 0.0
    """How long it took: simulated, or measured where the tool is real."""
    attempts: int = 1
    """How often it was sent; only the transport to a real tool tries again by itself."""
    visible: bool = True

    @property
    def ok(self) -> bool:
        """The call succeeded and the model saw it."""
        return self.error is None and self.visible


Event = Annotated[Search | Call, Field(discriminator="kind")]


class PlanRecord(_Record):
    """The `<plan>` of a turn and what became of it."""

    raw: str
    """The block's text as the model wrote it."""
    body: dict[str, Any] | None
    """The parsed plan, or None where it is not a valid one."""
    kind: PlanKind
    problem: str = ""

    @property
    def accepted(self) -> bool:
        return self.kind in ("initial", "revise", "restart")


class Note(_Record):
    """What one of those who write turns together said."""

    role: str
    """`planner`, `explorer`, `executor`, `critic`, `writer`; `check` for what was found without asking anybody, `slip`
    for an imperfection that a script put in."""
    text: str


class Turn(_Record):
    """One assistant turn and the observation that followed it."""

    text: str
    family: Family
    think: str | None
    plan: PlanRecord | None
    plan_rule: PlanRule
    """What the lifecycle asked of this turn."""
    well_formed: bool
    problems: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    observation: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started: float = 0.0
    """When the policy was asked, in seconds since the episode began."""
    seconds: float = 0.0
    """How long a remote model took to write the turn; 0 where it is not measured."""
    notes: tuple[Note, ...] = ()
    """How the turn came about, where several wrote it together."""

    @property
    def searches(self) -> tuple[Search, ...]:
        return tuple(event for event in self.events if isinstance(event, Search))

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(event for event in self.events if isinstance(event, Call))

    @property
    def plan_rule_kept(self) -> bool:
        """A required plan was given and accepted, a forbidden one was not given."""
        if self.plan_rule == "required":
            return self.plan is not None and self.plan.accepted
        if self.plan_rule == "forbidden":
            return self.plan is None
        return self.plan is None or self.plan.accepted


class Change(_Record):
    """One thing that was made, changed or deleted, as it stands at the end."""

    kind: str
    """Where it belongs and what it is: `acme.example/calendar event`."""
    key: str
    """Which one of this world; empty where it was made, since nothing but its making says that."""
    deleted: bool
    fields: dict[str, Any]
    """What was written, by folded name."""
    links: dict[str, Any]
    """The things that it was written to lie in or refer to, by entity."""

    def holds(self, other: Change) -> bool:
        """Whether all that `other` says of a thing is true of this one."""
        same = (self.kind, self.key, self.deleted) == (other.kind, other.key, other.deleted)
        return same and (other.fields.items() <= self.fields.items() and other.links.items() <= self.links.items())


class Episode(_Record):
    """One run of one policy on one task."""

    version: int = TRACE_VERSION
    episode_id: str
    """`<policy>/<paradigm>/<task_id>/<seed>`."""
    task_id: str
    policy: str
    paradigm: ParadigmName = "paraact"
    seed: int
    """Seed of this attempt's own choices (sampling, faults); the world's seed is the task's."""
    system: str
    """The system prompt."""
    request: str
    opening: tuple[Search, ...] = ()
    """What was searched before the first turn: with the whole request, where the paradigm retrieves once."""
    turns: tuple[Turn, ...]
    answer: str | None
    end: End
    error: str | None = None
    changes: tuple[Change, ...] = ()
    """What became of the world, in the order in which things were first changed."""
    rewards: dict[str, float] | None = None

    @field_validator("version")
    @classmethod
    def _known(cls, version: int) -> int:
        if version > TRACE_VERSION:
            raise ValueError(f"should be at most {TRACE_VERSION}: a later version of ParaAgent wrote this trace")
        return version

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for turn in self.turns for call in turn.calls)

    @property
    def searches(self) -> tuple[Search, ...]:
        return (*self.opening, *(search for turn in self.turns for search in turn.searches))
