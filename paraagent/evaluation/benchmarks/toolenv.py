"""ToolEnv held-out: our own verifiable tasks on services that no training episode has seen."""

from __future__ import annotations

from collections.abc import Iterable

from paraagent.seeds import derive
from paraagent.task import Task


def held_out(tasks: Iterable[Task], limit: int, seed: int) -> list[Task]:
    """At most `limit` tasks of the test split, drawn by a hash of the id, so that a larger limit only adds tasks.

    The draw depends on nothing but the seed and the ids: the order of `tasks` does not matter.
    """
    test = [task for task in tasks if task.split == "test"]
    test.sort(key=lambda task: (derive(seed, "held-out", task.task_id), task.task_id))
    return test[:limit]
