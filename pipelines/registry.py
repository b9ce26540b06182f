"""The stages, in the order in which they run. A stage's module is imported when it is first asked for.

Stage modules import nothing heavy at their top, so a plan costs milliseconds; a test holds them to it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from paraagent.errors import UsageError
from pipelines.stage import Stage

STAGE_NAMES = ("catalog", "tasks", "model", "simulator", "demos", "sft", "rl", "evaluate", "report")


@cache
def _load(name: str) -> Stage:
    stage = import_module(f"pipelines.{name}").STAGE
    assert isinstance(stage, Stage)
    return stage


class _Registry(Mapping[str, Stage]):
    def __getitem__(self, name: str) -> Stage:
        if name not in STAGE_NAMES:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(STAGE_NAMES)

    def __len__(self) -> int:
        return len(STAGE_NAMES)


STAGES: Mapping[str, Stage] = _Registry()


def known_stage(name: str, stages: Mapping[str, Stage] = STAGES) -> str:
    """`name` itself.

    Raises:
        UsageError: there is no such stage; the sentence names the nearest one.
    """
    if name in stages:
        return name
    near = difflib.get_close_matches(name, list(stages), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"the stages are {', '.join(stages)}"
    raise UsageError(f"There is no stage {name}: {hint}")
