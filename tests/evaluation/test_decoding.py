"""`bench rollout`: both ways write as many tokens as the demonstrations have."""

from pathlib import Path
from typing import Any

import pytest

from paraagent.agents.language_model import load_language_model
from paraagent.agents.transcript import Transcriber
from paraagent.demos.dataset import write_demos
from paraagent.evaluation.decoding import bench_rollout, read_scripts
from paraagent.progress import Quiet


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory, tiny_model_dir: Path) -> Path:
    transcriber = Transcriber(load_language_model(tiny_model_dir).tokenizer)
    path = tmp_path_factory.mktemp("demos") / "demos.parquet"
    write_demos([_demo(number, transcriber) for number in range(7)], path)
    return path


def _demo(number: int, transcriber: Transcriber) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": "Find tools, call them, answer."},
        {"role": "user", "content": "How warm is it? " * (1 + number % 3)},
        {"role": "assistant", "content": "<search_tool>weather: warmth</search_tool>" * (1 + number % 2)},
        {"role": "user", "content": '<tools>\n{"name":"weather"}\n</tools>'},
        {"role": "assistant", "content": f"<answer>{number} degrees</answer>"},
    ]
    tokens = transcriber.render(messages)
    return {
        "task_id": f"train-{number}", "seed": number, "messages": messages, "mistakes": [], "discovered_tools": [],
        "shape": "single", "width": 1, "reach": "service", "split": "train", "recoveries": [], "n_turns": 2,
        "n_tokens": len(tokens.ids), "n_model_tokens": sum(tokens.mask),
    }  # fmt: skip


def test_scripts_say_what_is_seen_and_how_much_is_written(demos: Path, tiny_model_dir: Path) -> None:
    transcriber = Transcriber(load_language_model(tiny_model_dir).tokenizer)
    scripts = read_scripts(demos, transcriber, 3)
    assert [script.name for script in scripts] == ["train-0", "train-1", "train-2"]
    assert [message["role"] for message in scripts[0].opening] == ["system", "user"]
    assert [message["content"] for message in scripts[0].seen] == ['<tools>\n{"name":"weather"}\n</tools>']
    assert scripts[0].turns[1] == len(transcriber.tokenizer.encode("<answer>0 degrees</answer>")) + 1
    assert scripts[1].turns[0] > scripts[0].turns[0]


def test_both_ways_write_the_same_number_of_tokens(demos: Path, tiny_model_dir: Path) -> None:
    measured = bench_rollout(tiny_model_dir, demos, 7, 3, Quiet())
    transcriber = Transcriber(load_language_model(tiny_model_dir).tokenizer)
    expected = sum(sum(script.turns) for script in read_scripts(demos, transcriber, 7))
    assert (measured["episodes"], measured["batch"], measured["tokens_written"]) == (7, 3, expected)
    assert measured["tokens_per_second"] == pytest.approx(expected / measured["seconds"], rel=0.1)
    assert measured["ratio"] == pytest.approx(
        measured["tokens_per_second"] / measured["baseline_tokens_per_second"], rel=0.01
    )
