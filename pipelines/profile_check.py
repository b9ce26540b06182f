"""Whether the settings of a profile agree with each other and fit a GPU: arithmetic, which needs no such machine."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from paraagent.config import Profile
from paraagent.errors import RunError
from paraagent.training.architecture import Architecture
from paraagent.training.footprint import HALF, Memory, checkpoint, playing, reinforcing, tuning
from pipelines.diagnosis import Finding, free_disk, gpus
from pipelines.home import Home
from pipelines.progress import size_text

GIB = 1 << 30
USUAL_GPU = 80 * GIB
USABLE = 0.92
"""Share of a GPU's memory that can be filled: CUDA itself and gaps between tensors take the rest."""
_STATE = ("weights", "gradients", "optimizer")


class Batch(NamedTuple):
    """What one step of the optimizer learns from."""

    micro_batch: int
    """Episodes in one forward pass."""
    accumulation: int
    """Forward passes a step."""
    processes: int
    tokens: int
    """At most, where every episode is as long as it may be."""
    steps: int
    """Of one epoch, or of the whole reinforcement."""
    trained: int
    """Parameters that it changes; 0 where the model is not known."""

    @property
    def episodes(self) -> int:
        return self.micro_batch * self.accumulation * self.processes


class ProfileCheck(NamedTuple):
    """The figures of a profile, and what is to be said about them."""

    profile: str
    source: str
    model: Architecture | None
    gpu: int
    """Bytes of one GPU that is there or assumed."""
    batches: dict[str, Batch]
    memory: dict[str, Memory]
    """By kind of work; empty where the model is not known."""
    disk: int
    """Bytes that the model's download, the models of the stages and checkpoints take at most."""
    findings: list[Finding]

    def document(self) -> dict[str, Any]:
        """The same as JSON values."""
        memory = {work: {**each._asdict(), "total": each.total} for work, each in self.memory.items()}
        return {
            "profile": self.profile,
            "source": self.source,
            "parameters": self.model.parameters if self.model else None,
            "gpu_bytes": self.gpu,
            "usable_bytes": int(USABLE * self.gpu),
            "batches": {work: {**batch._asdict(), "episodes": batch.episodes} for work, batch in self.batches.items()},
            "memory_bytes": memory,
            "disk_bytes": self.disk,
            "findings": [finding._asdict() for finding in self.findings],
        }


def check_profile(profile: Profile, home: Home, gpu_gib: float | None = None) -> ProfileCheck:
    """Check a profile without running anything of it.

    Args:
        home: whose downloads and disk are looked at.
        gpu_gib: memory of one GPU; the largest that is here where it is not given, else 80.
    """
    found = gpus()
    gpu = int(gpu_gib * GIB) if gpu_gib else max((size for _, size in found), default=USUAL_GPU)
    model: Architecture | None = None
    try:
        model, origin = find_architecture(profile.model.source, home.downloads)
        of_model = Finding("model", "ok", f"{profile.model.source}, {model.parameters:,} parameters, {origin}")
    except RunError as error:
        of_model = Finding("model", "note", f"{profile.model.source}: {error}", "memory is not checked")
    memory = _memory(profile, model) if model else {}
    needed = max((each.total for each in memory.values()), default=0)
    disk = _disk(profile, model) if model else 0
    findings = [
        of_model,
        *(_machine(found, gpu, needed, disk, home) if model else ()),
        *(_fit(work, each, gpu) for work, each in memory.items()),
        *_contradictions(profile, model),
    ]
    return ProfileCheck(
        profile.name, profile.model.source, model, gpu, _batches(profile, model), memory, disk, findings
    )


def find_architecture(source: str, downloads: Path) -> tuple[Architecture, str]:
    """The numbers of the model that a source names, and where they come from; nothing but its `config.json` is fetched.

    Raises:
        RunError: the numbers cannot be had, or the kind of model is not counted.
    """
    from paraagent.agents.model_folder import read_config
    from paraagent.training.architecture import QWEN3_4B, SMOLLM2_135M, architecture
    from paraagent.training.hub import HUB, downloaded, hub_config, hub_model
    from paraagent.training.tiny import SIZES

    if source == "random:tiny":
        return architecture(SIZES), "made here"
    if source.startswith("local:"):
        return architecture(read_config(Path(source.removeprefix("local:")))), "from its folder"
    if not source.startswith(HUB):
        return architecture(SMOLLM2_135M), "known here"
    if folder := downloaded(source, downloads):
        return architecture(read_config(folder)), "downloaded"
    if hub_model(source).repository == "Qwen/Qwen3-4B":
        return architecture(QWEN3_4B), "known here"
    with tempfile.TemporaryDirectory() as folder_name:
        return architecture(read_config(hub_config(source, Path(folder_name)).parent)), "from the hub"


