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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paraagent.agents.language_model import LanguageModel, bfloat16_is_fast, load_language_model
from paraagent.agents.transcript import Transcriber
from paraagent.config import SftConfig
from paraagent.errors import RunError
from paraagent.files import sha256_file, write_lines
from paraagent.progress import Progress, Quiet
from paraagent.seeds import rng
from paraagent.training.adapters import save_adapters, with_adapters
from paraagent.training.checkpoints import claim, last_checkpoint, logged_history
from paraagent.training.pretrained import save_model
from paraagent.training.spread import spread

if TYPE_CHECKING:
    from paraagent.training.closed_loop import ClosedLoop, Play

CHECKPOINTS = "checkpoints"
_WAIT = 86_400
"""Seconds that the other processes wait while one plays validation tasks."""
_LOG = {
    "loss": "loss",
    "mean_token_accuracy": "token_accuracy",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "num_tokens": "tokens",
    "epoch": "epoch",
}


class SftReport(NamedTuple):
    """What a run learned from, and how it ended."""

    demos: int
    left_out: dict[str, int]
    """Demonstrations that were not learned from, by reason."""
    steps: int
    tokens: int
    """Tokens of one epoch."""
    loss_first: float
    loss_last: float
    validation: list[dict[str, Any]]
    """One row a playing of validation tasks, see `closed_loop.ClosedLoop.rows`."""
    best_step: int
    """The step whose weights are the result."""


class _Inputs(NamedTuple):
    """What every process of a training is given."""

    demos: Path
    model: Path
    out: Path
    config: SftConfig
    seed: int
    processes: int
    resume: Path | None
    """The checkpoint to go on from."""
    plays: bool
    """Whether validation tasks are played along the way."""


class _Trained(NamedTuple):
    """What a process holds at the end of a training."""

    trainer: Any
    tokenizer: Any
    loop: ClosedLoop | None
    tokens: int
    demos: int
    left_out: dict[str, int]


def tune(
    demos: Path,
    model: Path,
    out: Path,
    config: SftConfig,
    seed: int,
    progress: Progress,
    play: Play | None = None,
    processes: int = 1,
) -> SftReport:
    """Tune the model in folder `model` on `demos` (Parquet).

    Writes `out/model`, `out/log.jsonl`, and `out/validation.jsonl` where `play` plays validation tasks. With LoRA the
    adapters are added to the weights, and stand in `out/model/adapter` too, as peft loads them onto the base model.
    `processes` share the demonstrations of each step: the result is that of one process within rounding.

    Raises:
        RunError: no demonstration fits `max_length`, the loss is no number any more, a checkpoint cannot be written, or
            `out` holds checkpoints of another run.
    """
    folder = out / CHECKPOINTS
    claim(folder, _made_by(demos, model, config, seed, processes))
    plays = play is not None and config.validations > 0
    given = _Inputs(demos, model, out, config, seed, processes, last_checkpoint(folder), plays)
    with spread(processes, _train, given):
        done = _train(given, progress, play)
    losses = [entry["loss"] for entry in done.trainer.state.log_history if "loss" in entry]
    steps = done.trainer.state.global_step
    best_step, validation = (done.loop.best_step, done.loop.rows) if done.loop else (steps, [])
    if done.loop:
        untimed = ({name: value for name, value in row.items() if name != "seconds"} for row in validation)
        write_lines(out / "validation.jsonl", untimed)
        _publish(done.loop.best, out / "model")
    else:
        _save(done.trainer, done.tokenizer, out / "model")
    shutil.rmtree(folder, ignore_errors=True)
    return SftReport(done.demos, done.left_out, steps, done.tokens, losses[0], losses[-1], validation, best_step)


