"""What passes between a policy and an environment: chat messages, and one completion a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from paraagent.trace import Note


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """One assistant turn."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """How long a remote model took; 0 in this process, where nothing but the seed decides what a trace says."""
    notes: tuple[Note, ...] = ()
    """What those who wrote it together said to each other."""
    exhausted: bool = False
    """The context is full: the turn was not written and the episode ends with `token_limit`."""
