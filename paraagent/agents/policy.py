"""Policy: whoever writes the assistant turns. One small protocol for oracles, local models and endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from paraagent.message import Completion as Completion
from paraagent.message import Message as Message
from paraagent.task import Task


@dataclass
class Conversation:
    """One episode as its policy sees it; the loop appends, the policy reads."""

    task: Task
    seed: int
    """Seed of this attempt: sampling derives from it, never from global state."""
    messages: list[Message]
    token_ids: list[int] = field(default_factory=list)
    """For policies that sample tokens: the exact ids so far, prompt and observations included (token-in, token-out)."""
    model_mask: list[int] = field(default_factory=list)
    """Beside `token_ids`: 1 where the policy sampled the token, 0 elsewhere."""


class Policy(Protocol):
    """`act` answers several conversations at once; `group` says how many it likes to see in one call."""

    name: str
    group: int

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next assistant turn of each conversation, in order."""
        ...
