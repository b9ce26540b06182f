"""Stage `simulator`: off unless a profile asks; from pairs to a model and its agreement, after any interruption."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.agents.language_model import load_language_model
from paraagent.config import EnvConfig, Profile, SimulatorConfig
from paraagent.errors import RunError, UsageError
from paraagent.files import read_lines, write_lines
from paraagent.progress import Quiet
from pipelines import contracts
from pipelines.plan import Request, config_of, select
from pipelines.settings import load_profile
from pipelines.simulator import STAGE, build
from pipelines.stage import StageContext, UnitLog

CONFIG = SimulatorConfig(
    calls=12, held_out=6, absent=0.2, max_length=4_000, max_answer=240, learning_rate=1e-2, save_steps=2, batch=2
)


@pytest.fixture(scope="module")
def inputs(tiny_catalog_path: Path, tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("catalog")
    shutil.copy(tiny_catalog_path, folder / "catalog.duckdb")
    return {"catalog": folder, "model": tiny_model_dir.parent}


def context(out: Path, inputs: dict[str, Path], **changes: Any) -> StageContext:
    out.mkdir(parents=True)
    profile = Profile(name="test", simulator=CONFIG.model_copy(update=changes))
    return StageContext(profile, out, inputs, out, "ab", Quiet(), out)


@pytest.fixture(scope="module")
def built(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulator") / "out"
    result = build(context(out, inputs))
    assert result.rows == {"pairs": 12, "held_out": 6, "steps": 6}
    assert result.metrics["outcomes"]["NotFoundError"] == 3
    assert result.metrics["loss_last"] < result.metrics["loss_first"] - 1
    return out


def data(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_what_is_left_is_the_model_its_pairs_and_how_far_it_agrees(built: Path) -> None:
    assert {path.name for path in built.iterdir()} == {
        "model",
        "log.jsonl",
        "pairs.parquet",
        "held_out.parquet",
        "answers",
        "agreement.json",
    }
    load_language_model(built / "model")
    agreement = orjson.loads((built / "agreement.json").read_bytes())
    assert agreement["calls"] == 6
    assert agreement["another_world"]["outcome"] == 1.0
    assert 0 < agreement["another_world"]["values"] < 1
    assert agreement["base"]["valid"] == 0.0
    for system in ("base", "tuned"):
        assert len(list(read_lines(built / "answers" / f"{system}.jsonl"))) == 6


def test_the_pairs_keep_their_contract_and_a_held_out_service_among_them_breaks_it(built: Path, tmp_path: Path) -> None:
    for name in ("pairs", "held_out"):
        shutil.copy(built / f"{name}.parquet", tmp_path)
    [contract] = STAGE.contracts
    assert contracts.check(contract, tmp_path).success
    shutil.copy(built / "held_out.parquet", tmp_path / "pairs.parquet")
    with pytest.raises(RunError, match="The data contract `pairs` is broken"):
        contracts.check(contract, tmp_path)


@pytest.mark.parametrize("batches", [0, 2, 4])
def test_a_run_that_breaks_off_goes_on_with_the_next_batch(
    built: Path, inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    where, add, left = context(tmp_path / "out", inputs), UnitLog.add, [batches]

    def dies(self: UnitLog, rows: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        add(self, rows)

    monkeypatch.setattr(UnitLog, "add", dies)
    with pytest.raises(KeyboardInterrupt):
        build(where)
    tuned = (where.out / "model" / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(UnitLog, "add", add)
    build(where)
    assert data(where.out) == data(built)
    assert (where.out / "model" / "model.safetensors").stat().st_mtime_ns == tuned


def test_recorded_calls_are_learned_in_place_of_drawn_ones(inputs: dict[str, Path], tmp_path: Path) -> None:
    order = {"order_id": "ord_1", "customer_name": "Ada", "total": 12.5, "currency": "EUR", "status": "open"}
    row = {"tool": "orders_get_order", "arguments": {"order_id": "ord_1"}, "response": order}
    write_lines(tmp_path / "calls.jsonl", [row])
    where = context(tmp_path / "out", inputs, source="recorded")
    env = EnvConfig(recordings=[str(tmp_path / "calls.jsonl")])
    where = replace(where, profile=where.profile.model_copy(update={"env": env}))
    assert STAGE.external
    assert list(STAGE.external(where.profile, tmp_path)) == [str(tmp_path / "calls.jsonl")]
    result = build(where)
    assert result.rows == {"pairs": 1, "held_out": 0, "steps": 2}
    assert result.metrics["agreement"]["tuned"]["outcome"] is None


def test_recorded_calls_that_nobody_names_are_one_sentence(tmp_path: Path) -> None:
    profile = Profile(name="test", simulator=CONFIG.model_copy(update={"source": "recorded"}))
    assert STAGE.external
    with pytest.raises(UsageError, match=r"name files in env\.recordings"):
        STAGE.external(profile, tmp_path)


def test_nothing_that_fits_is_an_error_that_says_what_to_do(inputs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"left out: \d+ too long\): raise simulator\.max_length"):
        build(context(tmp_path / "out", inputs, max_answer=3))


def test_a_profile_does_without_it_unless_it_says_how_many_calls() -> None:
    without, with_it = load_profile("smoke"), load_profile("smoke", ["simulator.calls=4"])
    assert "simulator" not in select(Request(without))
    assert "simulator" in select(Request(with_it))
    assert select(Request(with_it, ("simulator",))) == ("simulator",)
    for request in (
        Request(without, ("simulator",)),
        Request(without, force=("simulator",)),
        Request(without, from_stage="simulator"),
    ):
        with pytest.raises(UsageError, match=r"smoke does without the stage simulator: simulator\.calls says how many"):
            select(request)


def test_how_fast_the_machine_is_and_what_others_read_do_not_count() -> None:
    assert config_of(STAGE, Profile(name="test")).keys() == {"simulator"}
