"""Logits only where a token is learned: most of an episode is observations, and the vocabulary is the widest layer."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad

MULTIPLE = 64
"""Lengths are rounded up to this: every new length costs a CPU new kernels, in time and in memory that it keeps."""


def predicting(
    model: Any, input_ids: torch.Tensor, chosen: torch.Tensor, position_ids: torch.Tensor | None = None
) -> torch.Tensor:
    """Logits of the positions that predict the `chosen` tokens, shape (number chosen, vocabulary), row by row.

    Args:
        model: a causal language model of transformers.
        input_ids: shape (rows, columns). Padding may stand on the right only: a causal model then needs no mask, since
            what comes later changes nothing before it.
        position_ids: the shape of `input_ids`, where a row holds several episodes: each counts from 0, and none looks
            at what stands before its own 0.
        chosen: bool, the shape of `input_ids`; the first column predicts nothing before it, so it must be False.
    """
    room = -input_ids.shape[1] % MULTIPLE
    padded = pad(input_ids, (0, room))
    if position_ids is not None:
        # Padding counts on, as part of the last episode: a row with one episode then needs no mask at all.
        after = position_ids[:, -1:] + torch.arange(1, room + 1, device=position_ids.device)
        position_ids = torch.cat([position_ids, after], 1)
    before = pad(chosen[:, 1:], (0, room + 1))
    told = model(input_ids=padded, position_ids=position_ids, use_cache=False, logits_to_keep=before)
    logits: torch.Tensor = told.logits
    return logits.float()
