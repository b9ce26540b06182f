"""A tiny random model on disk, and a handful of demonstrations and tasks that it can be trained on in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paraagent.agents.transcript import Transcriber
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, TasksConfig
from paraagent.demos.dataset import write_demos
from paraagent.progress import Quiet
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.tasks.synthesis import synthesise


@pytest.fixture(scope="session")
def small_env() -> EnvConfig:
    return EnvConfig(max_turns=3, max_new_tokens=24, max_context_tokens=4_000, max_schema_chars=300)


@pytest.fixture(scope="session")
def tiny_tasks(tiny_catalog: Catalog, tiny_index: ToolIndex, small_env: EnvConfig) -> list[Task]:
    config = TasksConfig(train=6, validation=1, test=1, shapes={"single": 0.5, "parallel-2": 0.5})
    made = synthesise(tiny_catalog, tiny_index, config, small_env, 0, Quiet())
    return [task for task in made.tasks if task.split == "train"]


@pytest.fixture(scope="session")
def demo_rows(transcriber: Transcriber) -> list[dict[str, Any]]:
    return [_demo(number, transcriber) for number in range(9)]


@pytest.fixture(scope="session")
def demos_file(demo_rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "demos.parquet"
    write_demos(demo_rows, path)
    return path


def _demo(number: int, transcriber: Transcriber) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": "Find tools, call them, answer."},
        {"role": "user", "content": " ".join(["How warm is it?"] * (1 + number % 3))},
        {"role": "assistant", "content": "<think>I search.</think>\n<search_tool>weather: warmth</search_tool>"},
        {"role": "user", "content": '<tools>\n{"name":"weather"}\n</tools>'},
        {"role": "assistant", "content": f"<think>Found.</think>\n<answer>{number} degrees</answer>"},
    ]
    tokens = transcriber.render(messages)
    return {
        "task_id": f"train-{number}",
        "seed": number,
        "messages": messages,
        "mistakes": [],
        "discovered_tools": ['{"name":"weather"}'],
        "shape": "single",
        "width": 1,
        "reach": "service",
        "split": "train",
        "recoveries": [],
        "n_turns": 2,
        "n_tokens": len(tokens.ids),
        "n_model_tokens": sum(tokens.mask),
    }
