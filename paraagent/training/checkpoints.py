"""Checkpoints of a training run: whole ones are found again after a kill, and what they log stays a plain table."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from paraagent.errors import RunError
from paraagent.files import write_json

MADE_BY = "made_by.json"
_PARTS = ("optimizer.pt", "scheduler.pt", "trainer_state.json")
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "adapter_model.safetensors")


def claim(folder: Path, made_by: Mapping[str, Any]) -> None:
    """Let `folder` hold the checkpoints of one run: the one that `made_by` (JSON values) describes.

    Raises:
        RunError: it holds those of another.
    """
    path = folder / MADE_BY
    if path.is_file():
        held = orjson.loads(path.read_bytes())
        if other := sorted(name for name in {*held, *made_by} if held.get(name) != made_by.get(name)):
            told = ", ".join(f"{name} {held.get(name)} there and {made_by.get(name)} here" for name in other)
            raise RunError(f"{folder} holds checkpoints of another run ({told}): remove it, or write to another folder")
    write_json(path, dict(made_by))


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
    held = {part.name for part in path.iterdir()}
    if not held.issuperset(_PARTS) or held.isdisjoint(_WEIGHTS):
        return False
    try:
        logged_history(path)
    except orjson.JSONDecodeError:
        return False
    return True
