import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from paraagent.agents.language_model import load_language_model
from paraagent.config import SftConfig
from paraagent.demos.dataset import write_demos
from paraagent.errors import RunError
from paraagent.files import read_lines, sha256_file
from paraagent.progress import Quiet
from paraagent.training.checkpoints import last_checkpoint
from paraagent.training.sft import CHECKPOINTS, tune

CONFIG = SftConfig(learning_rate=1e-2, epochs=3, batch_size=2, max_demos=9, save_steps=2)
ROOT = Path(__file__).parents[2]
RUN = """
import os, sys, time
from pathlib import Path
from paraagent.config import SftConfig
from paraagent.progress import Quiet
from paraagent.training.sft import tune

class Slow(Quiet):
    def advance(self, n=1):
        time.sleep(0.2)

demos, model, out, config = sys.argv[1:]
tune(Path(demos), Path(model), Path(out), SftConfig.model_validate_json(config), 5, Slow())
"""
FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv.pop())
from paraagent.training.sft_trainer import LabelledTrainer
save = LabelledTrainer._save_optimizer_and_scheduler
def filling(self, folder):
    if self.state.global_step == 4:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    save(self, folder)
LabelledTrainer._save_optimizer_and_scheduler = filling
"""


class _StopsAfter(Quiet):
    """Somebody presses Ctrl-C after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def advance(self, n: int = 1) -> None:
        self.left -= n
        if self.left < 0:
            raise KeyboardInterrupt


