"""Models of the hub: one commit, no code and no pickles, off-line afterwards, and one sentence for each failure."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraagent.agents.language_model import load_language_model
from paraagent.config import Profile
from paraagent.errors import NetworkError, RunError
from paraagent.files import sha256_file
from paraagent.progress import Quiet
from paraagent.training.hub import downloaded, fetch_hub_model, hub_commit, hub_config
from paraagent.training.pretrained import prepare_model, source_hashes
from pipelines.model import STAGE
from tests.training.hub_server import COMMIT, REPOSITORY, Hub, hub_of, serving

SOURCE = f"hf:{REPOSITORY}"


@pytest.fixture
def hub(tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the tiny model and things beside it that nobody should take."""
    with serving(hub_of(tiny_model_dir)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        hub.files |= {
            "pytorch_model.bin": b"cos\nsystem\n",
            "modeling_own.py": b"raise SystemExit",
            "onnx/config.json": b"{}",
            "training_args.pt": b"cos\n",
        }
        yield hub


def test_a_model_of_the_hub_is_taken_over_as_the_same_model_from_a_folder_is(
    hub: Hub, tiny_model_dir: Path, tmp_path: Path
) -> None:
    parameters = prepare_model(SOURCE, tmp_path / "downloads", tmp_path / "model", 0, Quiet())
    assert parameters == sum(p.numel() for p in load_language_model(tiny_model_dir).model.parameters())
    assert sha256_file(tmp_path / "model" / "model.safetensors") == sha256_file(tiny_model_dir / "model.safetensors")


def test_neither_pickles_nor_code_nor_other_formats_are_asked_for(hub: Hub, tmp_path: Path) -> None:
    folder = fetch_hub_model(SOURCE, tmp_path, Quiet())
    taken = {path.name for path in folder.iterdir() if path.is_file()}
    assert taken == {"model.safetensors", "config.json", "generation_config.json", *_tokenizer(hub)}
    assert not any(name in request for request in hub.asked for name in (".bin", ".py", ".pt", "onnx"))


def _tokenizer(hub: Hub) -> set[str]:
    return {name for name in hub.files if name.startswith("tokenizer")}


def test_a_branch_is_held_to_the_commit_it_stood_for_and_nothing_is_asked_again(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(hub_of(tiny_model_dir)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert downloaded(SOURCE, tmp_path) is None
        assert source_hashes(SOURCE, tmp_path) == {"commit": COMMIT}
        assert downloaded(SOURCE, tmp_path) is None
        folder = fetch_hub_model(SOURCE, tmp_path, Quiet())
        asked = len(hub.asked)
        assert fetch_hub_model(SOURCE, tmp_path, Quiet()) == folder
        assert len(hub.asked) == asked
    assert downloaded(SOURCE, tmp_path) == folder
    assert fetch_hub_model(f"{SOURCE}@{COMMIT}", tmp_path, Quiet()) == folder
    assert load_language_model(folder).model.config.num_hidden_layers == 2


def test_the_fingerprint_of_the_stage_depends_on_the_commit(hub: Hub, tmp_path: Path) -> None:
    profile = Profile.model_validate({"name": "x", "model": {"source": SOURCE}})
    assert STAGE.external is not None
    assert STAGE.external(profile, tmp_path) == {"commit": COMMIT}
    assert (tmp_path / "downloads" / "models" / "lab" / "tiny" / "main.commit").read_text() == COMMIT


def test_an_interrupted_download_is_gone_on_with(hub: Hub, tmp_path: Path) -> None:
    folder = fetch_hub_model(SOURCE, tmp_path, Quiet())
    (folder / ".cache" / "files.json").unlink()
    (folder / "tokenizer.json").unlink()
    hub.asked.clear()
    fetch_hub_model(SOURCE, tmp_path, Quiet())
    assert [request for request in hub.asked if request.startswith("GET /lab")] == [
        f"GET /{REPOSITORY}/resolve/{COMMIT}/tokenizer.json"
    ]
    assert downloaded(SOURCE, tmp_path) == folder


def test_weights_that_are_not_those_of_the_hub_are_refused(hub: Hub, tmp_path: Path) -> None:
    weights = hub.files["model.safetensors"]
    hub.altered = weights[:-1] + bytes([weights[-1] ^ 1])
    with pytest.raises(RunError, match=r"The download .*model.safetensors is damaged: delete .*/lab/tiny/c0ffee0* and"):
        fetch_hub_model(SOURCE, tmp_path, Quiet())
    assert downloaded(SOURCE, tmp_path) is None


def test_a_download_that_was_changed_here_is_refused(hub: Hub, tmp_path: Path) -> None:
    folder = fetch_hub_model(SOURCE, tmp_path, Quiet())
    (folder / "config.json").write_bytes((folder / "config.json").read_bytes() + b" ")
    with pytest.raises(RunError, match=r"config.json is damaged: delete"):
        fetch_hub_model(SOURCE, tmp_path, Quiet())


def test_the_token_is_that_of_the_environment_and_goes_nowhere_else(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_SECRET"
    with pytest.raises(RunError) as caught:
        fetch_hub_model(SOURCE, tmp_path, Quiet())
    assert str(caught.value) == (
        f"The model {REPOSITORY} needs a token: accept its terms on its page and set HF_TOKEN to a token that may read "
        "it"
    )
    assert hub.tokens == {""}
    monkeypatch.setenv("HF_TOKEN", "hf_SECRET\n")
    folder = fetch_hub_model(SOURCE, tmp_path, Quiet())
    assert hub.tokens == {"", "Bearer hf_SECRET"}
    assert not any(b"hf_SECRET" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert downloaded(SOURCE, tmp_path) == folder


def test_a_token_that_is_none_is_not_repeated(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_SECRET\nhf_SECRET")
    with pytest.raises(RunError, match="HF_TOKEN holds characters that no token has") as caught:
        hub_commit(SOURCE, tmp_path)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("hf:lab/other", "There is no model lab/other on the hub, or it is private: check the name in model.source"),
        ("hf:lab/tiny@v9", "The model lab/tiny has no revision v9: name a branch, a tag or a commit of it"),
        (f"hf:lab/{'x' * 97}", "on the hub, or it is private: check the name in model.source"),
    ],
)
def test_what_the_hub_does_not_have_is_one_sentence(hub: Hub, tmp_path: Path, source: str, sentence: str) -> None:
    with pytest.raises(RunError) as caught:
        hub_commit(source, tmp_path)
    assert sentence in str(caught.value)
    assert not isinstance(caught.value, NetworkError)


def test_a_commit_that_is_not_there_is_one_sentence(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no revision aaaa"):
        fetch_hub_model(f"{SOURCE}@{'a' * 40}", tmp_path, Quiet())


def test_a_model_without_safetensors_is_refused_before_anything_is_downloaded(hub: Hub, tmp_path: Path) -> None:
    del hub.files["model.safetensors"]
    for source in (SOURCE, f"{SOURCE}@{COMMIT}"):
        with pytest.raises(RunError, match=r"has its weights as pickles only .pytorch_model.bin, training_args.pt."):
            fetch_hub_model(source, tmp_path, Quiet())
    assert not any("resolve" in request for request in hub.asked)


def test_without_the_network_the_sentence_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(NetworkError) as caught:
        prepare_model(SOURCE, tmp_path, tmp_path / "model", 0, Quiet())
    assert str(caught.value) == (
        f"The model {REPOSITORY} at main is not in the downloads and the hub cannot be reached: connect to the network "
        "and run the same command again, or name a folder as local:DIR"
    )


def test_a_hub_that_is_none_is_named(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.files["config.json"] = b"<html>"
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/{REPOSITORY}/resolve/main/config.json?")
    with pytest.raises(RunError, match=r"does not answer as the hub does: check \$HF_ENDPOINT"):
        hub_commit(SOURCE, tmp_path)


def test_the_config_alone_can_be_had(hub: Hub, tmp_path: Path) -> None:
    assert hub_config(SOURCE, tmp_path).read_bytes() == hub.files["config.json"]
    assert not any("model.safetensors" in request for request in hub.asked)
