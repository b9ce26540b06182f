"""A model by its numbers: what its `config.json` says, and the parameters that follow from it. Needs no torch.

Counted is the usual decoder: attention with grouped heads, a gated feed-forward layer, two norms a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paraagent.errors import RunError

QWEN3_4B = {
    "model_type": "qwen3",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": True,
}
SMOLLM2_135M = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49_152,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
TYPES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class Architecture:
    """Widths and counts of one model."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    key_value_heads: int
    head_width: int
    vocabulary: int
    positions: int
    """Tokens that it was made to read at once."""
    tied: bool
    """The output layer is the embedding."""
    head_norms: bool
    """Queries and keys have a norm each."""
    biases: int
    """Of one layer."""

    @property
    def queries(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_width

    @property
    def keys(self) -> int:
        """Width of all key heads together, and of all value heads."""
        return self.key_value_heads * self.head_width

    @property
    def embedding(self) -> int:
        """Parameters of the embedding, and of the output layer."""
        return self.vocabulary * self.hidden

    @property
    def layer(self) -> int:
        """Parameters of one layer."""
        matrices = sum(rows * columns for rows, columns in self.matrices)
        return matrices + 2 * self.hidden + 2 * self.head_width * self.head_norms + self.biases

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of the linear layers in one layer: query, key, value, output; gate, up, down."""
        h, q, k, f = self.hidden, self.queries, self.keys, self.feed_forward
        return (h, q), (h, k), (h, k), (q, h), (h, f), (h, f), (f, h)

    @property
    def parameters(self) -> int:
        return self.embedding * (1 if self.tied else 2) + self.layers * self.layer + self.hidden

    def trained(self, frozen_layers: int = 0, lora_rank: int = 0) -> int:
        """Parameters that training changes.

        Args:
            frozen_layers: lowest layers left as they are, together with the embedding.
            lora_rank: rank of adapters on each linear layer above these, trained in place of the weights; 0 is none.
        """
        above = max(0, self.layers - frozen_layers)
        if lora_rank:
            return above * lora_rank * sum(rows + columns for rows, columns in self.matrices)
        if not frozen_layers:
            return self.parameters
        return above * self.layer + self.hidden + (0 if self.tied else self.embedding)


def architecture(config: Mapping[str, Any]) -> Architecture:
    """The numbers of a `config.json`.

    Raises:
        RunError: a kind of model that is not counted here, or a number that is missing.
    """
    kind = config.get("model_type")
    if kind not in TYPES:
        raise RunError(f"models of the type {kind} are not counted here, only {', '.join(TYPES)}")
    hidden, heads = _number(config, "hidden_size"), _number(config, "num_attention_heads")
    width = config.get("head_dim") or (128 if kind == "qwen3" else hidden // heads)
    key_value_heads = config.get("num_key_value_heads") or heads
    feed_forward = _number(config, "intermediate_size")
    biases, q, k = 0, heads * width, key_value_heads * width
    if kind == "qwen2":
        biases += q + 2 * k
    elif kind != "mistral" and config.get("attention_bias"):
        biases += q + 2 * k + hidden
    if kind == "llama" and config.get("mlp_bias"):
        biases += 2 * feed_forward + hidden
    return Architecture(
        hidden=hidden,
        feed_forward=feed_forward,
        layers=_number(config, "num_hidden_layers"),
        heads=heads,
        key_value_heads=key_value_heads,
        head_width=width,
        vocabulary=_number(config, "vocab_size"),
        positions=_number(config, "max_position_embeddings"),
        tied=bool(config.get("tie_word_embeddings", False)),
        head_norms=kind == "qwen3",
        biases=biases,
    )


def _number(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or value < 1:
        raise RunError(f"its config.json has no {name}")
    return value
