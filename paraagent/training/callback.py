"""What a trainer tells the outside while it works: steps as progress, its log as a file that is always whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from paraagent.files import write_lines
from paraagent.progress import Progress
from paraagent.training.checkpoints import log_rows


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Advances the progress once a step and rewrites the log after every entry."""

    def __init__(self, progress: Progress, unit: str, log: Path, names: Mapping[str, str]) -> None:
        self.progress, self.unit, self.log, self.names = progress, unit, log, names

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.progress.start(state.max_steps, self.unit)
        if state.global_step:
            self.progress.message(f"resuming after step {state.global_step} of {state.max_steps}")
            self.progress.advance(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.progress.advance()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        write_lines(self.log, log_rows(state.log_history, self.names))
