"""The home's stable places."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraagent.errors import RunError
from pipelines.home import Home


def test_option_beats_variable_beats_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARAAGENT_HOME", raising=False)
    assert Home.locate().root == tmp_path / ".paraagent"
    monkeypatch.setenv("PARAAGENT_HOME", str(tmp_path / "named"))
    assert Home.locate().root == tmp_path / "named"
    assert Home.locate("given").root == tmp_path / "given"


def test_catalog_path_follows_the_current_catalog(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for fingerprint in ("aaaa", "bbbb"):
        home.artifact("catalog", fingerprint).mkdir(parents=True)
        (home.artifact("catalog", fingerprint) / "catalog.duckdb").write_text(fingerprint)
        home.set_current("quick", "catalog", fingerprint)
        assert home.catalog_path.read_text() == fingerprint
    assert home.current() == {"quick": {"catalog": "bbbb"}}
    assert not home.catalog_path.readlink().is_absolute(), "the home can be moved"


def test_profiles_have_their_own_current_artifacts(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for profile, fingerprint in (("quick", "aaaa"), ("smoke", "bbbb")):
        home.artifact("sft", fingerprint).mkdir(parents=True)
        home.set_current(profile, "sft", fingerprint)
    assert home.current_artifact("quick", "sft") == tmp_path / "artifacts" / "sft" / "aaaa"
    assert home.current_artifact("smoke", "sft") == tmp_path / "artifacts" / "sft" / "bbbb"
    assert home.current_artifact("smoke", "rl") is None


def test_broken_current_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "current.json").write_text("{")
    with pytest.raises(RunError, match=r"current\.json is not valid JSON .* remove it and run again"):
        Home(tmp_path).current()
