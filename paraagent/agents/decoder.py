"""Decoding for episodes: keys and values that stay from turn to turn, a row a conversation, each at its own pace.

A row holds one conversation from its first token on, without padding. What a prompt shares with a row, its own
conversation's or another's, is not read again. A step writes one token to every row, wherever the row is; so turns that
end early do not wait for long ones, and a finished conversation's row is taken by the next.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from paraagent.errors import RunError

_ROOM = 128
"""Room is made for multiples of so many columns, and a step looks at all of it: new widths cost a CPU new kernels."""
_MULTIPLE = 32
"""New tokens are read by such multiples, for the same reason."""
_TOKENS = 8_192
"""Tokens that are read at once, so that the memory for it has a bound."""
_ATTENTION = "paraagent-grouped"

Name = TypeVar("Name", bound=Hashable)
"""What conversations are told apart by."""


class Rows(Cache):  # type: ignore[misc]
    """Keys and values of all rows, in room for more; written in place where `rows` and `columns` say.

    A model calls `update` once a layer in every forward pass; the decoder says before it what is to be written.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.keys: list[torch.Tensor] = []
        """One a layer, each of shape (rows, heads, columns, head size)."""
        self.values: list[torch.Tensor] = []
        self.height = self.width = 0
        """Rows that are in use, the first ones; and columns for which there is room."""
        self.rows = self.columns = torch.empty(0, dtype=torch.long)
        """Where the pass writes: of shapes (rows of the pass, ascending) and (rows of the pass, new columns)."""
        self.end = 0
        """Columns that its queries may look at."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the new columns of a layer; returns the keys and values that its queries may look at."""
        if layer_idx == len(self.keys):
            self.keys.append(key_states[:0, :, :0])
            self.values.append(value_states[:0, :, :0])
        return self._write(self.keys, key_states, layer_idx), self._write(self.values, value_states, layer_idx)

    def _write(self, held: list[torch.Tensor], new: torch.Tensor, layer: int) -> torch.Tensor:
        room = self._room(held, layer)
        room[self.rows[:, None], :, self.columns] = new.transpose(1, 2)
        rows = room[: self.height] if len(self.rows) == self.height else room[self.rows]
        return rows[:, :, : self.end]

    def _room(self, held: list[torch.Tensor], layer: int) -> torch.Tensor:
        old = held[layer]
        if len(old) < self.height or old.shape[2] != self.width:
            # Zeros, since what is masked is still multiplied, and by chance memory holds no numbers.
            new = old.new_zeros(max(self.height, len(old)), old.shape[1], self.width, old.shape[3])
            both = min(self.width, old.shape[2])
            new[: len(old), :, :both] = old[:, :, :both]
            held[layer] = new
        return held[layer]

    @torch.inference_mode()
    def copy(self, source: int, target: int, columns: int) -> None:
        """Give row `target` the first `columns` of row `source`."""
        for held in (self.keys, self.values):
            for layer in range(len(held)):
                room = self._room(held, layer)
                room[target, :, :columns] = room[source, :, :columns]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """0, since where a row's tokens stand and what they look at is said with every pass."""
        return 0


