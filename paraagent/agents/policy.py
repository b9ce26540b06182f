"""Policy: whoever writes the assistant turns. One small protocol for oracles, local models and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from paraagent.message import Completion as Completion
from paraagent.message import Message as Message
from paraagent.paraact.lifecycle import Phase
from paraagent.paraact.paradigm import PARAACT, Paradigm
from paraagent.task import Task

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface


@dataclass(eq=False)
class Conversation:
    """One episode as its policy sees it; the loop appends, the policy reads."""

    task: Task
    seed: int
    """Seed of this attempt: sampling derives from it, never from global state."""
    messages: list[Message]
    paradigm: Paradigm = PARAACT
    """How turns are written."""
    found: Callable[[], Mapping[str, ToolInterface]] = dict
    """The tools that searches have shown so far, for policies that declare them to a server."""
    phase: Callable[[], Phase] = Phase
    """The phase that the last turn belonged to, for policies that plan."""
    token_ids: list[int] = field(default_factory=list)
    """For policies that sample tokens: the exact ids so far, prompt and observations included (token-in, token-out)."""
    model_mask: list[int] = field(default_factory=list)
    """Beside `token_ids`: 1 where the policy sampled the token, 0 elsewhere."""


class Policy(Protocol):
    """`act` answers several conversations at once."""

    name: str
    group: int
    """How many episodes it plays at once."""
    lockstep: bool
    """Whether what shares a call of `act` is part of the result, as with a local model, whose rounding depends on the
    batch: who comes next is then decided by the plan and not by time. Otherwise each episode goes at its own pace."""

    async def act(self, conversations: Sequence[Conversation]) -> Sequence[Completion | None]:
        """The next assistant turn of each conversation, in order.

        None stands for a turn that is still being written: the same conversation is given again, as it was. At least
        one turn is finished.
        """
        ...


async def write_turns(policy: Policy, conversations: Sequence[Conversation]) -> list[Completion]:
    """The next assistant turn of each conversation, all of them finished."""
    done: dict[int, Completion] = {}
    while owed := [place for place in range(len(conversations)) if place not in done]:
        turns = await policy.act([conversations[place] for place in owed])
        done |= {place: turn for place, turn in zip(owed, turns, strict=True) if turn is not None}
    return [done[place] for place in range(len(conversations))]
