"""The real command line over the fake stages of `tests/pipelines/fake.py`: `python tests/cli/fake_cli.py run …`."""

from __future__ import annotations

import os

from paraagent.cli import app
from pipelines import registry
from tests.pipelines.fake import fake_stages

if __name__ == "__main__":
    stages = fake_stages(float(os.environ.get("FAKE_DELAY", "0")))
    registry.STAGE_NAMES = tuple(stages)  # type: ignore[assignment]
    registry._load = stages.__getitem__  # type: ignore[assignment]
    app(prog_name="paraagent")
