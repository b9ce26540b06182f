"""What training and playing take on a GPU, by arithmetic alone.

As it is done here: weights in float32 under bfloat16 autocast, AdamW, no activation checkpointing, one GPU a
process, attention that never holds its square, logits only where the model wrote, and a copy in bfloat16 that plays.
"""

from __future__ import annotations

from typing import NamedTuple

from paraagent.training.architecture import Architecture

LABELLED = 0.5
"""Most of an episode that the model wrote: at most 0.43 in demonstrations of five kinds, 0.26 to 0.31 in their mean."""
FULL, HALF = 4, 2
"""Bytes of a number in float32 and in bfloat16."""
TUNED_LOGIT, REINFORCED_LOGIT = 10, 16
"""Bytes for each entry of the vocabulary and each label: logits, their logarithms, and gradients or entropies."""


class Memory(NamedTuple):
    """Bytes on the GPU at the fullest moment of one kind of work."""

    weights: int
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    logits: int = 0
    cache: int = 0

    @property
    def total(self) -> int:
        return sum(self)


def tuning(model: Architecture, tokens: int, frozen_layers: int = 0, lora_rank: int = 0, processes: int = 1) -> Memory:
    """Supervised fine-tuning on micro-batches of `tokens` tokens, in one of `processes`."""
    alone = _backward(model, tokens, frozen_layers, lora_rank, TUNED_LOGIT)
    # Where processes add up their gradients, those travel in buckets of their own.
    return alone._replace(gradients=2 * alone.gradients) if processes > 1 else alone


def reinforcing(model: Architecture, tokens: int, frozen_layers: int, reference: bool) -> Memory:
    """An update on episodes of `tokens` tokens, one at a time, beside the copy that plays.

    Args:
        reference: whether a second model in float32 is there to be compared with.
    """
    update = _backward(model, tokens, frozen_layers, 0, REINFORCED_LOGIT)
    return update._replace(weights=update.weights + _beside(model, reference))


def playing(model: Architecture, episodes: int, tokens: int, frozen_layers: int, reference: bool) -> Memory:
    """Episodes of up to `tokens` tokens, all at once, beside the model that is trained and its optimizer."""
    return Memory(
        weights=FULL * model.parameters + _beside(model, reference),
        optimizer=2 * FULL * model.trained(frozen_layers),
        cache=episodes * tokens * cached_token(model),
    )


def cached_token(model: Architecture) -> int:
    """Bytes that keys and values of one token take in all layers."""
    return 2 * model.layers * model.keys * HALF


def saved_token(model: Architecture) -> int:
    """Bytes that one layer keeps of one token for the backward pass.

    The residual stream and the norms stay in float32, and each linear layer keeps its own input in bfloat16.
    """
    heads = 10 if model.head_norms else 4
    return 26 * model.hidden + heads * (model.queries + model.keys) + 8 * model.feed_forward


def checkpoint(model: Architecture, frozen_layers: int = 0, lora_rank: int = 0) -> int:
    """Bytes of one checkpoint: what is saved of the weights in float32, and the optimizer."""
    trained = model.trained(frozen_layers, lora_rank)
    return FULL * (trained if lora_rank else model.parameters) + 2 * FULL * trained


def _backward(model: Architecture, tokens: int, frozen_layers: int, lora_rank: int, logit: int) -> Memory:
    trained = model.trained(frozen_layers, lora_rank)
    above = max(0, model.layers - frozen_layers)
    adapters = trained if lora_rank else 0
    # Autocast's copies of the weights live until the backward pass is through.
    copies = above * model.layer + model.embedding + adapters
    return Memory(
        weights=FULL * (model.parameters + adapters) + HALF * copies,
        gradients=FULL * trained,
        optimizer=2 * FULL * trained,
        activations=tokens * above * saved_token(model),
        logits=int(LABELLED * tokens) * model.vocabulary * logit,
    )


def _beside(model: Architecture, reference: bool) -> int:
    """Bytes of the copy that plays and of the reference."""
    return (HALF + FULL * reference) * model.parameters
