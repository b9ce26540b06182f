"""TRL's GRPO trainer with our advantages: three reward channels, normalised apart.

Differs from the parent in four things: the advantages of a batch are replaced by ours; a batch without signal leaves
the weights untouched; columns that are padding in a micro-batch are cut off before the forward pass; logits exist
only where the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from paraagent.training.advantages import Advantages, decoupled
from paraagent.training.logits import predicting
from paraagent.training.rollout import CHANNELS, Channel, Sampler, Scored, reward


class DecoupledTrainer(GRPOTrainer):  # type: ignore[misc]
    """A GRPO trainer over a `Sampler`; `weights` are those of the reward channels."""

    def __init__(self, *, sampler: Sampler, weights: Mapping[Channel, float], **settings: Any) -> None:
        self.sampler, self.weights = sampler, weights
        self.signal = True
        self.record: dict[str, Any] = {}
        self._own: torch.Tensor | None = None
        """Where the model wrote, in the micro-batch at hand, shape (rows, completion columns)."""
        super().__init__(rollout_func=sampler, reward_funcs=[_channel(name) for name in CHANNELS], **settings)
        self.add_callback(_LeaveAlone(self))

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        batch = self.sampler.batch
        groups = np.arange(len(batch)) // self.num_generations
        found = batch_advantages(batch, groups, self.weights)
        self.signal = not found.reason
        output["advantages"] = torch.tensor(found.values, dtype=torch.float32, device=output["advantages"].device)
        self.record = describe(batch, found, int(groups[-1]) + 1)
        return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        if not self.signal:
            nothing: torch.Tensor = next(model.parameters()).sum() * 0
            return nothing
        self._own = inputs["completion_mask"].bool() & inputs["tool_mask"].bool()
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        self._own = None
        return loss

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Log-probabilities and entropies of the tokens that the model wrote; 0 for observations and padding."""
        logps, entropies = [], []
        for row in range(len(input_ids)):
            here = attention_mask[row].bool()
            chosen = here.clone()
            chosen[:-logits_to_keep] = False
            if self._own is not None:
                chosen[-logits_to_keep:] &= self._own[row]
            ids, kept = input_ids[row][here][None], chosen[here][None]
            with self.accelerator.autocast():
                logits = predicting(model, ids, kept) / self.temperature
            known = torch.log_softmax(logits, -1)
            own = known.gather(-1, ids[kept][:, None])[:, 0]
            entropy = -(known.exp() * known).sum(-1).detach()
            empty = own.new_zeros(len(here))
            logps.append(empty.masked_scatter(chosen, own)[-logits_to_keep:])
            entropies.append(empty.masked_scatter(chosen, entropy)[-logits_to_keep:])
        return torch.stack(logps), torch.stack(entropies), None

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            logs.update(self.record)
        super().log(logs, start_time)


class _LeaveAlone(TrainerCallback):  # type: ignore[misc]
    """Drops the gradients of a batch without signal: then the optimizer's momentum does not move the weights either."""

    def __init__(self, trainer: DecoupledTrainer) -> None:
        self.trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.trainer.signal:
            self.trainer.model.zero_grad(set_to_none=True)


def batch_advantages(batch: list[Scored], groups: Any, weights: Mapping[Channel, float]) -> Advantages:
    """One advantage an episode, from its three channels."""
    channels = {name: np.array([reward(scored, name) for scored in batch]) for name in CHANNELS}
    return decoupled(channels, weights, groups, np.array([scored.verdict for scored in batch]))


def describe(batch: list[Scored], found: Advantages, groups: int) -> dict[str, Any]:
    """What one batch showed, for the log: success, each channel's mean and deviation, flat groups, tokens."""
    known = [scored for scored in batch if scored.verdict]
    record: dict[str, Any] = {
        "episodes": len(batch),
        "without_verdict": len(batch) - len(known),
        "solved": float(np.mean([scored.rewards.solved for scored in known])) if known else 0.0,
        "sampled_tokens": sum(sum(scored.rollout.conversation.model_mask) for scored in batch),
        "groups": groups,
        "skipped": found.reason,
    }
    for name in CHANNELS:
        values = [reward(scored, name) for scored in known]
        record[f"{name}_mean"] = float(np.mean(values)) if values else 0.0
        record[f"{name}_std"] = float(np.std(values)) if values else 0.0
        record[f"{name}_flat_groups"] = found.flat[name]
    return record


def _channel(name: Channel) -> Any:
    def column(**columns: Any) -> list[float]:
        values: list[float] = columns[name]
        return values

    column.__name__ = name
    return column
