"""Transcript: a conversation as the exact tokens that a model saw and wrote.

One rendering serves sampling, supervised tuning and reinforcement learning, so the three agree token by token. The
format is ChatML with nothing added: no system turn of its own, no dropped `<think>`. Tokens already there are never
tokenised again: an observation is appended as prefix + tokens + suffix, and what the model
sampled stays as sampled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from paraagent.agents.policy import Conversation
from paraagent.message import Message

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
START, END = "<|im_start|>", "<|im_end|>"
IGNORED = -100
"""The label of tokens that carry no loss, as torch's cross entropy takes it."""


class Tokens(NamedTuple):
    """Token ids, and beside each 1 where the model wrote it (its end-of-turn token included), 0 elsewhere."""

    ids: list[int]
    mask: list[int]

    @property
    def labels(self) -> list[int]:
        """What is learned: the model's own tokens."""
        return [token if own else IGNORED for token, own in zip(self.ids, self.mask, strict=True)]


class Transcriber:
    """Renders messages with one tokenizer, whose vocabulary holds the two ChatML marks as single tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.start: int = tokenizer.convert_tokens_to_ids(START)
        self.end: int = tokenizer.convert_tokens_to_ids(END)
        self.newline = self._encode("\n")
        self.turn = [self.start, *self._encode("assistant\n")]
        """What precedes every assistant turn."""

    def render(self, messages: Sequence[Message], unlearned: Collection[int] = ()) -> Tokens:
        """Whole messages, assistant turns masked 1 but for those at the places `unlearned`.

        Equals the chat template's ids for turns that begin with a tag.
        """
        ids: list[int] = []
        mask: list[int] = []
        for place, message in enumerate(messages):
            if message["role"] == "assistant":
                written = [*self._encode(message["content"]), self.end]
                ids += [*self.turn, *written, *self.newline]
                mask += [0] * len(self.turn) + [int(place not in unlearned)] * len(written) + [0] * len(self.newline)
            else:
                given = self._given(message)
                ids += given
                mask += [0] * len(given)
        return Tokens(ids, mask)

    def pending(self, conversation: Conversation) -> Tokens:
        """What must follow `conversation.token_ids` before the next turn: the observation and the turn's opening."""
        if not conversation.token_ids:
            tokens = self.render(conversation.messages)
            return Tokens([*tokens.ids, *self.turn], [*tokens.mask, *[0] * len(self.turn)])
        ids = [] if conversation.token_ids[-1] == self.end else [self.end]
        ids += self.newline
        for message in _after_last_turn(conversation.messages):
            ids += self._given(message)
        ids += self.turn
        return Tokens(ids, [0] * len(ids))

    def text(self, ids: Sequence[int]) -> str:
        """The text of a sampled turn, without its end-of-turn token."""
        kept = ids[:-1] if ids and ids[-1] == self.end else ids
        decoded: str = self.tokenizer.decode(list(kept), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return decoded

    def _given(self, message: Message) -> list[int]:
        return [self.start, *self._encode(f"{message['role']}\n{message['content']}"), self.end, *self.newline]

    def _encode(self, text: str) -> list[int]:
        # A mark inside a request or an observation is text, never a turn: outside words cannot forge the model's own.
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return ids


def _after_last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    turns = [position for position, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[turns[-1] + 1 :] if turns else messages