def gib_text(size: float) -> str:
    """Bytes in GiB: `64.5`, or `<0.1` for the little that a tiny model takes."""
    return "<0.1" if 0 < size < 0.05 * GIB else f"{size / GIB:,.1f}"


def _context(profile: Profile, model: Architecture) -> int:
    return min(profile.env.max_context_tokens, model.positions)


def _memory(profile: Profile, model: Architecture) -> dict[str, Memory]:
    sft, rl, context = profile.sft, profile.rl, _context(profile, model)
    processes = profile.machine.training_processes
    episodes, reference = rl.prompts * rl.generations, rl.beta > 0
    return {
        "fine-tuning": tuning(model, sft.micro_batch * sft.max_length, sft.frozen_layers, sft.lora_rank, processes),
        "rollouts": playing(model, episodes, context, rl.frozen_layers, reference),
        "updates": reinforcing(model, context, rl.frozen_layers, reference),
    }


def _batches(profile: Profile, model: Architecture | None) -> dict[str, Batch]:
    sft, rl = profile.sft, profile.rl
    processes, demos = profile.machine.training_processes, min(sft.max_demos, _demos(profile))
    accumulation = max(1, sft.batch_size // (sft.micro_batch * processes))
    episodes = rl.prompts * rl.generations
    return {
        "fine-tuning": Batch(
            micro_batch=sft.micro_batch,
            accumulation=accumulation,
            processes=processes,
            tokens=sft.micro_batch * accumulation * processes * sft.max_length,
            steps=math.ceil(math.ceil(demos / (sft.micro_batch * processes)) / accumulation),
            trained=model.trained(sft.frozen_layers, sft.lora_rank) if model else 0,
        ),
        "updates": Batch(
            micro_batch=1,
            accumulation=episodes,
            processes=1,
            tokens=episodes * profile.env.max_context_tokens,
            steps=rl.updates,
            trained=model.trained(rl.frozen_layers) if model else 0,
        ),
    }


def _demos(profile: Profile) -> int:
    """Most demonstrations that there can be to learn from."""
    demos = profile.demos
    made = profile.tasks.train * demos.attempts if demos.source == "team" else profile.sft.max_demos
    return min(made, demos.limit) if demos.limit else made


def _disk(profile: Profile, model: Architecture) -> int:
    """What was downloaded, the models of three stages, and the checkpoints of the stage that writes most: three at once
    in fine-tuning, two in reinforcement, since the oldest goes when a new one is whole."""
    checkpoints = max(
        3 * checkpoint(model, profile.sft.frozen_layers, profile.sft.lora_rank),
        2 * checkpoint(model, profile.rl.frozen_layers),
    )
    return 4 * HALF * model.parameters + checkpoints


def _machine(found: list[tuple[str, int]], gpu: int, needed: int, disk: int, home: Home) -> Iterator[Finding]:
    """This machine beside what the profile needs. Another one may be meant: then nothing of it is a fault."""
    import psutil

    main = psutil.virtual_memory().total
    trains = bool(found) or needed <= main
    if found:
        yield Finding("gpu", "ok", "; ".join(f"{name}, {size / GIB:.0f} GiB" for name, size in found))
    else:
        where = "fits the main memory" if trains else f"main memory has {main / GIB:.0f} GiB, too little for it"
        yield Finding("gpu", "note", f"none here; {gpu / GIB:.0f} GiB are counted with; {where}")
    free = free_disk(home)
    text = f"{size_text(disk)} for the models and checkpoints; {size_text(free)} free at {home.root}"
    if free >= disk:
        yield Finding("disk", "ok", text)
    else:
        yield Finding("disk", "missing" if trains else "note", text, "free some, or use --home elsewhere")


def _fit(work: str, memory: Memory, gpu: int) -> Finding:
    text = f"{gib_text(memory.total)} of {gib_text(USABLE * gpu)} GiB that can be filled"
    if memory.total <= USABLE * gpu:
        return Finding(work, "ok", text)
    state = sum(getattr(memory, part) for part in _STATE)
    largest = max((state, "state"), (memory.activations + memory.logits, "tokens"), (memory.cache, "cache"))[1]
    advice = {
        ("fine-tuning", "state"): "set sft.lora_rank, or raise sft.frozen_layers",
        ("fine-tuning", "tokens"): "lower sft.max_length or sft.micro_batch, or raise sft.frozen_layers",
        ("rollouts", "cache"): "lower rl.prompts, rl.generations or env.max_context_tokens",
        ("updates", "tokens"): "lower env.max_context_tokens or raise rl.frozen_layers",
    }.get((work, largest), "raise rl.frozen_layers")
    return Finding(work, "missing", text, advice)


def _contradictions(profile: Profile, model: Architecture | None) -> Iterator[Finding]:
    """Settings that cannot all be meant (`wrong`), and those that together do what few expect (`note`)."""
    sft, rl, env, demos, tasks = profile.sft, profile.rl, profile.env, profile.demos, profile.tasks
    processes = profile.machine.training_processes
    learned = sft.micro_batch * processes * max(1, sft.batch_size // (sft.micro_batch * processes))
    if learned != sft.batch_size:
        yield Finding(
            "sft.batch_size",
            "wrong",
            f"{sft.batch_size} is no multiple of sft.micro_batch = {sft.micro_batch}"
            + (f" in {processes} processes" if processes > 1 else ""),
            f"a step would learn from {learned}: set it to {learned}",
        )
    if model:
        for name, frozen in (("sft.frozen_layers", sft.frozen_layers), ("rl.frozen_layers", rl.frozen_layers)):
            if frozen >= model.layers:
                yield Finding(name, "wrong", f"{frozen} of {model.layers} layers", "leave some of them to learn")
        if sft.max_length > model.positions:
            yield Finding(
                "sft.max_length", "wrong", f"{sft.max_length} tokens, and the model reads {model.positions}", "lower it"
            )
        if env.max_context_tokens > model.positions:
            yield Finding(
                "env.max_context_tokens",
                "note",
                f"{env.max_context_tokens} tokens, and the model reads {model.positions}: episodes end there",
            )
    if env.max_new_tokens >= env.max_context_tokens:
        yield Finding(
            "env.max_new_tokens",
            "wrong",
            f"{env.max_new_tokens} tokens of one turn in a context of {env.max_context_tokens}",
            "lower it, or raise env.max_context_tokens",
        )
    elif env.max_turns * env.max_new_tokens > env.max_context_tokens:
        yield Finding(
            "env.max_turns",
            "note",
            f"{env.max_turns} turns of {env.max_new_tokens} tokens are more than env.max_context_tokens = "
            f"{env.max_context_tokens}: an episode that uses them all ends before",
        )
    if sft.max_length > env.max_context_tokens:
        yield Finding(
            "sft.max_length",
            "note",
            f"{sft.max_length} tokens, longer than any episode it will play (env.max_context_tokens = "
            f"{env.max_context_tokens})",
        )
    if demos.max_tokens > sft.max_length:
        yield Finding(
            "demos.max_tokens",
            "note",
            f"demonstrations of {sft.max_length + 1} to {demos.max_tokens} tokens are kept and not learned from "
            f"(sft.max_length = {sft.max_length})",
        )
    if _demos(profile) < sft.max_demos:
        yield Finding("sft.max_demos", "note", f"{sft.max_demos}, and at most {_demos(profile)} can be made")
    if rl.prompts > tasks.train:
        yield Finding(
            "rl.prompts", "wrong", f"{rl.prompts} an update, and {tasks.train} training tasks", "raise tasks.train"
        )
    elif rl.prompts * rl.updates > tasks.train:
        often = math.ceil(rl.prompts * rl.updates / tasks.train)
        yield Finding("rl.updates", "note", f"{rl.updates} × {rl.prompts} prompts: each task comes up to {often} times")
