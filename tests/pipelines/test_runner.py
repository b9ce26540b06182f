"""The stage contract, with fake stages: reuse, resume, force, damage, locks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from paraagent.config import MachineConfig, Profile, SftConfig, TasksConfig
from paraagent.errors import RunError, UsageError
from pipelines.home import Home
from pipelines.manifest import MANIFEST, read_manifest
from pipelines.plan import Request, select
from pipelines.runner import Outcome
from pipelines.stage import Contract, Stage
from tests.pipelines.fake import UNITS, fake_stages, run_fake

ROOT = Path(__file__).parents[2]


def actions(outcomes: list[Outcome]) -> dict[str, str]:
    return {outcome.step.stage.name: outcome.action for outcome in outcomes}


def artifact(home: Path, stage: str) -> Path:
    found = Home(home).current_artifact("fake", stage)
    assert found is not None
    return found


def content(home: Path) -> dict[str, bytes]:
    return {
        f"{stage}/{file.name}": file.read_bytes()
        for stage in ("numbers", "total", "page")
        for file in artifact(home, stage).iterdir()
        if file.name != MANIFEST
    }


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "tests/pipelines/fake.py", str(home), *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def units_done(home: Path) -> list[str]:
    path = Path(f"{home}.units")
    return path.read_text().split() if path.exists() else []


def wait_for_units(home: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(units_done(home)) < count:
        assert time.monotonic() < deadline, "the run made no progress"
        time.sleep(0.02)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_second_run_reuses_every_stage(home: Path) -> None:
    assert set(actions(run_fake(home)).values()) == {"built"}
    said: list[str] = []
    assert set(actions(run_fake(home, said.append)).values()) == {"reused"}
    assert [line.rsplit(": ", 1)[1] for line in said] == ["reused"] * 3


def test_manifest_says_what_the_artifact_is_made_of(home: Path) -> None:
    numbers, total, _ = run_fake(home)
    manifest = read_manifest(total.path)
    assert manifest is not None
    assert manifest.inputs["numbers"].fingerprint == numbers.step.fingerprint
    assert manifest.inputs["numbers"].digest == numbers.manifest.digest
    assert manifest.rows == {"totals": 1}
    assert [file.path for file in manifest.files] == ["total.json"]
    assert manifest.config.keys() == {"sft"}
    assert manifest.versions["python"].startswith("3.")
    assert (home / "runs" / f"{manifest.run}.json").exists()


def test_changed_setting_builds_only_what_depends_on_it(home: Path) -> None:
    run_fake(home)
    changed = Profile(name="fake", sft=SftConfig(epochs=2))
    assert actions(run_fake(home, profile=changed)) == {"numbers": "reused", "total": "built", "page": "built"}


def test_seed_and_version_change_every_fingerprint_below(home: Path) -> None:
    before = run_fake(home)
    after = run_fake(home, profile=Profile(name="fake", seed=1))
    assert not {outcome.step.fingerprint for outcome in before} & {outcome.step.fingerprint for outcome in after}
    stages = fake_stages()
    stages["total"] = Stage("total", 2, "add", stages["total"].build, inputs=("numbers",), sections=("sft",))
    assert actions(run_fake(home, stages=stages)) == {"numbers": "reused", "total": "built", "page": "built"}


def test_machine_settings_rebuild_nothing(home: Path) -> None:
    run_fake(home)
    elsewhere = Profile(name="fake", machine=MachineConfig(processes=7))
    assert set(actions(run_fake(home, profile=elsewhere)).values()) == {"reused"}


def test_kill_in_the_middle_goes_on_with_what_is_owed_and_leaves_the_same_bytes(home: Path, tmp_path: Path) -> None:
    process = start(home, "--delay", "0.2")
    wait_for_units(home, 5)
    process.kill()
    process.communicate()
    (unfinished,) = (home / "artifacts" / "numbers").glob("*/")
    assert not (unfinished / MANIFEST).exists()
    log = unfinished / "numbers.jsonl"
    finished = log.read_bytes().count(b"\n")
    assert 4 <= finished < len(UNITS)
    with log.open("ab") as file:
        file.write(b'{"unit": "unit-99", "row": {"val')

    outcomes = run_fake(home)
    assert actions(outcomes) == {"numbers": "resumed", "total": "built", "page": "built"}
    assert outcomes[0].manifest.attempts == 2
    again = Counter(units_done(home))
    assert set(again) == set(UNITS)
    assert sum(again.values()) <= len(UNITS) + 1, "only the unit under way at the kill is done again"

    run_fake(tmp_path / "whole")
    assert content(home) == content(tmp_path / "whole")


def test_failed_unit_stays_owed_and_leaves_its_error_in_the_sidecar(home: Path) -> None:
    first = run_fake(home, stages=fake_stages(fail="unit-03"))[0]
    assert first.manifest.rows == {"numbers": len(UNITS) - 1}
    (failure,) = (json.loads(line) for line in (first.path / "numbers.failed.jsonl").read_text().splitlines())
    assert failure == {"unit": "unit-03", "attempt": 1, "error": "did not answer"}


@pytest.mark.parametrize("harm", ["changed", "shorter", "gone", "manifest"])
def test_damaged_artifact_is_reported_and_rebuilt(home: Path, harm: str) -> None:
    run_fake(home)
    before = content(home)
    file = artifact(home, "total") / "total.json"
    match harm:
        case "changed":
            file.write_bytes(file.read_bytes()[::-1])
        case "shorter":
            file.write_bytes(b"")
        case "gone":
            file.unlink()
        case "manifest":
            file.with_name(MANIFEST).write_text("{}")
    said: list[str] = []
    assert actions(run_fake(home, said.append)) == {"numbers": "reused", "total": "rebuilt", "page": "reused"}
    assert any("is damaged" in line and "it is rebuilt" in line for line in said)
    assert content(home) == before


def test_damaged_input_of_a_single_stage_stops_the_run(home: Path) -> None:
    run_fake(home)
    (artifact(home, "total") / "total.json").write_bytes(b"")
    with pytest.raises(RunError, match=r"total@\w{6} that page reads is damaged .* --stage total"):
        run_fake(home, stages=fake_stages(), from_stage="page", force=("page",))


def test_input_rebuilt_with_other_content_makes_its_dependents_stale(home: Path) -> None:
    run_fake(home)
    (artifact(home, "total") / "total.json").unlink()
    again = actions(run_fake(home, stages=fake_stages(content="a newer library")))
    assert again == {"numbers": "reused", "total": "rebuilt", "page": "rebuilt"}


def test_force_rebuilds_the_stage_and_what_depends_on_it(home: Path) -> None:
    run_fake(home)
    before = {stage: read_manifest(artifact(home, stage)) for stage in ("numbers", "total", "page")}
    assert actions(run_fake(home, force=("total",))) == {"numbers": "reused", "total": "rebuilt", "page": "rebuilt"}
    after = {stage: read_manifest(artifact(home, stage)) for stage in ("numbers", "total", "page")}
    assert [stage for stage in before if before[stage] != after[stage]] == ["total", "page"]
    assert not list(home.glob("artifacts/*/*.new")) + list(home.glob("artifacts/*/*.old"))


def test_failed_force_leaves_the_old_artifact_in_use(home: Path) -> None:
    run_fake(home)
    stages = fake_stages()

    def fail(_context: object) -> None:
        raise ValueError("no luck")

    stages["total"] = Stage("total", 1, "add", fail, inputs=("numbers",), sections=("sft",))  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"total failed with ValueError \(no luck\)"):
        run_fake(home, stages=stages, force=("total",))
    assert set(actions(run_fake(home)).values()) == {"reused"}


def test_interrupted_force_does_not_force_twice_what_it_finished(home: Path) -> None:
    run_fake(home)
    stages = fake_stages()
    original = stages["page"].build

    def interrupt(_context: object) -> None:
        raise KeyboardInterrupt

    stages["page"] = Stage("page", 1, "show", interrupt, inputs=("total",))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        run_fake(home, stages=stages, force=("total",))
    stages["page"] = Stage("page", 1, "show", original, inputs=("total",))
    again = actions(run_fake(home, stages=stages, force=("total",)))
    assert again == {"numbers": "reused", "total": "reused", "page": "rebuilt"}
    once_more = actions(run_fake(home, stages=stages, force=("total",)))
    assert once_more == {"numbers": "reused", "total": "rebuilt", "page": "rebuilt"}


def test_kill_between_the_two_renames_of_a_swap_loses_nothing(home: Path) -> None:
    run_fake(home)
    directory = artifact(home, "total")
    directory.rename(directory.with_name(directory.name + ".old"))
    again = actions(run_fake(home))
    assert again == {"numbers": "reused", "total": "reused", "page": "reused"}


def test_two_runs_at_once_share_the_work(home: Path) -> None:
    first = start(home, "--delay", "0.15")
    wait_for_units(home, 2)
    second = start(home, "--delay", "0.15")
    said, _ = second.communicate(timeout=60)
    first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "another run is at work on numbers@" in said
    assert "numbers=reused" in said
    assert Counter(units_done(home)) == Counter(UNITS)


def test_lock_of_a_killed_run_is_free(home: Path) -> None:
    process = start(home, "--delay", "0.2")
    wait_for_units(home, 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    said: list[str] = []
    run_fake(home, said.append)
    assert not any("another run" in line for line in said)


def test_single_stage_names_all_that_is_missing(home: Path) -> None:
    with pytest.raises(RunError, match=r"page needs total, not built yet .* run --stage total --stage page"):
        run_fake(home, from_stage="page")
    assert not (home / "artifacts").exists()


def test_forced_stage_must_be_among_those_that_run(home: Path) -> None:
    with pytest.raises(UsageError, match="numbers is forced but not among the stages to run"):
        run_fake(home, from_stage="total", force=("numbers",))


def test_a_stage_before_the_first_leaves_nothing_to_run() -> None:
    with pytest.raises(UsageError, match="No stage is left to run: --stage numbers comes before --from total"):
        select(Request(Profile(name="fake"), ("numbers",), "total"), fake_stages())


def test_from_runs_the_stage_and_all_after_it(home: Path) -> None:
    run_fake(home)
    profile = Profile(name="fake", tasks=TasksConfig(train=1))
    with pytest.raises(RunError, match="total needs numbers"):
        run_fake(home, profile=profile, from_stage="total")
    assert actions(run_fake(home, from_stage="total")) == {"total": "reused", "page": "reused"}


def test_broken_contract_stops_before_the_manifest(home: Path) -> None:
    stages = fake_stages()
    contract = Contract("tasks", lambda _out: pd.DataFrame({"task_id": ["a", "a"]}))
    stages["numbers"] = Stage(
        "numbers", 1, "write", stages["numbers"].build, sections=("tasks",), contracts=(contract,)
    )
    with pytest.raises(RunError, match="The data contract `tasks` is broken"):
        run_fake(home, stages=stages)
    (directory,) = (home / "artifacts" / "numbers").glob("*/")
    assert (directory / "contracts" / "tasks.json").exists()
    assert not (directory / MANIFEST).exists()


def test_full_home_is_one_sentence_and_keeps_what_is_finished(home: Path) -> None:
    process = start(home, "--size", "300000", "--max-file", "100000")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith(f"Error: The home {home} is full (File too large)")
    assert errors.count("\n") == 1
    assert actions(run_fake(home)) == {"numbers": "reused", "total": "resumed", "page": "built"}


def test_disk_without_space_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        with pytest.raises(RunError, match="is full \\(No space left on device\\)"):
            run_fake(place / "home", stages=fake_stages(size=400_000))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_home_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    for home in (place, place / "below"):
        with pytest.raises(RunError, match=r"The home .* cannot be written \(.*\): make it writable or name another"):
            run_fake(home)


def test_run_record_says_how_the_run_ended(home: Path) -> None:
    run_fake(home)
    stages = fake_stages(content="x")

    def fail(_context: object) -> None:
        raise ValueError("no luck")

    stages["page"] = Stage("page", 2, "show", fail, inputs=("total",))  # type: ignore[arg-type]
    with pytest.raises(RunError):
        run_fake(home, stages=stages)
    first, second = (json.loads(path.read_text()) for path in sorted((home / "runs").glob("*.json")))
    assert (first["state"], second["state"]) == ("completed", "failed")
    assert "no luck" in second["error"]
    assert "Traceback" in second["traceback"]
    assert [outcome["stage"] for outcome in second["outcomes"]] == ["numbers", "total"]