def _train(given: _Inputs, progress: Progress | None = None, play: Play | None = None) -> _Trained:
    """One process of a training; without `progress` one that computes along."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from datasets.utils.logging import disable_progress_bar
    from trl import SFTConfig

    from paraagent.training.callback import Reporter
    from paraagent.training.closed_loop import ClosedLoop, Planned
    from paraagent.training.sft_trainer import LabelledTrainer

    disable_progress_bar()
    demos, model, out, config, seed, processes, resume, plays = given
    shown, progress = progress is not None, progress or Quiet()
    folder = out / CHECKPOINTS
    loaded = load_language_model(model, training=True, frozen_layers=0 if config.lora_rank else config.frozen_layers)
    rows, left_out = _tokenised(_read(demos), Transcriber(loaded.tokenizer), config, seed)
    if not rows:
        raise RunError(
            f"no demonstration has at most sft.max_length = {config.max_length} tokens and a turn to learn from: "
            "raise it, or give other demonstrations"
        )
    if left_out:
        told = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        progress.message(f"{len(rows)} demonstrations to learn from; left out: {told}")
    network = loaded.model
    if config.lora_rank:
        network = with_adapters(network, config.lora_rank, config.lora_alpha, config.frozen_layers, seed)
    arguments = SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=config.micro_batch,
        gradient_accumulation_steps=max(1, config.batch_size // (config.micro_batch * processes)),
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=config.warmup,
        adam_beta2=config.beta2,
        bf16=bfloat16_is_fast(),
        use_cpu=not torch.cuda.is_available(),
        max_length=None,
        padding_free=True,
        activation_checkpointing=False,
        save_steps=config.save_steps,
        save_total_limit=2,
        logging_steps=1,
        disable_tqdm=True,
        report_to="none",
        seed=seed % 2**32,
        dataloader_pin_memory=False,
        ddp_find_unused_parameters=False,
        ddp_timeout=_WAIT,
    )
    trainer = LabelledTrainer(
        model=network,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=loaded.tokenizer,
        callbacks=[Reporter(progress, "steps", out / "log.jsonl", _LOG)] if shown else [],
    )
    quiet_trainer(trainer)
    loop = None
    if play and plays:
        loop = ClosedLoop(play, config.validations, partial(_save, trainer, loaded.tokenizer), folder, progress)
        trainer.add_callback(loop)
    elif plays:
        trainer.add_callback(Planned(config.validations))
    if resume:
        trainer.tokens_seen = int(logged_history(resume)[-1]["num_tokens"])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    tokens = sum(len(row["input_ids"]) for row in rows)
    return _Trained(trainer, loaded.tokenizer, loop, tokens, len(rows), left_out)


def _made_by(demos: Path, model: Path, config: SftConfig, seed: int, processes: int) -> dict[str, Any]:
    """What decides every byte of a run, on one machine."""
    weights = sorted(model.glob("*.safetensors"))
    return {
        **{f"sft.{name}": value for name, value in config.model_dump(mode="json").items()},
        "seed": seed,
        "processes": processes,
        "demonstrations": sha256_file(demos)[:12],
        "model": " ".join(sha256_file(path)[:12] for path in weights),
    }


def _save(trainer: Any, tokenizer: Any, out: Path) -> None:
    """Write the weights of this moment, as they are published; adapters also on their own, in `out/adapter`."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    save_model(LanguageModel(model, tokenizer), out)
    save_adapters(model, out / "adapter")


def _publish(weights: Path, out: Path) -> None:
    """Copy rather than move: a kill in between leaves the weights where the next run looks for them."""
    staged = out.with_name(f".{out.name}.partial")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(weights, staged)
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)


def quiet_trainer(trainer: Any) -> None:
    """Leave printing to the progress."""
    from transformers import PrinterCallback, ProgressCallback

    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)


def _read(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path, columns=["messages", "mistakes", "width", "n_tokens"]).to_pylist()
    return rows


def _tokenised(
    rows: Sequence[dict[str, Any]], transcriber: Transcriber, config: SftConfig, seed: int
) -> tuple[list[dict[str, list[int]]], dict[str, int]]:
    """Token ids and labels of at most `max_demos` that fit, every width in its share, in an order that depends on the
    seed; and how many were left out for which reason."""
    fitting = [row for row in rows if row["n_tokens"] <= config.max_length]
    rng(seed, "demos").shuffle(fitting)
    by_width: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in fitting:
        by_width[row["width"]].append(row)
    share = min(1.0, config.max_demos / max(1, len(fitting)))
    chosen = [row for _, group in sorted(by_width.items()) for row in group[: round(share * len(group))]]
    rng(seed, "order").shuffle(chosen)
    made = []
    for row in chosen[: config.max_demos]:
        tokens = transcriber.render(row["messages"], unlearned=row["mistakes"])
        if any(tokens.mask):
            made.append({"input_ids": tokens.ids, "labels": tokens.labels})
    counts = {
        f"longer than {config.max_length} tokens": len(rows) - len(fitting),
        "without a turn to learn from": len(chosen[: config.max_demos]) - len(made),
        f"beyond sft.max_demos = {config.max_demos}": len(fitting) - len(chosen[: config.max_demos]),
    }
    return made, {reason: count for reason, count in counts.items() if count}
