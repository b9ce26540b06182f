"""Checkpoints of a training run: whole ones are found again after a kill, and what they log stays a plain table."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

_PARTS = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to the end; torn ones are removed."""
    whole = []
    for path in folder.glob("checkpoint-*"):
        if _is_whole(path):
            whole.append(path)
        else:
            shutil.rmtree(path)
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def logged_history(checkpoint: Path) -> list[dict[str, Any]]:
    """What the trainer had logged when it wrote the checkpoint."""
    state = orjson.loads((checkpoint / "trainer_state.json").read_bytes())
    history: list[dict[str, Any]] = state["log_history"]
    return history


def log_rows(history: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The trainer's log as rows of `step` and the metrics in `names` (theirs -> ours), without its closing summary."""
    return [
        {"step": entry["step"], **{ours: entry[theirs] for theirs, ours in names.items() if theirs in entry}}
        for entry in history
        if "loss" in entry
    ]


def _is_whole(path: Path) -> bool:
    if not all((path / part).is_file() for part in _PARTS):
        return False
    try:
        logged_history(path)
    except orjson.JSONDecodeError:
        return False
    return True
