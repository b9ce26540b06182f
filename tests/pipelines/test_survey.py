"""What `status` and `clean` see."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from paraagent.config import Profile, SftConfig
from pipelines.home import Home
from pipelines.stage import Stage
from pipelines.survey import leftovers, remove, stage_states
from tests.pipelines.fake import fake_stages, run_fake


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def states(home: Home, profile: Profile | None = None) -> dict[str, str]:
    found = stage_states(profile or Profile(name="fake"), home, fake_stages())
    return {state.stage: state.state for state in found}


def test_states_follow_the_artifacts(home: Home) -> None:
    assert set(states(home).values()) == {"missing"}
    outcomes = run_fake(home.root)
    assert set(states(home).values()) == {"ready"}
    (outcomes[0].path / "numbers.jsonl").write_text("")
    (outcomes[1].path / "manifest.json").unlink()
    assert states(home) == {"numbers": "damaged", "total": "unfinished", "page": "ready"}
    assert states(home, Profile(name="fake", sft=SftConfig(epochs=2))) == {
        "numbers": "damaged",
        "total": "outdated",
        "page": "outdated",
    }


def test_clean_takes_only_what_nothing_current_refers_to(home: Home) -> None:
    old = run_fake(home.root)
    new = run_fake(home.root, profile=Profile(name="fake", sft=SftConfig(epochs=2)))
    other = run_fake(home.root, profile=Profile(name="other", sft=SftConfig(epochs=3)))
    found = leftovers(home)
    assert {leftover.path for leftover in found} == {outcome.path for outcome in old[1:]}
    assert all(leftover.size > 0 for leftover in found)
    assert all(remove(leftover) for leftover in found)
    assert leftovers(home) == []
    assert not old[1].path.exists()
    assert all(outcome.path.exists() for outcome in (*new, *other))


def test_clean_leaves_what_is_locked(home: Home) -> None:
    (_, total, _) = run_fake(home.root)
    run_fake(home.root, profile=Profile(name="fake", sft=SftConfig(epochs=2)))
    leftover = next(leftover for leftover in leftovers(home) if leftover.path == total.path)
    with FileLock(home.lock_path("total", total.step.fingerprint)):
        assert not remove(leftover)
    assert total.path.exists()


def test_clean_leaves_the_work_of_an_interrupted_run(home: Home) -> None:
    stages = fake_stages()

    def interrupt(context: object) -> None:
        raise KeyboardInterrupt

    stages["total"] = Stage("total", 1, "add", interrupt, inputs=("numbers",), sections=("sft",))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        run_fake(home.root, stages=stages)
    assert leftovers(home) == []
    run_fake(home.root, profile=Profile(name="fake", sft=SftConfig(epochs=2)))
    assert [leftover.path.parent.name for leftover in leftovers(home)] == ["total"]
