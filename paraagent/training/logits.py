"""Logits only where a token is learned: most of an episode is observations, and the vocabulary is the widest layer."""

from __future__ import annotations

from typing import Any

import torch


def predicting(model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Logits of the positions that predict the `chosen` tokens, shape (number chosen, vocabulary), row by row.

    Args:
        model: a causal language model of transformers, not wrapped.
        input_ids: shape (rows, columns).
        attention_mask: 1 where there is a token; padding may stand on both sides.
        chosen: bool, the shape of `input_ids`; the first column predicts nothing before it, so it must be False.
    """
    # Without padding no mask is needed, and attention is causal by a flag instead of by a matrix.
    padded = None if bool(attention_mask.all()) else attention_mask
    positions = (attention_mask.cumsum(-1) - 1).clamp(min=0) if padded is not None else None
    hidden = model.get_decoder()(
        input_ids=input_ids, attention_mask=padded, position_ids=positions, use_cache=False
    ).last_hidden_state
    logits: torch.Tensor = model.get_output_embeddings()(hidden[:, :-1][chosen[:, 1:]])
    return logits.float()
