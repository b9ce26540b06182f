"""Reinforcement learning: a few clipped policy-gradient updates on episodes that the model itself plays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paraagent.agents.language_model import LanguageModel, bfloat16_is_fast, load_language_model
from paraagent.config import EnvConfig, RewardConfig, RlConfig
from paraagent.errors import RunError
from paraagent.files import append_lines, read_lines, write_lines
from paraagent.progress import Progress
from paraagent.seeds import rng
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.training.checkpoints import last_checkpoint
from paraagent.training.pretrained import save_model
from paraagent.training.sft import CHECKPOINTS, quiet_trainer

if TYPE_CHECKING:
    from paraagent.training.rollout import Scored

EPISODES = "episodes.jsonl"
_CHANNEL_LOG = [f"{name}_{what}" for name in ("trajectory", "phase", "step") for what in ("mean", "std", "flat_groups")]
_OWN_LOG = ("solved", *_CHANNEL_LOG, "groups", "skipped", "episodes", "without_verdict", "sampled_tokens")
_LOG = {name: name for name in ("loss", "learning_rate", "grad_norm", "entropy", "kl", *_OWN_LOG)}


class RlReport(NamedTuple):
    """What a run did."""

    updates: int
    skipped: int
    """Updates whose batch carried no signal."""
    episodes: int
    sampled_tokens: int
    solved_first: float
    """Share of the first update's episodes that were solved."""
    solved_last: float


def reinforce(
    tasks: Sequence[Task],
    env: Callable[[], ToolEnv],
    model: Path,
    out: Path,
    config: RlConfig,
    env_config: EnvConfig,
    rewards: RewardConfig,
    seed: int,
    progress: Progress,
) -> RlReport:
    """Train the model in folder `model` on `tasks`; writes `out/model`, `out/log.jsonl` and `out/episodes.jsonl`.

    Raises:
        RunError: there are fewer tasks than prompts in an update.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    import torch
    from datasets import Dataset
    from datasets.utils.logging import disable_progress_bar
    from trl import GRPOConfig

    from paraagent.training.callback import Reporter
    from paraagent.training.grpo import DecoupledTrainer
    from paraagent.training.rollout import Sampler

    if len(tasks) < config.prompts:
        raise RunError(f"there are {len(tasks)} training tasks for rl.prompts = {config.prompts}; raise tasks.train")
    disable_progress_bar()
    loaded = load_language_model(model, training=True, frozen_layers=config.frozen_layers)
    chosen = choose_tasks(tasks, config.updates * config.prompts, seed)
    size = config.prompts * config.generations
    sampler = Sampler(
        keep=partial(_append, out / EPISODES),
        twin=load_language_model(model),
        env=env,
        env_config=env_config,
        reward_config=rewards,
        tasks={task.task_id: task for task in chosen},
        temperature=config.temperature,
        group=size,
        seed=seed,
    )
    arguments = GRPOConfig(
        output_dir=str(out / CHECKPOINTS),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=size,
        num_generations=config.generations,
        max_steps=config.updates,
        shuffle_dataset=False,
        max_completion_length=env_config.max_context_tokens,
        temperature=config.temperature,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant",
        beta=config.beta,
        loss_type="dapo",
        bf16=bfloat16_is_fast(),
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=False,
        save_steps=1,
        save_total_limit=1,
        logging_steps=1,
        disable_tqdm=True,
        report_to="none",
        seed=seed % 2**32,
        dataloader_pin_memory=False,
    )
    trainer = DecoupledTrainer(
        sampler=sampler,
        weights=config.channels,
        model=loaded.model,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [task.task_id for task in chosen]}),
        processing_class=loaded.tokenizer,
        callbacks=[Reporter(progress, "updates", out / "log.jsonl", _LOG)],
    )
    quiet_trainer(trainer)
    resume = last_checkpoint(out / CHECKPOINTS)
    done = int(resume.name.rpartition("-")[2]) if resume else 0
    write_lines(out / EPISODES, [row for row in read_lines(out / EPISODES) if row["update"] < done])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    save_model(LanguageModel(trainer.accelerator.unwrap_model(trainer.model), loaded.tokenizer), out / "model")
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    history = [entry for entry in trainer.state.log_history if "loss" in entry]
    return RlReport(
        updates=len(history),
        skipped=sum(bool(entry["skipped"]) for entry in history),
        episodes=sum(entry["episodes"] for entry in history),
        sampled_tokens=sum(entry["sampled_tokens"] for entry in history),
        solved_first=history[0]["solved"],
        solved_last=history[-1]["solved"],
    )


def choose_tasks(tasks: Sequence[Task], number: int, seed: int) -> list[Task]:
    """`number` tasks, as different ones as there are, shapes in turn: a batch then holds easy and hard ones."""
    by_width: dict[int, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: task.task_id):
        by_width.setdefault(task.width, []).append(task)
    for width, group in sorted(by_width.items()):
        rng(seed, "rl", width).shuffle(group)
    columns = [group for _, group in sorted(by_width.items())]
    longest = max(len(group) for group in columns)
    turns = [group[place] for place in range(longest) for group in columns if place < len(group)]
    return [turns[place % len(turns)] for place in range(number)]


def _append(path: Path, update: int, batch: Sequence[Scored]) -> None:
    rows = (
        {"unit": f"{update}/{place}", "update": update, "row": scored.rollout.episode.model_dump(mode="json")}
        for place, scored in enumerate(batch)
    )
    append_lines(path, rows)
