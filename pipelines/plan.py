"""Plan: which artifacts a run needs and what happens to each, from manifests alone, before any heavy import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from paraagent.config import Profile
from paraagent.errors import RunError, UsageError
from paraagent.files import canonical_json, sha256_bytes
from pipelines.added import with_added
from pipelines.home import Home
from pipelines.manifest import Damage, InputEntry, Manifest, read_manifest, verify
from pipelines.registry import STAGES, known_stage
from pipelines.stage import Stage

Action = Literal["reuse", "build", "resume", "rebuild"]
"""`build` from nothing, `resume` an unfinished directory, `rebuild` beside or instead of a complete artifact."""


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    profile: Profile
    stages: tuple[str, ...] = ()
    """Run these alone; empty for all."""
    from_stage: str | None = None
    """Run this one and all after it."""
    force: tuple[str, ...] = ()
    """Build these again, and what depends on them."""
    file: str = ""
    """The TOML file that the profile came from; empty for a built-in one."""


@dataclass(frozen=True)
class Step:
    """One stage of a run."""

    stage: Stage
    fingerprint: str
    inputs: dict[str, str]
    """Fingerprints of the artifacts it reads."""
    external: dict[str, str]
    action: Action
    reason: str
    position: int
    total: int

    @property
    def label(self) -> str:
        """`sft@3f2a1c`, as people and Prefect see it."""
        return f"{self.stage.name}@{self.fingerprint[:6]}"


@dataclass
class Verified:
    """Artifacts whose checksums were compared in this run, so that nothing is hashed twice."""

    manifests: dict[Path, Manifest] = field(default_factory=dict)

    def complete(self, directory: Path) -> Manifest | None:
        """The manifest of a complete, undamaged artifact; None where it is missing or unfinished.

        Raises:
            Damage: there is a manifest, but the files are not what it says.
        """
        if directory not in self.manifests:
            manifest = read_manifest(directory)
            if manifest is None:
                return None
            verify(directory, manifest)
            self.manifests[directory] = manifest
        return self.manifests[directory]

    def forget(self, directory: Path) -> None:
        self.manifests.pop(directory, None)


def config_of(stage: Stage, profile: Profile) -> dict[str, Any]:
    """The sections that decide the stage's result, as JSON values."""
    dump = profile.model_dump(mode="json")
    return {section: dump[section] for section in stage.sections}


def fingerprint(stage: Stage, profile: Profile, inputs: Mapping[str, str], external: Mapping[str, str]) -> str:
    """16 hex digits of SHA-256 over all that decides it: code version, settings, seed, inputs, outside content."""
    return sha256_bytes(
        canonical_json(
            {
                "stage": stage.name,
                "version": stage.version,
                "config": config_of(stage, profile),
                "seed": profile.seed,
                "inputs": dict(inputs),
                "external": dict(external),
            }
        )
    )[:16]


def select(request: Request, stages: Mapping[str, Stage] = STAGES) -> tuple[str, ...]:
    """Names of the stages to run, in order, without those that the profile does without.

    Raises:
        UsageError: an unknown stage, one that the profile does without, or one that is forced but not run.
    """
    left_out = {name: stage.off(request.profile) if stage.off else "" for name, stage in stages.items()}
    for name in (*request.stages, *request.force, *([request.from_stage] if request.from_stage else [])):
        if left_out[known_stage(name, stages)]:
            raise UsageError(f"The profile {request.profile.name} does without the stage {name}: {left_out[name]}")
    chosen = [name for name in stages if not left_out[name]]
    if request.from_stage:
        chosen = chosen[chosen.index(request.from_stage) :]
    if request.stages:
        chosen = [name for name in chosen if name in request.stages]
    if not chosen:
        raise UsageError(
            f"No stage is left to run: --stage {', '.join(request.stages)} comes before --from {request.from_stage}"
        )
    missed = [name for name in request.force if name not in chosen]
    if missed:
        raise UsageError(f"The stage {missed[0]} is forced but not among the stages to run: add --stage {missed[0]}")
    return tuple(chosen)


