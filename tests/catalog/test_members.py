"""Archives that nobody should unpack are refused as a whole, before they cost memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog import members
from paraagent.catalog.members import tarball, wheel_sizes
from paraagent.catalog.parse import UnreadableError, unpack
from paraagent.errors import RunError

OUTSIDE = [
    "../escape.json",
    "/etc/cron.json",
    "a/../../escape.json",
    "..\\escape.json",
    "\\\\host\\share.json",
    "c:x.json",
]


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for info, data in members:
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def _special(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_member_outside_of_its_archive_condemns_it(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as file:
        file.writestr("good.json", "{}")
        file.writestr(zipfile.ZipInfo(name), "{}")
    with pytest.raises(RunError, match="lies outside of it: it is not used; delete it"):
        wheel_sizes(tmp_path / "a.whl")
    path = _tar(tmp_path / "a.tgz", (tarfile.TarInfo(name), b"{}"))
    with pytest.raises(RunError, match="lies outside of it: it is not used; delete it"):
        list(tarball(path, lambda _: True))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_condemn_it(tmp_path: Path, kind: bytes) -> None:
    path = _tar(tmp_path / "a.tgz", (_special("package/link.json", kind), b""))
    with pytest.raises(RunError, match="is a link or a device"):
        list(tarball(path, lambda _: True))


def test_a_link_in_a_zip_condemns_it(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link.json")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(RunError, match="is a link or a device"):
        wheel_sizes(tmp_path / "a.whl")


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_DOCUMENT", 1_000_000), ("MAX_UNPACKED", 5_000_000), ("MAX_MEMBERS", 5)]
)
def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(members, limit, value)
    size = 2_000_000 if limit == "MAX_DOCUMENT" else 900_000
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(8):
            file.writestr(f"{number}.json", bytes(size))
    path = _tar(tmp_path / "a.tgz", *((tarfile.TarInfo(f"{number}.json"), bytes(size)) for number in range(8)))
    for read in (lambda: wheel_sizes(tmp_path / "a.whl"), lambda: list(tarball(path, lambda _: False))):
        with pytest.raises(RunError, match="unpacks to more than can be right"):
            read()


def test_a_gzipped_document_is_never_unpacked_further_than_a_document_may_be(monkeypatch: Any) -> None:
    bomb = gzip.compress(bytes(200_000_000), 9)
    monkeypatch.setattr("paraagent.catalog.parse.MAX_DOCUMENT", 1_000_000)
    tracemalloc.start()
    with pytest.raises(UnreadableError, match="larger than 1 MB when unpacked"):
        unpack(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("data", [b"no gzip", gzip.compress(b"{}", mtime=0)[:-4], b""])
def test_a_damaged_gzip_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="damaged"):
        unpack(data)
