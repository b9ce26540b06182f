"""LocalPolicy: a causal language model in this process, token in, token out.

The ids that the model sampled stay in the conversation as they are, so training sees exactly what was sampled. The
randomness of a call derives from the policy's seed and from who is in the batch at which turn: the same group gives the
same turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraagent.agents.language_model import END_OF_TEXT, LanguageModel, load_language_model
from paraagent.agents.policy import Conversation
from paraagent.agents.transcript import Tokens, Transcriber
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.seeds import derive

if TYPE_CHECKING:
    from paraagent.agents.prefix import Prefix


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
        self.model, tokenizer = load_language_model(source) if isinstance(source, Path) else source
        self.name = name
        self.group = group
        self.temperature = temperature
        self.seed = seed
        self.transcriber = Transcriber(tokenizer)
        self.max_new_tokens = config.max_new_tokens
        self.max_context = min(config.max_context_tokens, self.model.config.max_position_embeddings)
        self.read: Prefix | None = None
        """What the model has read of the last batch."""
        self.stop = sorted({self.transcriber.end, tokenizer.convert_tokens_to_ids(END_OF_TEXT)} - {None})

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Sample the next turn of each; one whose context is full is `exhausted` and its tokens stay untouched."""
        pending = [self.transcriber.pending(conversation) for conversation in conversations]
        room = [
            self.max_context - len(conversation.token_ids) - len(tokens.ids)
            for conversation, tokens in zip(conversations, pending, strict=True)
        ]
        open_rows = [row for row, left in enumerate(room) if left > 0]
        for row in open_rows:
            _append(conversations[row], pending[row])
        sampled = self._sample(
            [conversations[row].token_ids for row in open_rows],
            [min(self.max_new_tokens, room[row]) for row in open_rows],
            derive(self.seed, "sample", *(_turn_key(conversations[row]) for row in open_rows)),
        )
        completions = [Completion(text="", exhausted=True) for _ in conversations]
        for row, ids in zip(open_rows, sampled, strict=True):
            prompt_tokens = len(conversations[row].token_ids)
            _append(conversations[row], Tokens(ids, [1] * len(ids)))
            completions[row] = Completion(self.transcriber.text(ids), prompt_tokens, len(ids))
        return completions

    def _sample(self, prompts: Sequence[Sequence[int]], budgets: Sequence[int], seed: int) -> list[list[int]]:
        """Continue each prompt by 1 to `budgets[i]` tokens, up to and with a stop token; greedy at temperature 0."""
        import torch

        from paraagent.agents.prefix import Prefix, padded

        if not prompts:
            return []
        known, self.read = self.read and self.read.before(prompts), None
        prefix = known or Prefix.empty(self.model, len(prompts))
        filler = self.stop[0]
        new = [prompt[len(ids) :] for prompt, ids in zip(prompts, prefix.ids, strict=True)]
        ids, mask = padded(new, filler, self.model.device)
        mask = torch.cat([prefix.mask, mask], 1)
        choice: dict[str, Any] = {"do_sample": False}
        if self.temperature:
            choice = {"do_sample": True, "temperature": self.temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(seed)
            written = self.model.generate(
                input_ids=torch.cat([prefix.mask.new_full(prefix.mask.shape, filler), ids], 1),
                attention_mask=mask,
                cache=prefix.cache,
                max_new_tokens=max(budgets),
                eos_token_id=self.stop,
                pad_token_id=filler,
                **choice,
            )
            sampled = written[:, mask.shape[1] :].tolist()
            cut = [self._cut(row, budget) for row, budget in zip(sampled, budgets, strict=True)]
            self.read = prefix.extended(prompts, mask, cut)
        return cut

    def _cut(self, ids: list[int], budget: int) -> list[int]:
        """Up to and with the first stop token, and within the row's own budget."""
        end = next((place + 1 for place, token in enumerate(ids) if token in self.stop), len(ids))
        return ids[: min(end, budget)]


def _turn_key(conversation: Conversation) -> str:
    turn = sum(message["role"] == "assistant" for message in conversation.messages)
    return f"{conversation.task.task_id}/{conversation.seed}/{turn}"


def _append(conversation: Conversation, tokens: Tokens) -> None:
    conversation.token_ids += tokens.ids
    conversation.model_mask += tokens.mask
