"""Training in several processes: the same steps as in one, whole after a kill, and the reason where one fails."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from paraagent.config import SftConfig
from paraagent.errors import RunError
from paraagent.files import read_lines, sha256_file
from paraagent.progress import Quiet
from paraagent.training.sft import tune
from paraagent.training.spread import spread
from tests.training.test_sft import _StopsAfter

CONFIG = SftConfig(learning_rate=1e-3, epochs=2, batch_size=4, max_demos=8, save_steps=2, validations=2)


class Player:
    """Notes at which steps validation tasks are played."""

    def __init__(self) -> None:
        self.played: list[int] = []

    def __call__(self, model: Path) -> Mapping[str, Any]:
        self.played.append(int(model.name.rpartition("-")[2]))
        return dict.fromkeys(("solved", "tasks", "targets", "found", "called"), 1)


@pytest.fixture(scope="module")
def whole(demos_file: Path, tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("spread")
    player = Player()
    tune(demos_file, tiny_model_dir, out, CONFIG, 5, Quiet(), player, processes=2)
    assert player.played == [2, 4]
    assert not dist.is_initialized()
    return out


def test_two_processes_learn_what_one_does(whole: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    alone, together = (list(read_lines(out / "log.jsonl")) for out in (tmp_path, whole))
    assert [row["tokens"] for row in together] == [row["tokens"] for row in alone]
    assert [row["loss"] for row in together] == pytest.approx([row["loss"] for row in alone], rel=5e-3)
    trained = load_file(whole / "model" / "model.safetensors")
    for name, weight in load_file(tmp_path / "model" / "model.safetensors").items():
        torch.testing.assert_close(trained[name].float(), weight.float(), atol=2e-2, rtol=0.1)


def test_a_broken_run_of_two_processes_ends_in_the_same_bytes(
    whole: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, _StopsAfter(2), Player(), processes=2)
    assert not (tmp_path / "model").exists()
    with pytest.raises(RunError, match="processes 2 there and 1 here"):
        tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet(), Player(), processes=2)
    for name in ("model/model.safetensors", "log.jsonl"):
        assert sha256_file(tmp_path / name) == sha256_file(whole / name)


def meets_and_fails() -> None:
    dist.init_process_group("gloo")
    raise RunError("the disk of rank 1 is full")


def test_the_reason_of_another_process_is_told() -> None:
    with pytest.raises(RunError, match="the disk of rank 1 is full"):
        _meet()
    assert not dist.is_initialized()


def _meet() -> None:
    with spread(2, meets_and_fails):
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(1))
