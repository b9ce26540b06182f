"""Files that survive a kill: canonical JSON, checksums, atomic replacement, JSON Lines that may end in a torn line."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

_UMASK = os.umask(0o022)
os.umask(_UMASK)
_FILE_MODE = 0o666 & ~_UMASK
"""What a person's own files get: a temporary file alone would be closed to everyone else."""


def canonical_json(value: Any) -> bytes:
    """The one byte form of a JSON value: keys sorted, no spaces. Equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def sha256_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside `path`, flush to disk, rename over it: a reader sees the old bytes or the new ones, never a part."""
    with _staged(path, data) as staged:
        staged.replace(path)


def write_once(path: Path, data: bytes) -> bool:
    """The same where `path` is new; a file that is there stays. Returns whether it was written."""
    with _staged(path, data) as staged:
        try:
            os.link(staged, path)
        except FileExistsError:
            return False
    return True


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n")


def write_lines(path: Path, rows: Iterable[Any]) -> int:
    """Replace `path` atomically by one canonical JSON document a line; returns the number of lines."""
    lines = [canonical_json(row) + b"\n" for row in rows]
    write_atomic(path, b"".join(lines))
    return len(lines)


def append_lines(path: Path, rows: Iterable[Any]) -> None:
    """Append whole lines and flush them to disk. A torn last line left by a kill is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(canonical_json(row) + b"\n" for row in rows)
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.truncate(_last_newline(path))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[Any]:
    """The documents of a JSON Lines file; a torn last line is still owed, so it is left out. Missing file: nothing."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and line.strip():
                yield orjson.loads(line)


def _last_newline(path: Path) -> int:
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


@contextmanager
def _staged(path: Path, data: bytes) -> Iterator[Path]:
    """The data in a file beside `path`, on disk, which is gone afterwards unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    staged = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(_FILE_MODE)
        yield staged
    finally:
        staged.unlink(missing_ok=True)
