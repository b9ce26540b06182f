"""Validation tasks along a run: when they are played, which weights stay, and that kills and playing change no byte."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from paraagent.agents.language_model import load_language_model
from paraagent.config import SftConfig
from paraagent.files import read_lines, sha256_file
from paraagent.progress import Quiet
from paraagent.training.sft import CHECKPOINTS, SftReport, tune

CONFIG = SftConfig(learning_rate=1e-2, epochs=3, batch_size=2, max_demos=9, save_steps=100, validations=3)
SOLVED = {5: 1, 10: 3, 15: 2}


class Player:
    """Says that the weights of each step solve so many tasks, and looks at the weights that it is given."""

    def __init__(self, interrupt: int = 0) -> None:
        self.played: list[int] = []
        self.weights: dict[int, torch.Tensor] = {}
        self.interrupt = interrupt

    def __call__(self, model: Path) -> Mapping[str, Any]:
        step = int(model.name.rpartition("-")[2])
        torch.rand(7)  # playing may draw by chance
        self.weights[step] = load_language_model(model).model.get_input_embeddings().weight.float().clone()
        if len(self.played) + 1 == self.interrupt:
            raise KeyboardInterrupt
        self.played.append(step)
        return {"solved": SOLVED[step], "tasks": 4, "targets": 4, "found": 4, "called": SOLVED[step]}


@pytest.fixture(scope="module")
def player() -> Player:
    return Player()


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("closed")


@pytest.fixture(scope="module")
def report(demos_file: Path, tiny_model_dir: Path, out: Path, player: Player) -> SftReport:
    return tune(demos_file, tiny_model_dir, out, CONFIG, 5, Quiet(), player)


def test_tasks_are_played_evenly_along_the_run_and_at_its_end(report: SftReport, player: Player) -> None:
    assert player.played == [5, 10, 15]
    assert [row["step"] for row in report.validation] == [5, 10, 15]
    times = [row["seconds"] for row in report.validation]
    assert 0 < times[0] <= times[1] <= times[2]


def test_the_weights_that_solve_most_are_the_result(report: SftReport, player: Player, out: Path) -> None:
    assert report.best_step == 10
    kept = load_file(out / "model" / "model.safetensors")["model.embed_tokens.weight"].float()
    assert kept.equal(player.weights[10])
    assert not kept.equal(player.weights[15])
    assert not (out / CHECKPOINTS).exists()


def test_the_curve_is_written_without_times(report: SftReport, out: Path) -> None:
    rows = list(read_lines(out / "validation.jsonl"))
    assert [row["solved"] for row in rows] == [1, 3, 2]
    assert all("seconds" not in row for row in rows)


def test_playing_changes_no_weight(
    report: SftReport, player: Player, demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    unplayed = load_file(tmp_path / "model" / "model.safetensors")["model.embed_tokens.weight"].float()
    assert unplayed.equal(player.weights[15])


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_that_breaks_off_while_it_plays_ends_in_the_same_bytes(
    at: int, report: SftReport, out: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet(), Player(interrupt=at))
    again = Player()
    resumed = tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet(), again)
    assert resumed.best_step == 10
    times = [row["seconds"] for row in resumed.validation]
    assert 0 < times[0] <= times[1] <= times[2]
    assert again.played == [5, 10, 15][at - 1 :]
    for name in ("model/model.safetensors", "log.jsonl", "validation.jsonl"):
        assert sha256_file(tmp_path / name) == sha256_file(out / name)