class Decoder(Generic[Name]):
    """A causal language model with full attention, and the rows that it has read.

    Not for models whose attention slides over a window: what they forget cannot be looked up by column.
    """

    def __init__(self, model: Any) -> None:
        """Raises RunError where the model's attention is not full in every layer."""
        kinds = set(getattr(model.config, "layer_types", None) or [])
        if not kinds and getattr(model.config, "sliding_window", None):
            kinds = {"sliding_attention"}
        if kinds - {"full_attention"}:
            raise RunError(
                f"A model with {', '.join(sorted(kinds))} cannot be sampled in this process: serve it, and name it as "
                "--policy openai:MODEL"
            )
        if model.config._attn_implementation == "sdpa":
            model.set_attn_implementation(_ATTENTION)
        self.model = model
        self.forget()

    def forget(self) -> None:
        """Drop everything that was read, as where a pass broke off."""
        self.cache = Rows()
        self.names: list[Name] = []
        """Whose tokens each row holds."""
        self.read: list[list[int]] = []
        """The tokens of each row whose keys and values are known."""

    def seat(self, names: Collection[Name]) -> None:
        """Give each of `names` a row: its own where it has one, else one that nobody needs any more.

        A new row begins with whatever the old one leaves in its place, until `begin` gives it a prompt.
        """
        new = [name for name in names if name not in self.names]
        free = [row for row, name in enumerate(self.names) if name not in names]
        for row, name in zip(free, new, strict=False):
            self.names[row] = name
        for row in reversed(free[len(new) :]):
            last = len(self.names) - 1
            if row < last:
                self.cache.copy(last, row, len(self.read[last]))
            self.names[row], self.read[row] = self.names[last], self.read[last]
            del self.names[last], self.read[last]
        self.names += new[len(free) :]
        self.read += [[] for _ in new[len(free) :]]
        self.cache.height = len(self.names)

    def begin(self, prompts: Mapping[Name, Sequence[int]]) -> torch.Tensor:
        """Read a prompt into each of these rows, without what is known of it.

        Returns the logits after each, of shape (prompts, vocabulary).
        """
        asked = {self.names.index(name): list(prompt) for name, prompt in prompts.items()}
        self._read_common(asked)
        lacking = {row: len(prompt) - self._recall(row, prompt) for row, prompt in asked.items()}
        logits: dict[int, torch.Tensor] = {}
        while lacking:
            rows = _next_pass(asked, lacking)
            width = _width(max(lacking.pop(row) for row in rows), min(len(asked[row]) for row in rows))
            logits |= zip(rows, self._pass(rows, [asked[row] for row in rows], width), strict=True)
        return torch.stack([logits[row] for row in asked])

    def step(self, tokens: Sequence[int]) -> torch.Tensor:
        """Read one more token in every row; returns the logits after it, of shape (rows, vocabulary)."""
        longer = [[*ids, token] for ids, token in zip(self.read, tokens, strict=True)]
        return self._pass(range(len(longer)), longer, 1)

    def _read_common(self, asked: Mapping[int, list[int]]) -> None:
        """Read once, in one row, what all prompts begin with and no row holds, as a system prompt is."""
        first, *others = asked
        common = min((_shared(asked[first], asked[row]) for row in others), default=0)
        if common > max(_shared(ids, asked[first]) for ids in self.read):
            known = self._recall(first, asked[first][:common])
            self._pass([first], [asked[first][:common]], common - known)

    def _recall(self, row: int, prompt: Sequence[int]) -> int:
        """Give a row what is known of a prompt; returns of how many tokens. The last is read in any case."""
        shared = [_shared(ids, prompt) for ids in self.read]
        source = max(range(len(shared)), key=lambda each: (shared[each], each == row))
        known = min(shared[source], len(prompt) - 1)
        if source != row and known:
            self.cache.copy(source, row, known)
        self.read[row] = list(prompt[:known])
        return known

    @torch.inference_mode()
    def _pass(self, rows: Sequence[int], prompts: Sequence[list[int]], width: int) -> torch.Tensor:
        """Read the last `width` tokens of each prompt; returns the logits after it, of shape (rows, vocabulary)."""
        for row, prompt in zip(rows, prompts, strict=True):
            self.read[row] = prompt
        self.cache.width = -(-max(map(len, self.read)) // _ROOM) * _ROOM
        self.cache.end = end = self.cache.width if width == 1 else max(map(len, prompts))
        device = self.model.device
        ends = torch.tensor([len(prompt) for prompt in prompts], device=device)
        places = ends[:, None] - width + torch.arange(width, device=device)
        self.cache.rows, self.cache.columns = torch.tensor(rows, device=device), places
        hidden = (torch.arange(end, device=device) > places[:, :, None])[:, None]
        out = self.model(
            input_ids=torch.tensor([prompt[-width:] for prompt in prompts], device=device),
            position_ids=places,
            attention_mask=torch.zeros(hidden.shape, dtype=self.model.dtype, device=device).masked_fill(
                hidden, float("-inf")
            ),
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = out.logits[:, -1].float()
        return logits


def _next_pass(prompts: Mapping[int, Sequence[int]], lacking: Mapping[int, int]) -> list[int]:
    """Rows to read together, in their order: those with the longest rest.

    All read as much as the longest: what a row lacks less, it reads once more, so it must be long enough.
    """
    order = sorted(lacking, key=lambda row: (-lacking[row], row))
    longest = lacking[order[0]]
    alike = [row for row in order if len(prompts[row]) >= longest and 2 * lacking[row] + _MULTIPLE > longest]
    return sorted(alike[: max(1, _TOKENS // longest)])


def _width(lacking: int, most: int) -> int:
    return min(-(-lacking // _MULTIPLE) * _MULTIPLE, most)


def _shared(known: Sequence[int], prompt: Sequence[int]) -> int:
    """How many tokens two sequences have in common from the first on."""
    most = min(len(known), len(prompt))
    if known[:most] == prompt[:most]:
        return most
    return next(place for place in range(most) if known[place] != prompt[place])


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as in transformers; for the one query a row of a step twice as fast on a CPU.

    Heads that share keys are the columns of one product, keys first: in this order bfloat16 keys are read as they lie.
    """
    rows, heads, queries, size = query.shape
    if queries > 1 or attention_mask is None or query.device.type != "cpu":
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)  # type: ignore[no-any-return]
    grouped = query.reshape(rows * key.shape[1], -1, size)
    scores = torch.bmm(key.flatten(0, 1), grouped.transpose(1, 2)).transpose(1, 2).float()
    scores = scores.reshape(rows, key.shape[1], -1, key.shape[2]).mul_(scaling or size**-0.5).add_(attention_mask)
    weights = scores.softmax(-1).to(value.dtype).flatten(0, 1)
    return torch.bmm(weights, value.flatten(0, 1)).reshape(rows, 1, heads, -1), None


AttentionInterface.register(_ATTENTION, _attend)
AttentionMaskInterface.register(_ATTENTION, sdpa_mask)
