"""Supervised fine-tuning on demonstrations: TRL's trainer over token ids and labels made by our own transcript.

Only the model's own tokens carry loss, and logits exist only where there is a label. A run that was killed goes on
from its last whole checkpoint (weights, optimizer, random state, data order) to the same bytes that an uninterrupted
run gives.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paraagent.agents.language_model import LanguageModel, bfloat16_is_fast, load_language_model
from paraagent.agents.transcript import Transcriber
from paraagent.config import SftConfig
from paraagent.errors import RunError
from paraagent.progress import Progress
from paraagent.seeds import rng
from paraagent.training.checkpoints import last_checkpoint, logged_history
from paraagent.training.pretrained import save_model

CHECKPOINTS = "checkpoints"
_LOG = {
    "loss": "loss",
    "mean_token_accuracy": "token_accuracy",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "num_tokens": "tokens",
    "epoch": "epoch",
}
_IGNORED = -100


class SftReport(NamedTuple):
    """What a run learned from, and how it ended."""

    demos: int
    steps: int
    tokens: int
    """Tokens of one epoch."""
    loss_first: float
    loss_last: float


def tune(demos: Path, model: Path, out: Path, config: SftConfig, seed: int, progress: Progress) -> SftReport:
    """Tune the model in folder `model` on `demos` (Parquet); writes `out/model` and `out/log.jsonl`.

    Raises:
        RunError: no demonstration fits `max_length`, or the loss is no number any more.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from datasets.utils.logging import disable_progress_bar
    from trl import SFTConfig

    from paraagent.training.callback import Reporter
    from paraagent.training.sft_trainer import LabelledTrainer

    disable_progress_bar()
    loaded = load_language_model(model, training=True, frozen_layers=config.frozen_layers)
    rows = _tokenised(_choose(_read(demos), config, seed), Transcriber(loaded.tokenizer))
    if not rows:
        raise RunError(
            f"no demonstration has at most sft.max_length = {config.max_length} tokens and a turn to learn from: "
            "raise it, or give other demonstrations"
        )
    accelerated = torch.cuda.is_available()
    arguments = SFTConfig(
        output_dir=str(out / CHECKPOINTS),
        per_device_train_batch_size=config.micro_batch,
        gradient_accumulation_steps=max(1, config.batch_size // config.micro_batch),
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=config.warmup,
        adam_beta2=config.beta2,
        bf16=bfloat16_is_fast(),
        use_cpu=not accelerated,
        max_length=None,
        activation_checkpointing=False,
        save_steps=config.save_steps,
        save_total_limit=2,
        logging_steps=1,
        disable_tqdm=True,
        report_to="none",
        seed=seed % 2**32,
        dataloader_pin_memory=False,
    )
    trainer = LabelledTrainer(
        model=loaded.model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=loaded.tokenizer,
        callbacks=[Reporter(progress, "steps", out / "log.jsonl", _LOG)],
    )
    quiet_trainer(trainer)
    resume = last_checkpoint(out / CHECKPOINTS)
    if resume:
        trainer.tokens_seen = int(logged_history(resume)[-1]["num_tokens"])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    save_model(LanguageModel(trainer.accelerator.unwrap_model(trainer.model), loaded.tokenizer), out / "model")
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    tokens = sum(len(row["input_ids"]) for row in rows)
    return SftReport(len(rows), trainer.state.global_step, tokens, losses[0], losses[-1])


def quiet_trainer(trainer: Any) -> None:
    """Leave printing to the progress."""
    from transformers import PrinterCallback, ProgressCallback

    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)


def _read(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path, columns=["messages", "mistakes", "width", "n_tokens"]).to_pylist()
    return rows


def _choose(rows: Sequence[dict[str, Any]], config: SftConfig, seed: int) -> list[dict[str, Any]]:
    """At most `max_demos` that fit, every width in its share, in an order that depends on the seed."""
    fitting = [row for row in rows if row["n_tokens"] <= config.max_length]
    rng(seed, "demos").shuffle(fitting)
    by_width: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in fitting:
        by_width[row["width"]].append(row)
    share = min(1.0, config.max_demos / max(1, len(fitting)))
    chosen = [row for _, group in sorted(by_width.items()) for row in group[: round(share * len(group))]]
    rng(seed, "order").shuffle(chosen)
    return chosen[: config.max_demos]


def _tokenised(rows: Sequence[dict[str, Any]], transcriber: Transcriber) -> list[dict[str, list[int]]]:
    made = []
    for row in rows:
        tokens = transcriber.render(row["messages"], unlearned=row["mistakes"])
        labels = [token if own else _IGNORED for token, own in zip(tokens.ids, tokens.mask, strict=True)]
        if any(tokens.mask):
            made.append({"input_ids": tokens.ids, "labels": labels})
    return made
