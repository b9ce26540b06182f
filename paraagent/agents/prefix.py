"""What a model has read already: keys and values, kept from one turn to the next.

A conversation only grows, so each turn begins with the tokens of the turn before. Kept, a turn costs its new tokens
and not the whole conversation once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SPARE = 256
"""Columns for which room is made beyond those that are needed."""


class Columns(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, in room for more: a step writes its own columns and copies none that are there."""

    _room: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns. Returns all keys and all values, each of shape (rows, heads, columns, head size)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        after = held + key_states.shape[-2]
        room = self._room
        if room is None or room[0].shape[-2] < after or self._is_elsewhere(room):
            wide = (*key_states.shape[:2], after + _SPARE, key_states.shape[3])
            room = key_states.new_empty(wide), value_states.new_empty(wide)
            if held:
                room[0][:, :, :held] = self.keys
                room[1][:, :, :held] = self.values
            self._room = room
        room[0][:, :, held:after] = key_states
        room[1][:, :, held:after] = value_states
        self.keys: torch.Tensor = room[0][:, :, :after]
        self.values: torch.Tensor = room[1][:, :, :after]
        return self.keys, self.values

    def _is_elsewhere(self, room: tuple[torch.Tensor, torch.Tensor]) -> bool:
        """Whether other tensors were put in the place of what the room holds, as where rows are chosen anew."""
        return any(
            part.data_ptr() != each.data_ptr() for part, each in zip((self.keys, self.values), room, strict=True)
        )


class Prefix(NamedTuple):
    """The rows of a batch that were read. Padding may stand anywhere: the mask says where."""

    ids: list[list[int]]
    """What was read of each row."""
    mask: torch.Tensor
    """Shape (rows, columns), 0 at padding."""
    cache: DynamicCache

    @classmethod
    def empty(cls, model: PreTrainedModel, rows: int) -> Prefix:
        """Nothing read of any of `rows` rows."""
        mask = torch.zeros(rows, 0, dtype=torch.long, device=model.device)
        cache = DynamicCache(config=model.config)
        cache.layers = [Columns() if type(layer) is DynamicLayer else layer for layer in cache.layers]
        return cls([[] for _ in range(rows)], mask, cache)

    def before(self, prompts: Sequence[Sequence[int]]) -> Prefix | None:
        """The rows that begin `prompts`, without columns of padding alone; None where a prompt begins with none.

        The cache changes hands: this prefix is not to be used any more.
        """
        if not all(isinstance(layer, Columns) for layer in self.cache.layers):
            return None  # a sliding window forgets, so its columns are not those of the mask
        rows = [self._row(prompt) for prompt in prompts]
        if None in rows:
            return None
        chosen = torch.tensor(rows, device=self.mask.device)
        mask = self.mask[chosen]
        columns = mask.argsort(dim=1, stable=True)[:, mask.shape[1] - int(mask.sum(1).max()) :]
        for layer in self.cache.layers:
            layer.keys = layer.keys[chosen[:, None], :, columns].transpose(1, 2)
            layer.values = layer.values[chosen[:, None], :, columns].transpose(1, 2)
        return Prefix([self.ids[row] for row in chosen.tolist()], mask.gather(1, columns), self.cache)

    def _row(self, prompt: Sequence[int]) -> int | None:
        begins = (row for row, ids in enumerate(self.ids) if len(ids) < len(prompt) and [*prompt[: len(ids)]] == ids)
        return max(begins, key=lambda row: len(self.ids[row]), default=None)

    def extended(
        self, prompts: Sequence[Sequence[int]], mask: torch.Tensor, written: Sequence[Sequence[int]]
    ) -> Prefix:
        """After `prompts` were read and `written` sampled, the last column of which was not read.

        Args:
            prompts: the whole prompts, this prefix included.
            mask: shape (rows, columns of prompts), 0 at padding.
            written: the tokens of each row that count, from the first sampled column on.
        """
        read = self.cache.get_seq_length() - mask.shape[1]
        kept = [list(ids[:read]) for ids in written]
        sampled = torch.tensor([[1] * len(ids) + [0] * (read - len(ids)) for ids in kept], device=mask.device)
        joined = torch.cat([mask, sampled.reshape(len(kept), read).to(mask.dtype)], 1)
        return Prefix([[*prompt, *ids] for prompt, ids in zip(prompts, kept, strict=True)], joined, self.cache)


def padded(rows: Sequence[Sequence[int]], filler: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """`rows` and their mask, padded on the left; each of shape (rows, longest row)."""
    width = max(map(len, rows))
    missing = [width - len(row) for row in rows]
    ids = torch.tensor([[filler] * n + list(row) for n, row in zip(missing, rows, strict=True)], device=device)
    mask = torch.tensor([[0] * n + [1] * (width - n) for n in missing], device=device)
    return ids, mask
