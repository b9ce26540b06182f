"""Runner: takes a request through its stages. The only place that locks, resumes, swaps and writes manifests.

It knows nothing of Prefect: an `Execute` wraps the building of one stage; the flow passes one that makes it a task.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from paraagent.errors import ParaAgentError, RunError
from paraagent.progress import Progress
from pipelines.home import Home, disk_error
from pipelines.manifest import (
    ContractEntry,
    Manifest,
    list_files,
    machine,
    read_attempts,
    read_manifest,
    versions,
    write_attempts,
    write_manifest,
)
from pipelines.plan import Planner, Request, Step, config_of
from pipelines.progress import INDENT, Indented, seconds_text
from pipelines.record import RunRecord, finished_before
from pipelines.registry import STAGES
from pipelines.stage import Stage, StageContext, StageResult

RunAction = Literal["reused", "built", "resumed", "rebuilt"]


@dataclass(frozen=True)
class Outcome:
    """One stage after the run: its complete artifact and how it came about."""

    step: Step
    action: RunAction
    path: Path
    manifest: Manifest

    def summary(self) -> dict[str, Any]:
        """JSON values for `--json` and the run's record."""
        return {
            "stage": self.step.stage.name,
            "fingerprint": self.step.fingerprint,
            "action": self.action,
            "reason": self.step.reason,
            "path": str(self.path),
            "seconds": self.manifest.seconds,
            "rows": self.manifest.rows,
            "metrics": self.manifest.metrics,
        }


Execute = Callable[[Step, Callable[[], Outcome]], Outcome]


def in_process(step: Step, build: Callable[[], Outcome]) -> Outcome:
    return build()


