"""Archives as documents, read in memory and bounded: nothing is unpacked to disk, and no archive can ask for more than
its share of memory.

An archive that has a member outside itself, a link, a device or a bomb is refused as a whole: no package is made so.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from paraagent.catalog.parse import MAX_DOCUMENT
from paraagent.errors import RunError

MAX_UNPACKED = 4_000_000_000
MAX_MEMBERS = 200_000
_FILE_KINDS = (0, 0o100000, 0o040000)
"""Types of a zip member that is a plain file or folder."""


def wheel_sizes(path: Path) -> dict[str, int]:
    """Members of a zip archive with their unpacked sizes. Raises RunError where the archive is not safe to read."""
    with zipfile.ZipFile(path) as file:
        total = 0
        infos = file.infolist()
        for number, info in enumerate(infos, 1):
            kind = (info.external_attr >> 16) & 0o170000
            total += info.file_size
            _check(path, info.filename, info.file_size, total, number, kind in _FILE_KINDS)
        return {info.filename: info.file_size for info in infos if not info.is_dir()}


def tarball(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """The members of a gzipped tar that are wanted, in their order. Raises RunError where it is not safe to read."""
    total = 0
    with tarfile.open(path, "r|gz", bufsize=1 << 20) as stream:
        for number, entry in enumerate(stream, 1):
            total += entry.size
            _check(path, entry.name, entry.size, total, number, entry.isfile() or entry.isdir())
            if entry.isfile() and wanted(entry.name):
                content = stream.extractfile(entry)
                yield entry.name, content.read() if content else b""


def _check(path: Path, name: str, size: int, total: int, number: int, plain: bool) -> None:
    wrong = None
    if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts or name[1:2] == ":":
        wrong = f"holds the member {name[:80]!r}, which lies outside of it"
    elif not plain:
        wrong = f"holds {name[:80]!r}, which is a link or a device"
    elif size > MAX_DOCUMENT or total > MAX_UNPACKED or number > MAX_MEMBERS:
        wrong = (
            f"unpacks to more than can be right: {name[:80]!r} has {size:,} bytes, {number:,} members have {total:,}"
        )
    if wrong:
        raise RunError(f"The archive {path} {wrong}: it is not used; delete it and fetch it from a place you trust")
