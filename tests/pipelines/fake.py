"""Three small stages under the real contract: `numbers` (units, slow on request) -> `total` -> `page`.

`python tests/pipelines/fake.py HOME` runs them in a process of its own, to be killed, limited or raced. Every unit that
is worked on leaves a line in `HOME.units`, outside the home, so that a test can count work instead of believing it.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from paraagent.config import Profile
from paraagent.errors import ParaAgentError
from pipelines.home import Home
from pipelines.plan import Request
from pipelines.progress import Lines
from pipelines.runner import Outcome, Runner
from pipelines.stage import Stage, StageContext, StageResult, UnitLog

UNITS = [f"unit-{number:02d}" for number in range(12)]


def fake_stages(delay: float = 0.0, fail: str = "", content: str = "", size: int = 0) -> dict[str, Stage]:
    """The stages by name, in order.

    Args:
        delay: seconds a unit takes.
        fail: a unit that fails on its first attempt.
        content: goes into what `numbers` writes, as an unpinned library would.
        size: bytes that `total` writes beside its result.
    """

    def numbers(context: StageContext) -> StageResult:
        log = UnitLog(context.out, "numbers")
        owed = log.owed(UNITS)
        context.progress.start(len(owed), "units")
        for unit in owed:
            with Path(f"{context.home}.units").open("a") as file:
                file.write(unit + "\n")
            time.sleep(delay)
            if unit == fail and not log.failed_path.exists():
                log.fail(unit, "did not answer")
                continue
            log.add([(unit, {"value": context.seed(unit) % 1000, "content": content})])
            context.progress.advance()
        rows = log.close(UNITS)
        return StageResult({"numbers": len(rows)})

    def total(context: StageContext) -> StageResult:
        rows = UnitLog(context.inputs["numbers"], "numbers").finished()
        value = sum(row["value"] for row in rows.values())
        (context.out / "total.json").write_bytes(orjson.dumps({"total": value, "content": content}))
        if size:
            (context.out / "large.bin").write_bytes(os.urandom(size))
        return StageResult({"totals": 1}, {"total": value})

    def page(context: StageContext) -> StageResult:
        (context.out / "page.txt").write_bytes((context.inputs["total"] / "total.json").read_bytes())
        return StageResult({"pages": 1})

    return {
        "numbers": Stage("numbers", 1, "write numbers", numbers, sections=("tasks",)),
        "total": Stage("total", 1, "add them up", total, inputs=("numbers",), sections=("sft",)),
        "page": Stage("page", 1, "show the sum", page, inputs=("total",)),
    }


def run_fake(
    home: Path, said: Callable[[str], Any] = lambda text: None, stages: dict[str, Stage] | None = None, **request: Any
) -> list[Outcome]:
    """One run in this process; `request` are fields of `Request`."""
    profile = request.pop("profile", Profile(name="fake"))
    return Runner(Request(profile, **request), Home(home), Lines(said), stages=stages or fake_stages()).run()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--max-file", type=int, default=0)
    parser.add_argument("--force", action="append", default=[])
    options = parser.parse_args()
    if options.max_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.max_file, options.max_file))
    stages = fake_stages(options.delay, size=options.size)
    try:
        outcomes = run_fake(options.home, lambda text: print(text, flush=True), stages, force=tuple(options.force))
    except ParaAgentError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    print(" ".join(f"{outcome.step.stage.name}={outcome.action}" for outcome in outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