class Planner:
    """Fingerprints and decisions of one run; `step` may be asked again after something was built."""

    def __init__(self, request: Request, home: Home, stages: Mapping[str, Stage] = STAGES) -> None:
        self.request = replace(request, profile=with_added(request.profile, home))
        self.home = home
        self.stages = stages
        self.selected = select(self.request, stages)
        self.verified = Verified()
        self.pending = self._forced()
        """Stages that must still be built although their artifact is complete."""
        self._known: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {}

    def identity(self, name: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """Fingerprint, fingerprints of the inputs, and hashes of what comes from outside."""
        if name not in self._known:
            stage = self.stages[name]
            inputs = {other: self.identity(other)[0] for other in stage.inputs}
            external = stage.external(self.request.profile, self.home.root) if stage.external else {}
            self._known[name] = (fingerprint(stage, self.request.profile, inputs, external), inputs, external)
        return self._known[name]

    def directory(self, name: str) -> Path:
        return self.home.artifact(name, self.identity(name)[0])

    def steps(self) -> list[Step]:
        """What would happen now to every selected stage."""
        return [self.step(name) for name in self.selected]

    def step(self, name: str) -> Step:
        identity, inputs, external = self.identity(name)
        action, reason = self._decide(name)
        position = self.selected.index(name) + 1
        return Step(self.stages[name], identity, inputs, external, action, reason, position, len(self.selected))

    def input_entries(self, name: str) -> dict[str, InputEntry]:
        """Fingerprint and content of every complete input.

        Raises:
            RunError: an input is missing or damaged and is not built by this run.
        """
        entries = {}
        for other in self.stages[name].inputs:
            try:
                manifest = self.verified.complete(self.directory(other))
            except Damage as damage:
                raise RunError(
                    f"The artifact {other}@{self.identity(other)[0][:6]} that {name} reads is damaged ({damage}):"
                    f" run again with --stage {other} to rebuild it"
                ) from damage
            if manifest is not None:
                entries[other] = InputEntry(fingerprint=manifest.fingerprint, digest=manifest.digest)
        self._require(name, [other for other in self.stages[name].inputs if other not in entries])
        return entries

    def check_inputs(self) -> None:
        """Fail before anything is built where the selected stages read what neither exists nor is selected.

        Raises:
            RunError: names the stage and all that is missing.
        """
        for name in self.selected:
            missing = [other for other in self.stages[name].inputs if other not in self.selected]
            self._require(name, [other for other in missing if not self._exists(other)])

    def _exists(self, name: str) -> bool:
        try:
            return self.verified.complete(self.directory(name)) is not None
        except Damage:
            return True

    def _require(self, name: str, missing: list[str]) -> None:
        if missing:
            profile = self.request.profile.name
            options = " ".join(f"--stage {other}" for other in [*missing, name])
            raise RunError(
                f"The stage {name} needs {' and '.join(missing)}, not built yet with these settings of the profile"
                f" {profile}: run {options}, or leave out the stage options to run everything"
            )

    def _forced(self) -> set[str]:
        """The forced stages and every selected stage that depends on one."""
        forced = set(self.request.force)
        for name in self.selected:
            if forced.intersection(self.stages[name].inputs):
                forced.add(name)
        return forced

    def _decide(self, name: str) -> tuple[Action, str]:
        directory = self.directory(name)
        try:
            manifest = self.verified.complete(directory)
        except Damage as damage:
            return "rebuild", f"damaged: {damage}"
        if manifest is None:
            return ("resume", "unfinished") if directory.is_dir() else ("build", "not built yet")
        if name in self.request.force and name in self.pending:
            return "rebuild", "forced"
        if name in self.pending:
            return "rebuild", "depends on a forced stage"
        changed = self._changed_input(name, manifest)
        return ("rebuild", f"{changed} was rebuilt with other content") if changed else ("reuse", "complete")

    def _changed_input(self, name: str, manifest: Manifest) -> str | None:
        """An input whose content is no longer what this artifact was made from; only complete inputs count."""
        for other, entry in manifest.inputs.items():
            try:
                current = self.verified.complete(self.directory(other))
            except Damage:
                continue
            if current is not None and current.digest != entry.digest:
                return other
        return None
