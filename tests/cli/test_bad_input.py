"""Failures of the real catalog stage as a person meets them: no network, a broken download, Ctrl-C, damage."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cli.command import SECONDS, run, start


@pytest.fixture
def botocore(tmp_path: Path) -> Path:
    profile = tmp_path / "botocore.toml"
    profile.write_text('[catalog]\nsources = ["pypi:botocore==1.44.8"]\n')
    return profile


def test_no_network_and_nothing_cached_is_one_sentence(tmp_path: Path, botocore: Path, prefect_server: str) -> None:
    home, offline = tmp_path / "home", {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    code, out, errors = run(
        home, "run", "--profile", str(botocore), "--stage", "catalog", PREFECT_API_URL=prefect_server, **offline
    )
    assert (code, out) == (1, "")
    last = errors.strip().splitlines()[-1]
    assert last.startswith(
        f"Error: botocore 1.44.8 is not in {home / 'downloads'} and could not be downloaded: connect"
    )
    assert "Traceback" not in errors


def test_download_with_another_checksum_is_one_sentence(tmp_path: Path, botocore: Path, prefect_server: str) -> None:
    home = tmp_path / "home"
    (home / "downloads").mkdir(parents=True)
    wheel = home / "downloads" / "botocore-1.44.8-py3-none-any.whl"
    wheel.write_bytes(b"not what was published")
    code, _, errors = run(home, "run", "--profile", str(botocore), "--stage", "catalog", PREFECT_API_URL=prefect_server)
    assert code == 1
    last = errors.strip().splitlines()[-1]
    assert last.startswith(f"Error: The download {wheel} is damaged: its SHA-256 is ")
    assert "Traceback" not in errors
    assert wheel.exists(), "nothing is lost"


def test_interrupt_damage_and_repair_of_the_real_catalog(tmp_path: Path, prefect_server: str) -> None:
    home, server = tmp_path / "home", {"PREFECT_API_URL": prefect_server}
    process = start(home, "run", "--profile", "smoke", "--stage", "catalog", "--set", "machine.processes=2", **server)
    deadline = time.monotonic() + SECONDS
    while not list((home / "artifacts" / "catalog").glob("*/unfinished.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1].startswith("Error: Interrupted in catalog: what is finished is kept")
    assert "Traceback" not in errors

    code, out, _ = run(home, "run", "--profile", "smoke", "--stage", "catalog", "--json", **server)
    assert code == 0
    (stage,) = json.loads(out)["stages"]
    assert stage["action"] == "resumed"

    catalog = Path(stage["path"]) / "catalog.duckdb"
    whole = catalog.read_bytes()
    catalog.write_bytes(whole[: len(whole) // 2])
    code, out, errors = run(home, "run", "--profile", "smoke", "--stage", "catalog", "--json", **server)
    assert code == 0
    assert json.loads(out)["stages"][0]["action"] == "rebuilt"
    assert "is damaged: catalog.duckdb has" in errors
    assert (home / "catalog.duckdb").resolve() == catalog.resolve()