class _Tells(Quiet):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def message(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def tuned(demos_file: Path, tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned")
    report = tune(demos_file, tiny_model_dir, out, CONFIG, 5, Quiet())
    assert report.demos == 9
    assert report.steps == 15
    return out


def test_the_loss_falls_and_is_logged_at_every_step(tuned: Path) -> None:
    log = list(read_lines(tuned / "log.jsonl"))
    assert [row["step"] for row in log] == list(range(1, 16))
    assert log[-1]["loss"] < log[0]["loss"] - 1
    assert all(row["tokens"] > 0 and "learning_rate" in row for row in log)


def test_only_the_model_and_its_log_are_left(tuned: Path) -> None:
    assert sorted(path.name for path in tuned.iterdir()) == ["log.jsonl", "model"]


def test_a_run_killed_three_times_ends_in_the_same_bytes(
    tuned: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    arguments = [str(demos_file), str(tiny_model_dir), str(tmp_path), CONFIG.model_dump_json()]
    for steps in ("[2-4]", "[4-8]", "1[0-4]"):
        process = subprocess.Popen([sys.executable, "-c", RUN, *arguments], cwd=ROOT, env={**os.environ})
        deadline = time.monotonic() + 120
        while not list((tmp_path / "checkpoints").glob(f"checkpoint-{steps}/trainer_state.json")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(random.random() * 0.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "model").exists()
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    assert sha256_file(tmp_path / "model" / "model.safetensors") == sha256_file(tuned / "model" / "model.safetensors")
    assert (tmp_path / "log.jsonl").read_bytes() == (tuned / "log.jsonl").read_bytes()


def test_a_torn_checkpoint_is_passed_over(tuned: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    torn = tmp_path / "checkpoints" / "checkpoint-7"
    torn.mkdir(parents=True)
    (torn / "model.safetensors").write_bytes(b"half")
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    assert sha256_file(tmp_path / "model" / "model.safetensors") == sha256_file(tuned / "model" / "model.safetensors")


def test_frozen_layers_stay_as_they_were(demos_file: Path, tiny_model_dir: Path, tmp_path: Path) -> None:

    tune(demos_file, tiny_model_dir, tmp_path, CONFIG.model_copy(update={"frozen_layers": 1, "epochs": 1}), 5, Quiet())
    before = load_file(tiny_model_dir / "model.safetensors")
    after = load_file(tmp_path / "model" / "model.safetensors")
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    assert all(".layers.1." in name or name == "model.norm.weight" for name in changed)


def test_demonstrations_packed_into_one_row_teach_what_they_teach_apart(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    apart, packed = (
        tune(demos_file, tiny_model_dir, tmp_path / str(rows), config, 5, Quiet())
        for rows in (1, 4)
        for config in [CONFIG.model_copy(update={"batch_size": 4, "micro_batch": rows, "epochs": 1})]
    )
    assert packed.loss_first == pytest.approx(apart.loss_first, abs=2e-3)
    assert packed.loss_last == pytest.approx(apart.loss_last, abs=2e-2)
    tokens = [list(read_lines(tmp_path / rows / "log.jsonl"))[-1]["tokens"] for rows in ("1", "4")]
    assert tokens == [apart.tokens] * 2


def test_adapters_are_added_to_the_weights_and_stand_beside_them(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    from peft import PeftModel

    config = CONFIG.model_copy(update={"lora_rank": 4, "lora_alpha": 8, "frozen_layers": 1})
    report = tune(demos_file, tiny_model_dir, tmp_path, config, 5, Quiet())
    assert report.loss_last < report.loss_first
    before = load_file(tiny_model_dir / "model.safetensors")
    after = load_file(tmp_path / "model" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    assert all(".layers.1." in name and name.endswith("_proj.weight") for name in changed)
    added = load_language_model(tmp_path / "model", training=True).model
    apart = PeftModel.from_pretrained(
        load_language_model(tiny_model_dir, training=True).model, str(tmp_path / "model" / "adapter")
    )
    ids = torch.arange(3, 40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(added(ids).logits, apart(ids).logits, atol=0.03, rtol=0)
        plain = load_language_model(tiny_model_dir, training=True).model(ids).logits
    assert (plain - added(ids).logits).abs().max() > 0.1


def test_a_run_with_adapters_goes_on_from_its_checkpoint_to_the_same_bytes(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    config = CONFIG.model_copy(update={"lora_rank": 4})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    tune(demos_file, tiny_model_dir, whole, config, 5, Quiet())
    with pytest.raises(KeyboardInterrupt):
        tune(demos_file, tiny_model_dir, broken, config, 5, _StopsAfter(7))
    tune(demos_file, tiny_model_dir, broken, config, 5, Quiet())
    for name in ("model/model.safetensors", "model/adapter/adapter_model.safetensors", "log.jsonl"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


def test_a_disk_that_is_full_at_a_checkpoint_loses_only_that_one(
    tuned: Path, demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    arguments = [str(demos_file), str(tiny_model_dir), str(tmp_path), CONFIG.model_dump_json(), "100000"]
    ended = subprocess.run(
        [sys.executable, "-c", FULL_DISK + RUN, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert "The checkpoint of step 4 could not be written to" in last
    assert "make room on that disk" in last
    kept = last_checkpoint(tmp_path / CHECKPOINTS)
    assert kept
    assert kept.name == "checkpoint-2"
    tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, Quiet())
    assert sha256_file(tmp_path / "model" / "model.safetensors") == sha256_file(tuned / "model" / "model.safetensors")


def test_checkpoints_of_another_configuration_are_refused(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 5, _StopsAfter(3))
    other = CONFIG.model_copy(update={"learning_rate": 2e-2})
    with pytest.raises(RunError, match=r"checkpoints of another run \(sft\.learning_rate 0\.01 there and 0\.02 here\)"):
        tune(demos_file, tiny_model_dir, tmp_path, other, 5, Quiet())
    with pytest.raises(RunError, match=r"seed 5 there and 6 here"):
        tune(demos_file, tiny_model_dir, tmp_path, CONFIG, 6, Quiet())
    assert last_checkpoint(tmp_path / CHECKPOINTS)


def test_what_is_left_out_is_counted_and_told(demos_file: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    rows: Any = pq.read_table(demos_file, columns=["n_tokens"])["n_tokens"].to_pylist()
    longest = max(rows)
    short = CONFIG.model_copy(update={"max_length": longest - 1, "max_demos": 5, "epochs": 1})
    told = _Tells()
    report = tune(demos_file, tiny_model_dir, tmp_path, short, 5, told)
    assert report.demos == 5
    assert report.left_out == {
        f"longer than {longest - 1} tokens": rows.count(longest),
        "beyond sft.max_demos = 5": 9 - rows.count(longest) - 5,
    }
    assert any("left out" in text for text in told.texts)


def test_no_demonstration_that_fits_is_an_error_that_says_what_to_do(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    short: Any = CONFIG.model_copy(update={"max_length": 3})
    with pytest.raises(RunError, match=r"sft\.max_length = 3"):
        tune(demos_file, tiny_model_dir, tmp_path, short, 5, Quiet())


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_checkpoint(
    demos_file: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    wild = CONFIG.model_copy(update={"learning_rate": 1e38, "warmup": 0.9, "save_steps": 1})
    with pytest.raises(RunError, match=r"the loss became \w+ in step \d+: lower the learning rate"):
        tune(demos_file, tiny_model_dir, tmp_path, wild, 5, Quiet())
    kept = last_checkpoint(tmp_path / CHECKPOINTS)
    assert kept
    weights = load_file(kept / "model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    assert not (tmp_path / "model").exists()


def test_turns_that_went_wrong_on_purpose_carry_no_loss(
    demo_rows: list[dict[str, Any]], tiny_model_dir: Path, tmp_path: Path
) -> None:
    wrong = [row | {"mistakes": [2]} for row in demo_rows]
    none = [row | {"mistakes": [2, 4]} for row in demo_rows]
    for name, rows in (("plain", demo_rows), ("wrong", wrong), ("none", none)):
        write_demos(rows, tmp_path / f"{name}.parquet")
    config = CONFIG.model_copy(update={"epochs": 1, "learning_rate": 1e-9})
    losses = [
        tune(tmp_path / f"{name}.parquet", tiny_model_dir, tmp_path / name, config, 5, Quiet()).loss_first
        for name in ("plain", "wrong")
    ]
    assert losses[0] != losses[1]
    with pytest.raises(RunError, match="a turn to learn from"):
        tune(tmp_path / "none.parquet", tiny_model_dir, tmp_path / "none", config, 5, Quiet())
