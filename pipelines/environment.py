"""What the stages that play episodes have in common: who answers the calls, and the recordings that count as inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paraagent.config import Profile
from pipelines.stage import StageContext

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog
    from paraagent.toolenv.backends import Backends

LLM_CACHE = "llm"
"""Folder of the home that keeps what language models answered."""


def open_backends(context: StageContext, catalog: Catalog) -> Backends:
    """The backends of `[env]`, for all episodes of a stage. Raises `UsageError` where one cannot be opened."""
    from paraagent.toolenv.backends import Backends

    backends = Backends.open(context.profile.env, context.home / LLM_CACHE)
    for note in backends.notes(context.profile.env, catalog):
        context.progress.message(note)
    return backends


def recordings(profile: Profile, home: Path) -> dict[str, str]:
    """Content hashes of the files that the backend `recorded` reads. Raises `UsageError` where one is missing."""
    from paraagent.toolenv.recorded import recording_hashes

    return recording_hashes(profile.env.recordings if "recorded" in profile.env.backends else [])
