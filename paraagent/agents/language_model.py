"""A causal language model with its tokenizer, loaded from a folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from paraagent.agents.model_folder import check_model_folder, read_config
from paraagent.errors import RunError

END_OF_TEXT = "<|endoftext|>"


class LanguageModel(NamedTuple):
    """A transformers model with its tokenizer."""

    model: Any
    tokenizer: Any


def load_language_model(directory: Path, *, training: bool = False, frozen_layers: int = 0) -> LanguageModel:
    """Load a saved model: bfloat16 for sampling where that is fast, on the GPU where there is one; float32 for training
    (small updates vanish in bfloat16 weights), where the trainer places it.

    Training leaves the lowest `frozen_layers` and the embeddings as they are: the backward pass ends above them.

    Raises:
        RunError: there is no whole model in `directory`, or one that only code of its own could load.
    """
    import torch

    tokenizer = load_tokenizer(directory)
    check_model_folder(directory)
    dtype = torch.bfloat16 if bfloat16_is_fast() and not training else torch.float32
    model = _whole_model(directory, dtype)
    _check_vocabulary(directory, tokenizer, model)
    place = "cuda" if torch.cuda.is_available() and not training else "cpu"
    if frozen_layers:
        model.get_input_embeddings().weight.requires_grad_(False)
        for layer in model.model.layers[:frozen_layers]:
            layer.requires_grad_(False)
    return LanguageModel(model.to(place), tokenizer)


def _whole_model(directory: Path, dtype: Any) -> Any:
    """The model, where the folder holds each of its weights: others would be left to chance without a word."""
    from transformers import AutoModelForCausalLM

    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError) as error:
        if "auto_map" in read_config(directory):
            raise RunError(
                f"The model in {directory} needs Python code of its own (auto_map in config.json), which is never run "
                "here: name a model whose architecture transformers knows"
            ) from error
        raise RunError(f"Cannot load the model in {directory}: {str(error).splitlines()[0]}") from error
    absent = sorted(found["missing_keys"])
    if absent:
        raise RunError(
            f"The weights in {directory} are incomplete: {len(absent)} that config.json asks for are missing, such as "
            f"{absent[0]}; copy or download the whole model again"
        )
    misshapen = sorted(str(key[0]) for key in found["mismatched_keys"])
    if misshapen:
        raise RunError(
            f"The weights in {directory} are not of the sizes that its config.json says, such as {misshapen[0]}: take "
            "both from the same model"
        )
    return model


def _check_vocabulary(directory: Path, tokenizer: Any, model: Any) -> None:
    """Each token of the tokenizer must have its row in the embedding; more rows than tokens are usual padding."""
    rows = int(model.get_input_embeddings().num_embeddings)
    token, last = max(tokenizer.get_vocab().items(), key=lambda item: int(item[1]))
    if last >= rows:
        raise RunError(
            f"The tokenizer in {directory} belongs to another model: its token {token!r} has the id {last}, and the "
            f"embedding has {rows} rows; put the tokenizer of this model there"
        )


def bfloat16_is_fast() -> bool:
    """Whether this machine computes in bfloat16: a GPU since Ampere, or a processor with AVX-512.

    Others emulate it, some twenty times slower than float32.
    """
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    asked = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)  # not in builds without oneDNN
    return asked is not None and bool(asked())


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer of a saved model.

    Raises:
        RunError: there is no model in `directory`, or none with a tokenizer.
    """
    from transformers import AutoTokenizer

    if not (directory / "config.json").is_file():
        raise RunError(f"{directory} holds no model (no config.json); run the stage that builds it first.")
    read_config(directory)
    quiet_transformers()
    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise RunError(
            f"Cannot load a tokenizer from {directory}: put the files of this model's own tokenizer there "
            "(tokenizer.json and tokenizer_config.json)"
        ) from error


def quiet_transformers() -> None:
    """No bars and no advice from transformers: progress is shown by whoever runs the work."""
    from transformers.utils import logging

    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\.")  # what TRL is to change
    logging.disable_progress_bar()
    logging.set_verbosity_error()
