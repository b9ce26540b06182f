"""Decoding of many token sequences at once, with what they share computed once.

Departures from the textbook: (1) every row owns its columns of one key-value buffer, so there is no padding; (2) a
sequence whose beginning is already there (the same conversation one turn earlier, or another one with the same system
prompt) is fed only the rest; (3) rows that have finished leave the batch; (4) each row draws from its own random
generator, so that its choices do not depend on who else is in the batch (its rounding does).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MIN_SHARED = 16
"""A shorter common beginning is cheaper to compute again than to copy."""


class Decoder:
    """Continues token sequences with one causal model; remembers the keys and values of its last call.

    Call `reset` when the weights change, and where a result must not depend on what was decoded before.
    """

    def __init__(self, model: Any, stop: frozenset[int]) -> None:
        self.model = model.eval()
        self.stop = stop
        self.reset()

    def reset(self) -> None:
        from paraagent.agents.kv_buffer import KvBuffer

        self._buffer = KvBuffer(self.model)
        self._held: list[list[int]] = []
        """The tokens whose keys and values each row of the buffer holds."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        budgets: Sequence[int],
        generators: Sequence[random.Random],
        temperature: float,
    ) -> list[list[int]]:
        """Continue each prompt by 1 to `budgets[i]` tokens, up to and with a stop token; greedy at temperature 0."""
        import torch

        written: list[list[int]] = [[] for _ in prompts]
        place = list(range(len(prompts)))
        with torch.inference_mode():
            logits = self._feed([list(prompt) for prompt in prompts], budgets)
            going = len(prompts)
            while going:
                chosen = _choose(logits, [generators[row] for row in place[:going]], temperature)
                for row, token in zip(place, chosen, strict=False):
                    written[row].append(token)
                for position in reversed(range(going)):
                    row = place[position]
                    if written[row][-1] in self.stop or len(written[row]) >= budgets[row]:
                        going -= 1
                        if position != going:
                            self._buffer.swap(position, going)
                            place[position], place[going] = place[going], place[position]
                if going:
                    logits = self._buffer.step([written[row][-1] for row in place[:going]])
        # The last token of a row was chosen but not fed.
        self._held = [[*prompts[row], *written[row][:-1]] for row in place]
        return written

    def _feed(self, prompts: list[list[int]], budgets: Sequence[int]) -> torch.Tensor:
        import torch

        # Emptied first: after an error half-way nothing is taken for held that is not.
        held, self._held = self._held, []
        found = [_longest(prompt, held) for prompt in prompts]
        found = [(row, length) if length >= MIN_SHARED else (-1, 0) for row, length in found]
        columns = max(len(prompt) + budget for prompt, budget in zip(prompts, budgets, strict=True))
        self._buffer.arrange([row for row, _ in found], [length for _, length in found], columns)
        last = []
        for row, prompt in enumerate(prompts):
            start = found[row][1]
            twin, common = _longest(prompt, prompts[:row])
            if common >= max(MIN_SHARED, start + 1):
                self._buffer.copy(twin, row, common)
                start = common
            start = min(start, len(prompt) - 1)
            last.append(self._buffer.prefill(row, prompt[start:], start))
        return torch.cat(last)


def _longest(prompt: list[int], others: Sequence[list[int]]) -> tuple[int, int]:
    """The first of the sequences that share the longest beginning with `prompt` (-1: none), and that length."""
    best = (-1, 0)
    for row, other in enumerate(others):
        if prompt[best[1] : best[1] + 1] == other[best[1] : best[1] + 1]:
            length = sum(takewhile(bool, map(eq, prompt, other)))
            if length > best[1]:
                best = (row, length)
    return best


def _choose(logits: torch.Tensor, generators: Sequence[random.Random], temperature: float) -> list[int]:
    """One token a row; logits (rows, vocabulary). Samples by inversion: one uniform number a token."""
    import torch

    if temperature == 0:
        greedy: list[int] = logits.argmax(-1).tolist()
        return greedy
    cumulative = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
    draws = torch.tensor([[generator.random()] for generator in generators], dtype=torch.double, device=logits.device)
    chosen = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True).squeeze(-1)
    sampled: list[int] = chosen.clamp(max=logits.shape[-1] - 1).tolist()
    return sampled
