from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paraagent.agents.language_model import bfloat16_is_fast, load_language_model
from paraagent.agents.local import LocalPolicy
from paraagent.agents.loop import run_rollouts
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, RewardConfig, RlConfig
from paraagent.errors import RunError
from paraagent.files import read_lines, sha256_file
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.rewards.score import Rewards
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.training import rollout
from paraagent.training.rl import choose_tasks, reinforce

CONFIG = RlConfig(updates=2, prompts=2, generations=2, learning_rate=1e-3)


@pytest.fixture(scope="module")
def env(tiny_catalog: Catalog, tiny_index: ToolIndex, small_env: EnvConfig) -> Callable[[], ToolEnv]:
    return partial(ToolEnv, tiny_catalog, tiny_index, small_env)


def _varied(task: Task, episode: Any, config: RewardConfig) -> Rewards:
    """Rewards that differ between the random rollouts of a model that can do nothing yet."""
    value = sum(len(turn.text) for turn in episode.turns) % 7 / 7
    return Rewards(0.0, 0.0, 0.0, value, 0.0, 0.5, False, (), ())


@pytest.fixture
def run(
    env: Callable[[], ToolEnv], tiny_tasks: list[Task], tiny_model_dir: Path, small_env: EnvConfig
) -> Callable[..., Any]:
    def play(out: Path, config: RlConfig = CONFIG, progress: Any = None) -> Any:
        progress = progress or Quiet()
        return reinforce(tiny_tasks, env, tiny_model_dir, out, config, small_env, RewardConfig(), 3, progress)

    return play


def test_the_tokens_trained_are_the_tokens_sampled(
    env: Callable[[], ToolEnv], tiny_tasks: list[Task], tiny_model_dir: Path, small_env: EnvConfig
) -> None:
    policy = LocalPolicy(tiny_model_dir, small_env, name="rl", temperature=1.0)
    [played] = asyncio.run(run_rollouts(policy, env, [(tiny_tasks[0], 1)]))
    prompt, completion, mask = rollout.trajectory(played, end=2)
    assert [*prompt, *completion] == played.conversation.token_ids
    assert mask[0] == 1
    assert sum(mask) == sum(turn.completion_tokens for turn in played.episode.turns)


def test_an_update_with_a_signal_changes_the_weights(
    run: Callable[..., Any], tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "score", _varied)
    report = run(tmp_path)
    assert (report.updates, report.skipped, report.episodes) == (2, 0, 8)
    changed = sha256_file(tmp_path / "model" / "model.safetensors")
    assert changed != sha256_file(tiny_model_dir / "model.safetensors")
    log = list(read_lines(tmp_path / "log.jsonl"))
    assert [row["step"] for row in log] == [1, 2]
    assert all(row["trajectory_std"] > 0 and row["phase_flat_groups"] == 2 for row in log)
    episodes = list(read_lines(tmp_path / "episodes.jsonl"))
    assert Counter(row["update"] for row in episodes) == {0: 4, 1: 4}


def test_frozen_layers_stay_as_they_were(
    run: Callable[..., Any], tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file

    monkeypatch.setattr(rollout, "score", _varied)
    assert run(tmp_path, CONFIG.model_copy(update={"frozen_layers": 1, "updates": 1})).skipped == 0
    before = load_file(tiny_model_dir / "model.safetensors")
    after = load_file(tmp_path / "model" / "model.safetensors")
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed
    assert all(".layers.1." in name or name == "model.norm.weight" for name in changed)


def test_batches_without_a_signal_leave_the_weights_alone_and_say_why(
    run: Callable[..., Any], tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = Rewards(0.0, 0.0, 0.0, 1.0, 0.0, 0.5, False, (), ())
    monkeypatch.setattr(rollout, "score", lambda *_: flat)
    assert run(tmp_path).skipped == 2
    assert sha256_file(tmp_path / "model" / "model.safetensors") == sha256_file(tiny_model_dir / "model.safetensors")
    assert all("differs" in row["skipped"] for row in read_lines(tmp_path / "log.jsonl"))


class _Interrupt(Quiet):
    """Stops the run after its first update, once its checkpoint is kept aside as a kill would leave it."""

    def __init__(self, out: Path, kept: Path) -> None:
        self.out, self.kept = out, kept

    def advance(self, n: int = 1) -> None:
        if list((self.out / "checkpoints").glob("checkpoint-1")):
            shutil.copytree(self.out, self.kept)
            raise KeyboardInterrupt


def test_a_run_goes_on_from_its_last_update_to_the_same_bytes(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "score", _varied)
    whole, broken, kept = tmp_path / "whole", tmp_path / "broken", tmp_path / "kept"
    whole.mkdir()
    broken.mkdir()
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(broken, progress=_Interrupt(broken, kept))
    run(kept)
    assert sha256_file(kept / "model" / "model.safetensors") == sha256_file(whole / "model" / "model.safetensors")
    for name in ("episodes.jsonl", "log.jsonl"):
        assert (kept / name).read_bytes() == (whole / name).read_bytes()


def test_a_divergence_from_the_reference_is_logged_where_it_is_weighted(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "score", _varied)
    run(tmp_path, CONFIG.model_copy(update={"beta": 0.01}))
    divergence = [row["kl"] for row in read_lines(tmp_path / "log.jsonl")]
    assert divergence[0] == pytest.approx(0, abs=1e-6)
    assert divergence[1] > 0


def test_the_twin_samples_with_the_trained_weights(tiny_model_dir: Path) -> None:
    import torch

    trained, twin = load_language_model(tiny_model_dir, training=True), load_language_model(tiny_model_dir)
    with torch.no_grad():
        trained.model.model.norm.weight.mul_(2)
    twin.model.load_state_dict(trained.model.state_dict())
    dtype = torch.bfloat16 if bfloat16_is_fast() else torch.float32
    assert twin.model.model.norm.weight.equal(trained.model.model.norm.weight.to(dtype))
    assert twin.model.dtype == dtype


def test_tasks_alternate_in_width_and_repeat_only_when_all_are_used(tiny_tasks: list[Task]) -> None:
    chosen = choose_tasks(tiny_tasks, len(tiny_tasks), 0)
    assert sorted(task.task_id for task in chosen) == sorted(task.task_id for task in tiny_tasks)
    assert {task.width for task in chosen[:2]} == {task.width for task in tiny_tasks}
    assert len(choose_tasks(tiny_tasks, 2 * len(tiny_tasks), 0)) == 2 * len(tiny_tasks)


def test_too_few_tasks_is_an_error_that_says_what_to_do(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"tasks\.train"):
        run(tmp_path, CONFIG.model_copy(update={"prompts": 50}))
