"""LocalPolicy: a causal language model in this process, token in, token out.

The ids that the model sampled stay in the conversation as they are, so training sees exactly what was sampled.
Choices derive from the policy's seed, the conversation's task and seed, and the turn; a group that starts anew
forgets what was decoded before, so a group's episodes depend on the group alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paraagent.agents.decoding import Decoder
from paraagent.agents.language_model import END_OF_TEXT, LanguageModel, load_language_model
from paraagent.agents.policy import Conversation
from paraagent.agents.transcript import Tokens, Transcriber
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.seeds import rng


class LocalPolicy:
    """A `Policy` over a model folder, or over a model that is already loaded."""

    def __init__(
        self,
        source: Path | LanguageModel,
        config: EnvConfig,
        *,
        name: str,
        temperature: float = 0.0,
        group: int = 16,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        model, tokenizer = load_language_model(source, device=device) if isinstance(source, Path) else source
        self.name = name
        self.group = group
        self.temperature = temperature
        self.seed = seed
        self.transcriber = Transcriber(tokenizer)
        self.max_new_tokens = config.max_new_tokens
        self.max_context = min(config.max_context_tokens, model.config.max_position_embeddings)
        stop = {self.transcriber.end, tokenizer.convert_tokens_to_ids(END_OF_TEXT)} - {None}
        self.decoder = Decoder(model, frozenset(stop))

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Sample the next turn of each; one whose context is full is `exhausted` and its tokens stay untouched."""
        if not any(conversation.token_ids for conversation in conversations):
            self.decoder.reset()
        pending = [self.transcriber.pending(conversation) for conversation in conversations]
        room = [
            self.max_context - len(conversation.token_ids) - len(tokens.ids)
            for conversation, tokens in zip(conversations, pending, strict=True)
        ]
        open_rows = [row for row, left in enumerate(room) if left > 0]
        for row in open_rows:
            _append(conversations[row], pending[row])
        sampled = self.decoder.generate(
            [conversations[row].token_ids for row in open_rows],
            [min(self.max_new_tokens, room[row]) for row in open_rows],
            [self._generator(conversations[row]) for row in open_rows],
            self.temperature,
        )
        completions = [Completion(text="", exhausted=True) for _ in conversations]
        for row, ids in zip(open_rows, sampled, strict=True):
            prompt_tokens = len(conversations[row].token_ids)
            _append(conversations[row], Tokens(ids, [1] * len(ids)))
            completions[row] = Completion(self.transcriber.text(ids), prompt_tokens, len(ids))
        return completions

    def _generator(self, conversation: Conversation) -> Any:
        turn = sum(message["role"] == "assistant" for message in conversation.messages)
        return rng(self.seed, "sample", conversation.task.task_id, conversation.seed, turn)


def _append(conversation: Conversation, tokens: Tokens) -> None:
    conversation.token_ids += tokens.ids
    conversation.model_mask += tokens.mask
