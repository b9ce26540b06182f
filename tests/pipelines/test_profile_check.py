"""A profile is checked by arithmetic: what fits, what contradicts itself, and nothing is run or fetched for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from paraagent.progress import Quiet
from paraagent.training.hub import fetch_hub_model
from pipelines.diagnosis import has_gap
from pipelines.home import Home
from pipelines.profile_check import GIB, check_profile, find_architecture
from pipelines.settings import load_profile, profile_names
from tests.training.hub_server import REPOSITORY, hub_of, serving


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.parametrize("name", profile_names())
def test_no_profile_that_comes_along_contradicts_itself(name: str, home: Home) -> None:
    assert [finding for finding in check_profile(load_profile(name), home).findings if finding.verdict == "wrong"] == []


@pytest.mark.parametrize(("name", "gib"), [("smoke", 1), ("quick", 5), ("gpu", 80)])
def test_each_profile_fits_the_gpu_that_it_is_made_for(name: str, gib: int, home: Home) -> None:
    check = check_profile(load_profile(name), home, gib)
    assert {work: each.total <= 0.92 * gib * GIB for work, each in check.memory.items()} == {
        "fine-tuning": True,
        "rollouts": True,
        "updates": True,
    }
    assert check_profile(load_profile("gpu"), home, 40).memory["rollouts"].total > 40 * GIB


def test_the_papers_settings_are_those_of_the_paper_and_too_large_for_one_gpu(home: Home) -> None:
    check = check_profile(load_profile("paper"), home, 141)
    verdicts = {finding.what: finding.verdict for finding in check.findings}
    assert [verdicts[work] for work in check.memory] == ["missing"] * 3
    assert (check.batches["updates"].episodes, check.batches["updates"].steps) == (2048, 128)
    assert check.batches["fine-tuning"].trained == 4_022_468_096
    assert check.memory["rollouts"].cache == 2048 * 16_000 * 147_456


def test_a_batch_is_micro_batch_times_passes_and_the_last_one_of_an_epoch_may_be_smaller(home: Home) -> None:
    changes = ["sft.batch_size=8", "sft.micro_batch=2", "sft.max_demos=21", "sft.max_length=100"]
    batch = check_profile(load_profile("smoke", changes), home).batches["fine-tuning"]
    assert (batch.micro_batch, batch.accumulation, batch.processes) == (2, 4, 1)
    assert (batch.episodes, batch.tokens, batch.steps) == (8, 800, 3)


def test_processes_share_a_step_and_hold_their_gradients_twice(home: Home) -> None:
    changes = ["sft.batch_size=8", "sft.micro_batch=2", "sft.max_demos=21", "sft.max_length=100"]
    alone = check_profile(load_profile("smoke", changes), home)
    check = check_profile(load_profile("smoke", [*changes, "machine.training_processes=2"]), home)
    batch = check.batches["fine-tuning"]
    assert (batch.micro_batch, batch.accumulation, batch.processes) == (2, 2, 2)
    assert (batch.episodes, batch.tokens, batch.steps) == (8, 800, 3)
    assert check.memory["fine-tuning"].gradients == 2 * alone.memory["fine-tuning"].gradients
    assert check.memory["updates"] == alone.memory["updates"]


@pytest.mark.parametrize(
    ("change", "what", "verdict"),
    [
        ("sft.batch_size=6 sft.micro_batch=4", "sft.batch_size", "wrong"),
        ("sft.batch_size=2 sft.micro_batch=4", "sft.batch_size", "wrong"),
        ("sft.batch_size=8 sft.micro_batch=4", "sft.batch_size", None),
        ("sft.batch_size=4 sft.micro_batch=4 machine.training_processes=2", "sft.batch_size", "wrong"),
        ("sft.frozen_layers=2", "sft.frozen_layers", "wrong"),
        ("rl.frozen_layers=3", "rl.frozen_layers", "wrong"),
        ("rl.frozen_layers=1", "rl.frozen_layers", None),
        ("sft.max_length=8193", "sft.max_length", "wrong"),
        ("sft.max_length=2049", "sft.max_length", "note"),
        ("sft.max_length=2048", "sft.max_length", None),
        ("sft.max_length=1999", "demos.max_tokens", "note"),
        ("env.max_context_tokens=8193", "env.max_context_tokens", "note"),
        ("env.max_new_tokens=2048", "env.max_new_tokens", "wrong"),
        ("env.max_new_tokens=342", "env.max_turns", "note"),
        ("env.max_new_tokens=341", "env.max_turns", None),
        ("sft.max_demos=25", "sft.max_demos", "note"),
        ("sft.max_demos=25 demos.source=sharegpt:x.json", "sft.max_demos", None),
        ("rl.prompts=25", "rl.prompts", "wrong"),
        ("rl.updates=13", "rl.updates", "note"),
        ("rl.updates=12", "rl.updates", None),
    ],
)
def test_what_does_not_go_together_is_found_and_nothing_else(
    change: str, what: str, verdict: str | None, home: Home
) -> None:
    findings = check_profile(load_profile("smoke", change.split()), home).findings
    assert next((finding.verdict for finding in findings if finding.what == what), None) == verdict
    assert has_gap(findings) == (verdict == "wrong")


def test_what_fills_the_gpu_decides_the_advice(home: Home) -> None:
    advice = {
        finding.what: finding.advice
        for finding in check_profile(
            load_profile("gpu", ["sft.frozen_layers=0", "sft.max_length=100"]), home, 24
        ).findings
        if finding.verdict == "missing"
    }
    assert advice["fine-tuning"] == "set sft.lora_rank, or raise sft.frozen_layers"
    assert advice["rollouts"] == "lower rl.prompts, rl.generations or env.max_context_tokens"
    long = check_profile(load_profile("gpu", ["sft.max_length=40000"]), home).findings
    assert "lower sft.max_length or sft.micro_batch" in next(f.advice for f in long if f.what == "fine-tuning")


def test_the_largest_gpu_that_is_here_counts_unless_another_is_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA L4, 23034'\necho 'NVIDIA H200, 143771'\necho 'NVIDIA A30, [N/A]'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    check = check_profile(load_profile("gpu"), home)
    assert check.gpu == 143_771 << 20
    assert "NVIDIA L4, 22 GiB; NVIDIA H200, 140 GiB" in {finding.detail for finding in check.findings}
    assert check_profile(load_profile("gpu"), home, 24).gpu == 24 * GIB


def test_a_reference_model_and_more_rollouts_take_memory(home: Home) -> None:
    plain, more = (
        check_profile(load_profile("gpu", changes), home).memory for changes in ([], ["rl.beta=0.1", "rl.prompts=8"])
    )
    assert more["updates"].weights - plain["updates"].weights == 4 * 4_022_468_096
    assert more["rollouts"].cache == 2 * plain["rollouts"].cache
    assert more["fine-tuning"] == plain["fine-tuning"]


def test_the_tiny_model_is_counted_as_it_is_built(tiny_model_dir: Path, tmp_path: Path) -> None:
    assert find_architecture("random:tiny", tmp_path)[0] == find_architecture(f"local:{tiny_model_dir}", tmp_path)[0]


def test_of_a_model_of_the_hub_only_the_config_is_fetched_and_of_a_downloaded_one_nothing(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, expected = f"hf:{REPOSITORY}", find_architecture(f"local:{tiny_model_dir}", tmp_path)[0]
    with serving(hub_of(tiny_model_dir)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert find_architecture(source, tmp_path) == (expected, "from the hub")
        assert {request.rpartition("/")[2] for request in hub.asked} == {"config.json"}
        assert list(tmp_path.iterdir()) == []
        fetch_hub_model(source, tmp_path, Quiet())
    assert find_architecture(source, tmp_path) == (expected, "downloaded")


@pytest.mark.parametrize(
    ("model_type", "sentence"),
    [("gpt2", "models of the type gpt2 are not counted here"), ("", "names no model_type")],
)
def test_a_model_that_cannot_be_counted_is_a_note_and_the_settings_are_checked_all_the_same(
    model_type: str, sentence: str, tiny_model_dir: Path, tmp_path: Path, home: Home
) -> None:
    folder = Path(shutil.copytree(tiny_model_dir, tmp_path / "given"))
    config = orjson.loads((folder / "config.json").read_bytes()) | {"model_type": model_type}
    (folder / "config.json").write_bytes(orjson.dumps(config))
    check = check_profile(load_profile("smoke", [f"model.source=local:{folder}", "rl.prompts=25"]), home)
    (model,) = (finding for finding in check.findings if finding.what == "model")
    assert (model.verdict, model.advice) == ("note", "memory is not checked")
    assert sentence in model.detail
    assert check.memory == {}
    assert not {"gpu", "disk"} & {finding.what for finding in check.findings}
    assert has_gap(check.findings)
