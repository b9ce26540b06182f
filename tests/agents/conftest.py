"""A tiny random model on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraagent.progress import Quiet
from paraagent.training.pretrained import prepare_model


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-model")
    prepare_model("random:tiny", folder, folder / "model", seed=1, progress=Quiet())
    return folder / "model"