class Runner:
    """One run of one request on one home.

    `progress` may be replaced before `run`; the flow does, so that Prefect hears too.
    """

    def __init__(
        self, request: Request, home: Home, progress: Progress, *, stages: Mapping[str, Stage] = STAGES
    ) -> None:
        self.home = home
        self.progress = progress
        self.planner = Planner(request, home, stages)
        self.request = request = self.planner.request
        self.planner.pending -= finished_before(home, request, self.planner)
        self.record = RunRecord.begin(home, request)
        self.outcomes: list[Outcome] = []
        self.now: Step | None = None
        """The step under way."""

    @property
    def nothing_to_do(self) -> bool:
        """Every selected artifact is complete; asking costs checksums, no imports."""
        return all(step.action == "reuse" for step in self.planner.steps())

    def run(self, execute: Execute = in_process) -> list[Outcome]:
        """Run every selected stage in order and keep the record of the run.

        Raises:
            ParaAgentError: the first stage that failed; what was finished is kept.
        """
        if self.request.profile.machine.threads:
            os.environ.setdefault("OMP_NUM_THREADS", str(self.request.profile.machine.threads))
        try:
            with self.home.writable():
                self.planner.check_inputs()
                self.record.planned = {name: self.planner.identity(name)[0] for name in self.planner.selected}
                self.record.save()
                for name in self.planner.selected:
                    outcome = self._stage(name, execute)
                    self.home.set_current(self.request.profile.name, name, outcome.step.fingerprint)
                    self.outcomes.append(outcome)
                    self.record.add(outcome.summary())
                self.record.end("completed")
        except BaseException as error:
            self._end_badly(error)
            raise
        return self.outcomes

    def _end_badly(self, error: BaseException) -> None:
        """Note how the run ended; a home that cannot be written must not hide the first error."""
        state: Literal["failed", "interrupted"] = "failed" if isinstance(error, Exception) else "interrupted"
        with suppress(OSError):
            self.record.end(state, str(error), traceback.format_exc())

    def _stage(self, name: str, execute: Execute) -> Outcome:
        step = self.now = self.planner.step(name)
        head = f"[{step.position}/{step.total}] {step.label}  {step.stage.title}"
        if step.action == "reuse":
            self.progress.message(f"{head}: reused")
            return execute(step, lambda: self._outcome(step, "reused"))
        self.progress.message(f"{head}: {step.action} ({step.reason})")
        started = time.monotonic()
        outcome = execute(step, lambda: self._build(step))
        self.planner.verified.forget(outcome.path)
        counts = "".join(f", {count:,} {what}" for what, count in outcome.manifest.rows.items())
        self.progress.message(f"{INDENT}{outcome.action} in {seconds_text(time.monotonic() - started)}{counts}")
        self.planner.pending.discard(name)
        return outcome

    def built_elsewhere(self, step: Step) -> Outcome:
        """The outcome of a stage that another process built on this home.

        Raises:
            RunError: there is no complete artifact, so that process worked on another home.
        """
        path = self.home.artifact(step.stage.name, step.fingerprint)
        self.planner.verified.forget(path)
        if read_manifest(path) is None:
            raise RunError(f"{step.label} was built, but not in {path}: the worker must share the home of this run")
        return self._outcome(step, "rebuilt" if step.action == "rebuild" else "built")

    def _outcome(self, step: Step, action: RunAction) -> Outcome:
        path = self.home.artifact(step.stage.name, step.fingerprint)
        manifest = self.planner.verified.complete(path)
        assert manifest is not None
        return Outcome(step, action, path, manifest)

    def _build(self, step: Step) -> Outcome:
        """Build one artifact under its lock; another run that builds the same one is waited for and then reused."""
        from filelock import FileLock, Timeout

        name = step.stage.name
        lock = FileLock(self.home.lock_path(name, step.fingerprint))
        (self.home.artifacts / name).mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self.progress.message(f"{INDENT}another run is at work on {step.label}: waiting for it")
            lock.acquire()
            self.planner.pending.discard(name)
        try:
            final = self.home.artifact(name, step.fingerprint)
            _swap(final)
            self.planner.verified.forget(final)
            step = self.planner.step(name)
            if step.action == "reuse":
                self.progress.message(f"{INDENT}{step.label} is complete by now: reused")
                return self._outcome(step, "reused")
            return self._build_locked(step)
        finally:
            lock.release()

    def _build_locked(self, step: Step) -> Outcome:
        stage, final = step.stage, self.home.artifact(step.stage.name, step.fingerprint)
        out = self._workplace(step, final)
        inputs = self.planner.input_entries(stage.name)
        attempts, spent = read_attempts(out)
        out.mkdir(parents=True, exist_ok=True)
        write_attempts(out, attempts + 1, spent)
        started, clock = datetime.now(UTC), time.monotonic()
        try:
            result, contracts = self._produce(step, out)
        except BaseException:
            with suppress(OSError):
                write_attempts(out, attempts + 1, spent + time.monotonic() - clock)
            raise
        manifest = Manifest(
            stage=stage.name,
            version=stage.version,
            fingerprint=step.fingerprint,
            profile=self.request.profile.name,
            seed=self.request.profile.seed,
            config=config_of(stage, self.request.profile),
            inputs=inputs,
            external=step.external,
            files=list_files(out),
            content=result.content,
            rows=result.rows,
            metrics=result.metrics,
            contracts=contracts,
            run=self.record.run,
            started=started.isoformat(timespec="seconds"),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            attempts=attempts + 1,
            seconds=round(spent + time.monotonic() - clock, 3),
            peak_rss_bytes=peak_rss(),
            versions=versions(),
            machine=machine(),
        )
        write_manifest(out, manifest)
        _swap(final)
        self.planner.verified.forget(final)
        self.planner.verified.manifests[final] = manifest
        done: dict[str, RunAction] = {"build": "built", "resume": "resumed", "rebuild": "rebuilt"}
        return Outcome(step, done[step.action], final, manifest)

    def _workplace(self, step: Step, final: Path) -> Path:
        """Where to build: in place, or beside a complete artifact that stays in use until the swap."""
        if step.action != "rebuild":
            return final
        if step.reason.startswith("damaged"):
            self.progress.message(f"{INDENT}the artifact {step.label} is {step.reason}; it is rebuilt from its inputs")
            shutil.rmtree(final)
            return final
        return _beside(final)

    def _produce(self, step: Step, out: Path) -> tuple[StageResult, list[ContractEntry]]:
        stage = step.stage
        context = StageContext(
            profile=self.request.profile,
            out=out,
            inputs={other: self.planner.directory(other) for other in stage.inputs},
            downloads=self.home.downloads,
            fingerprint=step.fingerprint,
            progress=Indented(self.progress),
            home=self.home.root,
        )
        try:
            result = stage.build(context)
            return result, check_contracts(stage, out, self.progress)
        except ParaAgentError:
            raise
        except Exception as error:
            full = disk_error(error, self.home.root)
            if full is not None:
                raise full from error
            first = (str(error).strip() or "no message").splitlines()[0]
            raise RunError(
                f"The stage {stage.name} failed with {type(error).__name__} ({first}): the traceback is in"
                f" {self.record.path}, and the same command goes on where it stopped"
            ) from error


def check_contracts(stage: Stage, out: Path, progress: Progress) -> list[ContractEntry]:
    """Check every contract of the stage; what is broken but not critical is said and passes.

    Raises:
        RunError: names the expectation, the count and three example rows.
    """
    if not stage.contracts:
        return []
    from pipelines.contracts import check

    progress.message(
        f"{INDENT}checking {', '.join(contract.suite for contract in stage.contracts)} against the contract"
    )
    reports = [check(contract, out) for contract in stage.contracts]
    for report in reports:
        for problem in report.problems:
            progress.message(f"{INDENT}contract {report.suite}: {problem}")
    return [
        ContractEntry(suite=report.suite, success=report.success, rows=report.rows, expectations=report.expectations)
        for report in reports
    ]


def peak_rss() -> int:
    """Most memory that this process, or the largest of its finished children, held at once, in bytes."""
    scale = 1 if sys.platform == "darwin" else 1024
    return scale * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _beside(final: Path) -> Path:
    return final.with_name(final.name + ".new")


def _swap(final: Path) -> None:
    """Put a complete artifact that was built beside into its place; also finishes a swap that a kill cut short."""
    fresh, old = _beside(final), final.with_name(final.name + ".old")
    if read_manifest(fresh) is not None:
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
        fresh.rename(final)
    elif old.exists() and not final.exists():
        old.rename(final)
    shutil.rmtree(old, ignore_errors=True)
