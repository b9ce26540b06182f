"""Folders that are no good model: each is refused in one sentence that says what is wrong and what to do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.agents.language_model import load_language_model, load_tokenizer
from paraagent.errors import RunError
from paraagent.progress import Quiet
from paraagent.training.pretrained import prepare_model, source_hashes

Change = Callable[[Path], object]


@pytest.fixture
def folder(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A whole model that a test may spoil."""
    return Path(shutil.copytree(tiny_model_dir, tmp_path / "given"))


def _edit(path: Path, **values: Any) -> None:
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | values))


def _change_weights(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")


def _index(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_bytes(
        orjson.dumps({"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors"}})
    )


def _index_elsewhere(folder: Path) -> None:
    _index(folder)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"")
    _edit(folder / "model.safetensors.index.json", weight_map={"a": "../model-00001-of-00002.safetensors"})


def _cut(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights (neither model.safetensors nor"),
        (_index, "lacks model-00001-of-00002.safetensors, named in model.safetensors.index.json: copy the whole"),
        (_index_elsewhere, "names ../model-00001-of-00002.safetensors, which may lie outside its folder: put"),
        (_cut, "model.safetensors are cut off or damaged: copy or download that file again"),
        (_pickled, "has its weights as pickles only (pytorch_model.bin), which can run code as they are read, so they"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json is not a valid JSON object: copy"),
        (lambda folder: (folder / "config.json").write_text("{}"), "config.json names no model_type: name a folder"),
        (lambda folder: (folder / "adapter_config.json").write_text("{}"), "holds an adapter (adapter_config.json)"),
    ],
)
def test_what_is_no_whole_model_is_refused_before_anything_is_built(
    folder: Path, tmp_path: Path, change: Change, sentence: str
) -> None:
    change(folder)
    for attempt in (
        lambda: source_hashes(f"local:{folder}", tmp_path),
        lambda: prepare_model(f"local:{folder}", tmp_path, tmp_path / "model", 0, Quiet()),
    ):
        with pytest.raises(RunError) as caught:
            attempt()
        assert sentence in str(caught.value)
        assert str(folder) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_pickles_beside_safetensors_are_left_alone(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    assert load_language_model(folder).model.config.num_hidden_layers == 2


def test_a_weight_that_is_missing_is_not_left_to_chance(folder: Path) -> None:
    _change_weights(folder, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight"))
    sentence = "incomplete: 1 that config.json asks for are missing, such as model.layers.1.mlp.up_proj.weight"
    with pytest.raises(RunError, match=sentence):
        load_language_model(folder)


def test_weights_of_another_size_are_named(folder: Path) -> None:
    _edit(folder / "config.json", intermediate_size=96)
    with pytest.raises(RunError, match=r"not of the sizes that its config.json says, such as model.layers.0.mlp.down"):
        load_language_model(folder)


def test_a_tokenizer_of_another_model_is_refused_with_the_token_that_has_no_row(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    tokenizer.add_tokens(["<far>"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(RunError) as caught:
        load_language_model(folder)
    rows = len(tokenizer) - 1
    assert str(caught.value) == (
        f"The tokenizer in {folder} belongs to another model: its token '<far>' has the id {rows}, and the embedding "
        f"has {rows} rows; put the tokenizer of this model there"
    )


def test_a_model_without_a_tokenizer_says_which_files_are_wanted(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(RunError, match=r"Cannot load a tokenizer from .*: put the files of this model's own tokenizer"):
        load_language_model(folder)


def test_a_model_without_a_chat_template_gets_ours(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    prepare_model(f"local:{folder}", tmp_path, tmp_path / "model", 0, Quiet())
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "<think>One.</think>Hi"}]
    assert load_tokenizer(tmp_path / "model").apply_chat_template(turns, tokenize=False) == (
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>One.</think>Hi<|im_end|>\n"
    )


@pytest.fixture
def with_code(folder: Path) -> Path:
    """A model that asks for Python files of its own, which leave a trace where they are run."""
    for name in ("configuration", "modeling", "tokenization"):
        (folder / f"{name}_own.py").write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    _edit(
        folder / "config.json",
        auto_map={"AutoConfig": "configuration_own.Own", "AutoModelForCausalLM": "modeling_own.Own"},
    )
    _edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization_own.Own", None]})
    return folder


def _ran(folder: Path) -> bool:
    return (folder / "ran").exists() or any(name.endswith("configuration_own") for name in sys.modules)


def test_code_beside_a_known_architecture_is_never_run_nor_asked_for_by_what_is_saved(
    with_code: Path, tmp_path: Path
) -> None:
    prepare_model(f"local:{with_code}", tmp_path, tmp_path / "model", 0, Quiet())
    assert not _ran(with_code)
    assert not any("auto_map" in path.read_text() for path in (tmp_path / "model").glob("*.json"))
    assert not list((tmp_path / "model").glob("*.py"))


def test_an_architecture_that_only_code_defines_is_refused_and_the_code_not_run(with_code: Path) -> None:
    _edit(with_code / "config.json", model_type="own")
    with pytest.raises(
        RunError, match=r"needs Python code of its own .auto_map in config.json., which is never run here"
    ):
        load_language_model(with_code)
    assert not _ran(with_code)
