"""LocalPolicy: a causal language model in this process, token in, token out.

The ids that the model sampled stay in the conversation as they are, so training sees exactly what was sampled. The
randomness of a turn derives from the policy's seed, its task, its attempt and its number, whoever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from paraagent.agents.language_model import END_OF_TEXT, LanguageModel, load_language_model
from paraagent.agents.policy import Conversation
from paraagent.agents.transcript import Tokens, Transcriber
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.seeds import derive

if TYPE_CHECKING:
    import torch


@dataclass
class _Turn:
    """A turn that is being written."""

    pending: Tokens
    """What precedes it and is not yet in the conversation."""
    budget: int
    chance: torch.Generator
    ids: list[int] = field(default_factory=list)


class LocalPolicy:
    """A `Policy` over a model folder, or over a model that is already loaded."""

    lockstep = True

    def __init__(
        self,
        source: Path | LanguageModel,
        config: EnvConfig,
        *,
        name: str,
        temperature: float = 0.0,
        group: int = 16,
        seed: int = 0,
    ) -> None:
        """Raises RunError where there is no model, or one that cannot be sampled here."""
        from paraagent.agents.decoder import Decoder

        self.model, tokenizer = load_language_model(source) if isinstance(source, Path) else source
        self.name = name
        self.group = group
        self.temperature = temperature
        self.seed = seed
        self.transcriber = Transcriber(tokenizer)
        self.max_new_tokens = config.max_new_tokens
        self.max_context: int = min(config.max_context_tokens, self.model.config.max_position_embeddings)
        self.decoder = Decoder[Conversation](self.model)
        self.stop = {self.transcriber.end, tokenizer.convert_tokens_to_ids(END_OF_TEXT)} - {None}
        self._turns: dict[Conversation, _Turn] = {}
        """Those that are being written."""

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion | None]:
        """Write until at least one turn is finished; None stands for those that are not.

        A conversation whose context is full is `exhausted`, and its tokens stay untouched.
        """
        try:
            return self._act(conversations)
        except BaseException:
            self.decoder.forget()
            self._turns = {}
            raise

    def _act(self, conversations: Sequence[Conversation]) -> list[Completion | None]:
        self._turns = {each: turn for each, turn in self._turns.items() if each in conversations}
        fresh = {each: self._begin(each) for each in conversations if each not in self._turns}
        done = {each: Completion(text="", exhausted=True) for each, turn in fresh.items() if turn.budget < 1}
        fresh = {each: turn for each, turn in fresh.items() if each not in done}
        self._turns |= fresh
        self.decoder.seat(list(self._turns))
        if fresh:
            prompts = {each: [*each.token_ids, *turn.pending.ids] for each, turn in fresh.items()}
            self._write(list(fresh.values()), self.decoder.begin(prompts))
        while self._turns:
            done |= {each: self._end(each, turn) for each, turn in list(self._turns.items()) if self._is_over(turn)}
            if done:
                break
            turns = [self._turns[each] for each in self.decoder.names]
            self._write(turns, self.decoder.step([turn.ids[-1] for turn in turns]))
        return [done.get(conversation) for conversation in conversations]

    def _begin(self, conversation: Conversation) -> _Turn:
        import torch

        pending = self.transcriber.pending(conversation)
        seed = derive(self.seed, "sample", _turn_key(conversation))
        chance = torch.Generator().manual_seed(seed % 2**63)
        return _Turn(pending, self.budget(conversation, pending), chance)

    def budget(self, conversation: Conversation, pending: Tokens) -> int:
        """Most tokens of the next turn, after what precedes it."""
        return min(self.max_new_tokens, self.max_context - len(conversation.token_ids) - len(pending.ids))

    def _write(self, turns: Sequence[_Turn], logits: torch.Tensor) -> None:
        """Add a token to each turn: the likeliest at temperature 0, else drawn. `logits`: (turns, vocabulary)."""
        import torch

        if self.temperature:
            below = torch.softmax(logits / self.temperature, -1).cumsum(-1)
            drawn = torch.cat([torch.rand(1, generator=turn.chance) for turn in turns])[:, None].to(below.device)
            # The first token below which there is more than was drawn, of what rounding makes the sum.
            tokens = torch.searchsorted(below, drawn * below[:, -1:], right=True).clamp(max=below.shape[1] - 1)[:, 0]
        else:
            tokens = logits.argmax(-1)
        for turn, token in zip(turns, tokens.tolist(), strict=True):
            turn.ids.append(token)

    def _is_over(self, turn: _Turn) -> bool:
        return turn.ids[-1] in self.stop or len(turn.ids) >= turn.budget

    def _end(self, conversation: Conversation, turn: _Turn) -> Completion:
        """Put a finished turn into its conversation."""
        del self._turns[conversation]
        _append(conversation, turn.pending)
        prompt_tokens = len(conversation.token_ids)
        _append(conversation, Tokens(turn.ids, [1] * len(turn.ids)))
        return Completion(self.transcriber.text(turn.ids), prompt_tokens, len(turn.ids))


def _turn_key(conversation: Conversation) -> str:
    turn = sum(message["role"] == "assistant" for message in conversation.messages)
    return f"{conversation.task.task_id}/{conversation.seed}/{turn}"


def _append(conversation: Conversation, tokens: Tokens) -> None:
    conversation.token_ids += tokens.ids
    conversation.model_mask += tokens.mask
