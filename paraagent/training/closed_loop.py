"""Closed loop: along a run of training its weights play validation tasks, and those that solve most are kept.

The loss says how well a model continues what others began; only playing shows whether it gets through an episode.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import torch
from transformers import TrainerCallback

from paraagent.files import read_lines, write_json, write_lines
from paraagent.progress import Progress

Play = Callable[[Path], Mapping[str, Any]]
"""Plays validation tasks with the model in a folder; returns at least `solved` and `tasks`, both counts."""


class Planned(TrainerCallback):  # type: ignore[misc]
    """Has a checkpoint written at the steps where validation tasks are played: in every process of a training."""

    def __init__(self, times: int) -> None:
        self.times = times

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self.steps(state.max_steps):
            control.should_save = True

    def steps(self, last: int) -> set[int]:
        """Evenly spread, the last one at the end."""
        return {round(last * (place + 1) / self.times) for place in range(self.times)} - {0}


class ClosedLoop(Planned):
    """Plays at the planned steps, each behind a checkpoint, and keeps the best weights in a folder of their own.

    A kill while it plays costs that playing alone: the run goes on from the checkpoint and plays again.
    """

    def __init__(self, play: Play, times: int, save: Callable[[Path], None], folder: Path, progress: Progress) -> None:
        """
        Args:
            play: plays the validation tasks.
            times: how often, evenly spread; the last time at the end.
            save: writes the weights of this moment to a folder, as they would be published.
            folder: where the checkpoints are; `validation.jsonl`, `seconds.json` (of training up to the last
                checkpoint) and `best-STEP` stand beside them.
            progress: told what each playing showed.
        """
        super().__init__(times)
        self.play, self.save, self.folder = play, save, folder
        self.progress = progress
        self.log, self.clock = folder / "validation.jsonl", folder / "seconds.json"
        self.rows: list[dict[str, Any]] = []
        """One a playing: `step`, `seconds` of training before it, and what `play` returned."""
        self._seconds, self._since = 0.0, time.monotonic()

    @property
    def best(self) -> Path:
        """The weights that solved most, the later ones of equals."""
        return self.folder / f"best-{self.best_step}"

    @property
    def best_step(self) -> int:
        """The step at which they were."""
        best: dict[str, Any] = max(self.rows, key=lambda row: (row["solved"], row["step"]))
        step: int = best["step"]
        return step

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.rows = [row for row in read_lines(self.log) if row["step"] <= state.global_step]
        self._seconds = orjson.loads(self.clock.read_bytes()) if state.global_step and self.clock.is_file() else 0.0
        self._since = time.monotonic()
        self._play_at(state)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now = time.monotonic()
        self._seconds, self._since = self._seconds + now - self._since, now
        write_json(self.clock, self._seconds)
        self._play_at(state)

    def _play_at(self, state: Any) -> None:
        step = state.global_step
        if step not in self.steps(state.max_steps) or any(row["step"] == step for row in self.rows):
            return
        self.progress.message(f"step {step}: playing validation tasks")
        weights = self.folder / f"best-{step}"
        # What is drawn by chance afterwards must not depend on whether this was played now or before a kill.
        drawn = random.getstate()
        with torch.random.fork_rng():
            self.save(weights)
            row = {"step": step, "seconds": round(self._seconds, 1), **self.play(weights)}
        random.setstate(drawn)
        self.rows.append(row)
        write_lines(self.log, self.rows)
        for other in self.folder.glob("best-*"):
            if other != self.best:
                shutil.rmtree(other)
        self.progress.message(f"step {step}: {row['solved']} of {row['tasks']} validation tasks solved")
        self._since = time.monotonic()
