"""What a folder must hold to be a model: looked at before anything in it is loaded.

Weights are read from safetensors alone. A pickle runs whatever code was put into it as it is read, and so does a model
that brings its architecture as Python files; neither is ever opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from paraagent.errors import RunError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
"""Which file holds which weight, where there are several."""
ADAPTER = "adapter_config.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


def check_model_folder(folder: Path) -> None:
    """See that the weights are there, whole, and safe to read.

    Raises:
        RunError: one sentence with what is wrong and what to do.
    """
    read_config(folder)
    if (folder / ADAPTER).is_file():
        raise RunError(
            f"{folder} holds an adapter ({ADAPTER}), not a whole model: merge it into its model, save that, and name "
            "the new folder"
        )
    shards = weight_files(folder)
    if absent := [name for name in shards if not (folder / name).is_file()]:
        raise RunError(f"The model in {folder} lacks {_some(absent)}, named in {INDEX}: copy the whole folder again")
    if not shards:
        raise RunError(without_safetensors([path.name for path in folder.iterdir()], folder))
    for name in shards:
        _check_shard(folder / name)


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a model.

    Raises:
        RunError: it is missing or no JSON object.
    """
    config = _json(folder / CONFIG)
    if not config.get("model_type"):
        raise RunError(f"{folder / CONFIG} names no model_type: name a folder that transformers' save_pretrained wrote")
    return config


def weight_files(folder: Path) -> list[str]:
    """Names of the safetensors files that make up the weights; empty where there are none.

    Raises:
        RunError: the index of several files cannot be read, or leads out of the folder.
    """
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    if not (folder / INDEX).is_file():
        return []
    weights = _json(folder / INDEX).get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise RunError(f"{folder / INDEX} is damaged: copy the whole folder again")
    names = sorted({str(name) for name in weights.values()})
    if paths := [name for name in names if Path(name).name != name]:
        raise RunError(
            f"{folder / INDEX} names {_some(paths)}, which may lie outside its folder: put the files into it"
        )
    return names


def without_safetensors(names: Sequence[str], where: object) -> str:
    """The sentence for a model of whose files none holds weights that are read here."""
    if pickles := sorted(name for name in names if name.endswith(PICKLES)):
        return (
            f"The model in {where} has its weights as pickles only ({_some(pickles)}), which can run code as they are "
            "read, so they are not opened: convert them to safetensors where you trust them (save_pretrained does) and "
            "name that"
        )
    return f"The model in {where} holds no weights (neither {WEIGHTS} nor {INDEX}): name one saved as safetensors"


def _check_shard(path: Path) -> None:
    """The header says how long the file is: one that was cut off shows without being read through."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np"):
            pass
    except (SafetensorError, OSError) as error:
        raise RunError(f"The weights {path} are cut off or damaged: copy or download that file again") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except OSError as error:
        raise RunError(f"Cannot read {path} ({error.strerror}): name a folder that holds a whole model") from error
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise RunError(f"{path} is not a valid JSON object: copy the whole folder again")
    return found


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
