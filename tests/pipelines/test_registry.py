"""The registry: every stage is there, hangs together, and costs nothing to plan."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paraagent.errors import UsageError
from pipelines.registry import STAGES, known_stage

HEAVY = ("torch", "transformers", "trl", "datasets", "prefect", "great_expectations", "matplotlib", "duckdb", "polars")


def test_stages_come_after_what_they_read() -> None:
    seen: set[str] = set()
    for name, stage in STAGES.items():
        assert stage.name == name
        assert set(stage.inputs) <= seen, f"{name} reads a later stage"
        seen.add(name)


def test_planning_imports_nothing_heavy() -> None:
    code = (
        "import sys; from pipelines.plan import Planner, Request; from pipelines.home import Home;"
        "from pipelines.settings import load_profile; from pathlib import Path;"
        "Planner(Request(load_profile('smoke')), Home(Path('/nonexistent'))).steps();"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("catalogue", "There is no stage catalogue: did you mean catalog?"),
        ("evaluation", "There is no stage evaluation: did you mean evaluate?"),
        (
            "zzz",
            "There is no stage zzz: the stages are catalog, tasks, model, simulator, demos, sft, rl, evaluate, report",
        ),
    ],
)
def test_unknown_stage_names_the_nearest(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        known_stage(name)
    assert str(caught.value) == sentence
