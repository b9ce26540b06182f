"""TRL's SFT trainer with a loss that needs no logits for tokens without a label.

The parent's fused head goes through the vocabulary in float32 pieces, which saves memory on an accelerator and took
four tenths of a step on a CPU.
"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn.functional import cross_entropy
from trl import SFTTrainer

from paraagent.agents.transcript import IGNORED
from paraagent.errors import RunError
from paraagent.training.logits import predicting


class LabelledTrainer(SFTTrainer):  # type: ignore[misc]
    """An SFT trainer for causal language models; logs loss, token accuracy and tokens seen."""

    tokens_seen: int = 0

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Raises RunError where it cannot be written whole; what there is of it is removed, those before it stay."""
        step = self.state.global_step
        try:
            super()._save_checkpoint(model, trial)
        except (OSError, RuntimeError, SafetensorError) as error:
            rmtree(Path(self.args.output_dir) / f"checkpoint-{step}", ignore_errors=True)
            why = str(error).splitlines()[0]
            raise RunError(
                f"The checkpoint of step {step} could not be written to {self.args.output_dir} ({why}): make room on "
                "that disk and run the same command again; it goes on from the checkpoint before"
            ) from error

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean loss over the labelled tokens of the whole step (`num_items_in_batch` of them).

        Raises:
            RunError: it is no number any more.
        """
        chosen = inputs["labels"] != IGNORED
        chosen[:, 0] = False
        targets = inputs["labels"][chosen]
        with self.accelerator.autocast():
            logits = predicting(model, inputs["input_ids"], chosen, inputs["position_ids"])
        share = len(targets) if num_items_in_batch is None else num_items_in_batch
        # Gradients are averaged over processes, and `share` counts the labels of all of them.
        processes = self.accelerator.num_processes
        loss: torch.Tensor = cross_entropy(logits, targets, reduction="sum") / share * processes
        if not torch.isfinite(loss):
            # These weights are what the last step left; the checkpoint before them has been learned on from.
            rmtree(Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}", ignore_errors=True)
            raise RunError(
                f"the loss became {loss.item()} in step {self.state.global_step + 1}: lower the learning rate; "
                "the last checkpoint before that is kept"
            )
        right = (logits.argmax(-1) == targets).float().mean()
        seen = torch.tensor(inputs["input_ids"].numel(), device=right.device)
        self.tokens_seen += int(self.accelerator.reduce(seen, "sum"))
        self._metrics["train"]["mean_token_accuracy"].append(self.accelerator.reduce(right, "mean").item())
        self._metrics["train"]["num_tokens"] = [self.tokens_seen]
        return (loss, {"logits": logits}) if return_outputs else loss
