"""Home: the one directory that holds everything a run leaves behind.

```
downloads/                        cache of what came from the network
artifacts/<stage>/<fingerprint>/  one complete or unfinished artifact; `.new` beside it while a forced build runs
runs/<run>.json                   what each run did
sources.json                      specs that `paraagent catalog add` brought into every catalog of this home
current.json                      profile -> stage -> fingerprint that was last produced
catalog.duckdb                    link to the current catalog, a stable path
```
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from paraagent.errors import RunError
from paraagent.files import write_atomic, write_json

HOME_VARIABLE = "PARAAGENT_HOME"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT)
_ROOM = 8 << 20
"""Bytes that a run needs at the very least, Prefect's database included; with less it would fail in stranger ways."""


@dataclass(frozen=True)
class Home:
    """Paths of one home; nothing is created before it is needed."""

    root: Path

    @classmethod
    def locate(cls, option: str | Path | None = None) -> Home:
        """The home named by `--home`, else by `$PARAAGENT_HOME`, else `.paraagent` here; always absolute."""
        named = option or os.environ.get(HOME_VARIABLE) or ".paraagent"
        return cls(Path(named).expanduser().absolute())

    @property
    def downloads(self) -> Path:
        return self.root / "downloads"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def current_path(self) -> Path:
        return self.root / "current.json"

    @property
    def sources_path(self) -> Path:
        return self.root / "sources.json"

    @property
    def catalog_path(self) -> Path:
        """The catalog that was built or reused last, whatever the profile."""
        return self.root / "catalog.duckdb"

    def artifact(self, stage: str, fingerprint: str) -> Path:
        return self.artifacts / stage / fingerprint

    def lock_path(self, stage: str, fingerprint: str) -> Path:
        return self.artifacts / stage / f"{fingerprint}.lock"

    def current(self) -> dict[str, dict[str, str]]:
        """Profile -> stage -> fingerprint; empty where nothing was run yet.

        Raises:
            RunError: the file is not what was written there.
        """
        try:
            data = orjson.loads(self.current_path.read_bytes())
        except FileNotFoundError:
            return {}
        except orjson.JSONDecodeError as error:
            raise RunError(f"{self.current_path} is not valid JSON ({error}): remove it and run again") from error
        except OSError as error:
            raise RunError(
                f"The home {self.root} cannot be read ({error.strerror}): name another with --home"
            ) from error
        if not isinstance(data, dict) or not all(isinstance(stages, dict) for stages in data.values()):
            raise RunError(f"{self.current_path} is not a table of profiles: remove it and run again")
        return {str(profile): dict(stages) for profile, stages in data.items()}

    def current_artifact(self, profile: str, stage: str) -> Path | None:
        """Directory of what `stage` of `profile` last produced, or None."""
        fingerprint = self.current().get(profile, {}).get(stage)
        path = self.artifact(stage, fingerprint) if fingerprint else None
        return path if path and path.is_dir() else None

    def set_current(self, profile: str, stage: str, fingerprint: str) -> None:
        """Make an artifact the current one of its profile; the catalog's stable path follows."""
        from filelock import FileLock

        with FileLock(self.root / "current.lock"):
            current = self.current()
            if current.get(profile, {}).get(stage) != fingerprint:
                current.setdefault(profile, {})[stage] = fingerprint
                write_json(self.current_path, current)
            if stage == "catalog":
                self._link_catalog(self.artifact(stage, fingerprint) / "catalog.duckdb")

    def _link_catalog(self, target: Path) -> None:
        if not target.exists() or (self.catalog_path.exists() and self.catalog_path.samefile(target)):
            return
        fresh = self.root / f".catalog.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target.relative_to(self.root))
        fresh.replace(self.catalog_path)

    def check_room(self) -> None:
        """Raise the operating system's error where the home has no room for the least that a run writes."""
        room = self.root / ".room"
        write_atomic(room, bytes(_ROOM))
        room.unlink()

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Turn the operating system's refusals into one sentence that names the home and the way out."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            sentence = disk_error(error, self.root)
            if sentence is None:
                raise
            raise sentence from error


def disk_error(error: BaseException, home: Path) -> RunError | None:
    """The sentence for a full or unwritable home, or None where `error` says something else."""
    text = str(error)
    number = error.errno if isinstance(error, OSError) else None
    if number in _FULL or "No space left on device" in text:
        return RunError(
            f"The home {home} is full ({_reason(error)}): free some space (`paraagent clean` removes what nothing"
            " current needs) or name another place with --home; what is finished is kept and the same command goes on"
        )
    file = error.filename if isinstance(error, OSError) else None
    if number in _REFUSED and (file is None or Path(str(file)).is_relative_to(home) or home.is_relative_to(str(file))):
        return RunError(
            f"The home {home} cannot be written ({_reason(error)}): make it writable or name another with --home"
        )
    return None


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0]
