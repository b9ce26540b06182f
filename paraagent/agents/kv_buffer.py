"""Keys and values of several sequences in one buffer: row = sequence, column = position.

The model sees it as a transformers cache. A prefill writes a run of tokens into one row; a step writes one token into
each of the first n rows, at each row's own position, and reads plain slices, so nothing is padded, concatenated or
gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

MULTIPLE = 64
"""Prefills are padded to this on the right: a new length costs a CPU new kernels. The rest is overwritten."""


@dataclass
class _Target:
    """Where the next forward pass writes, shared by all layers."""

    first_row: int = 0
    rows: int = 0
    start: int = 0
    """First column of a prefill."""
    columns: int = 0
    """Columns that the pass reads."""
    positions: torch.Tensor | None = None
    """Column of each row in a step; None in a prefill."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, target: _Target, heads: int, width: int, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.target = target
        self.keys = torch.empty((0, heads, 0, width), dtype=dtype, device=device)
        self.values = self.keys
        self.is_initialized = True

    def arrange(self, sources: Sequence[int], columns: int) -> None:
        self.keys = _arranged(self.keys, sources, columns)
        self.values = _arranged(self.values, sources, columns)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> tuple[Any, Any]:
        target = self.target
        rows = slice(target.first_row, target.first_row + target.rows)
        if target.positions is None:
            self.keys[rows, :, target.start : target.columns] = key_states
            self.values[rows, :, target.start : target.columns] = value_states
        else:
            each = torch.arange(target.rows, device=key_states.device)
            self.keys[each, :, target.positions] = key_states[:, :, 0]
            self.values[each, :, target.positions] = value_states[:, :, 0]
        return self.keys[rows, :, : target.columns], self.values[rows, :, : target.columns]

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """`arrange` allocates."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.target.columns, 0

    def get_seq_length(self) -> int:
        return self.target.start

    def get_max_length(self) -> int:
        return -1


class KvBuffer:
    """The buffer of one causal model. Rows are physical: whoever swaps them keeps the books."""

    def __init__(self, model: Any) -> None:
        config = model.config
        heads = config.num_key_value_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.model = model
        self._target = _Target()
        self._layers = [
            _Layer(self._target, heads, width, model.dtype, model.device) for _ in range(config.num_hidden_layers)
        ]
        self._cache = Cache(layers=list(self._layers))
        self._lengths: list[int] = []

    def arrange(self, sources: Sequence[int], shared: Sequence[int], columns: int) -> None:
        """Rebuild the rows: row i keeps the first `shared[i]` columns of old row `sources[i]` (-1: starts empty)."""
        room = (columns // MULTIPLE + 2) * MULTIPLE
        for layer in self._layers:
            layer.arrange(sources, room)
        self._lengths = list(shared)

    def copy(self, source: int, row: int, length: int) -> None:
        """Give `row` the first `length` columns of `source`."""
        for layer in self._layers:
            layer.keys[row, :, :length] = layer.keys[source, :, :length]
            layer.values[row, :, :length] = layer.values[source, :, :length]
        self._lengths[row] = length

    def swap(self, one: int, other: int) -> None:
        columns = max(self._lengths[one], self._lengths[other])
        for layer in self._layers:
            for tensor in (layer.keys, layer.values):
                kept = tensor[one, :, :columns].clone()
                tensor[one, :, :columns] = tensor[other, :, :columns]
                tensor[other, :, :columns] = kept
        self._lengths[one], self._lengths[other] = self._lengths[other], self._lengths[one]

    def prefill(self, row: int, tokens: Sequence[int], start: int) -> torch.Tensor:
        """Write `tokens` into `row` from column `start` on; the logits after the last one, shape (1, vocabulary)."""
        target, device = self._target, self.model.device
        padded = -(-len(tokens) // MULTIPLE) * MULTIPLE
        target.first_row, target.rows, target.positions = row, 1, None
        target.start, target.columns = start, start + padded
        self._lengths[row] = start + len(tokens)
        mask = torch.ones((1, 1, padded, target.columns), dtype=torch.bool, device=device).tril(start)
        positions = torch.arange(start, target.columns, device=device)[None]
        ids = torch.tensor([[*tokens, *[0] * (padded - len(tokens))]], device=device)
        return self._forward(ids, positions, mask if start else None, len(tokens) - 1)

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        """Write one token into each of the first rows; the logits after each, shape (rows, vocabulary)."""
        target, device = self._target, self.model.device
        rows = len(tokens)
        positions = torch.tensor(self._lengths[:rows], device=device)
        target.first_row, target.rows, target.positions = 0, rows, positions
        target.columns = max(self._lengths[:rows]) + 1
        self._lengths[:rows] = [length + 1 for length in self._lengths[:rows]]
        mask = (torch.arange(target.columns, device=device)[None] <= positions[:, None])[:, None, None]
        return self._forward(torch.tensor(tokens, device=device)[:, None], positions[:, None], mask, 0)

    def _forward(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, last: int
    ) -> torch.Tensor:
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=torch.tensor([last], device=ids.device),
        )
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits


def _arranged(before: torch.Tensor, sources: Sequence[int], columns: int) -> torch.Tensor:
    rows, heads, old, width = before.shape
    after = before.new_zeros((len(sources), heads, columns, width))
    kept = [row for row, source in enumerate(sources) if source >= 0]
    if kept and rows:
        common = min(old, columns)
        after[kept, :, :common] = before[[sources[row] for row in kept], :, :common]
    return after
