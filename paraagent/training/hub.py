"""Models of the Hugging Face hub, `hf:ORG/NAME[@REVISION]`: held to one commit and kept in the downloads.

`$HF_ENDPOINT` names another hub and `$HF_TOKEN` holds the token that some models need. What a branch meant when it was
first asked for counts until its note in the downloads is deleted; with the files there, nothing is asked for any more.

```
models/ORG/NAME/<revision>.commit            the commit that a branch or a tag stands for
models/ORG/NAME/<commit>/                    the files: weights as safetensors, settings, tokenizer
models/ORG/NAME/<commit>/.cache/files.json   SHA-256 of each, written when all of them are there
```
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import orjson

from paraagent.agents.model_folder import check_model_folder, without_safetensors
from paraagent.errors import NetworkError, RunError
from paraagent.files import sha256_file, write_atomic, write_json
from paraagent.progress import Progress

if TYPE_CHECKING:
    from huggingface_hub import HfApi, ModelInfo

HUB = "hf:"
WANTED = ["*.safetensors", "*.json", "merges.txt", "vocab.txt", "tokenizer.model"]
"""Weights, settings and tokenizers: no code and no pickles."""
UNWANTED = ["*/*", "consolidated*"]
"""Folders of other formats, and the same weights again."""
SECONDS = 30.0
"""For a question to the hub, not for a file."""
_SUMS = Path(".cache", "files.json")
"""In a folder, whose files are never taken: no model can bring it along."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NEEDS_TOKEN = "accept its terms on its page and set HF_TOKEN to a token that may read it"


class HubModel(NamedTuple):
    """A model of the hub as it is named."""

    repository: str
    revision: str

    def place(self, downloads: Path) -> Path:
        return downloads / "models" / self.repository

    def note(self, downloads: Path) -> Path:
        return self.place(downloads) / f"{quote(self.revision, safe='')}.commit"


def hub_model(source: str) -> HubModel:
    """Read `hf:ORG/NAME[@REVISION]`; the branch `main` where no revision is named."""
    repository, _, revision = source.removeprefix(HUB).partition("@")
    return HubModel(repository, revision or "main")


def hub_commit(source: str, downloads: Path) -> str:
    """The commit that the source stands for; the hub is asked once, then it is noted.

    Raises:
        NetworkError: the hub cannot be reached and nothing is noted.
        RunError: there is no such model, it needs a token, or it has no weights as safetensors.
    """
    known = known_commit(source, downloads)
    if known:
        return known
    model = hub_model(source)
    found = _look_up(model, model.revision)
    if not found.sha or not _COMMIT.fullmatch(found.sha):
        raise RunError(f"The hub names no commit of {model.repository}: check $HF_ENDPOINT")
    write_atomic(model.note(downloads), found.sha.encode())
    return found.sha


def known_commit(source: str, downloads: Path) -> str | None:
    """The same where it is known without asking."""
    model = hub_model(source)
    if _COMMIT.fullmatch(model.revision):
        return model.revision
    note = model.note(downloads)
    return note.read_text("ascii").strip() if note.is_file() else None


def downloaded(source: str, downloads: Path) -> Path | None:
    """The folder of a model that is here and whole; None where it was not downloaded to the end."""
    commit = known_commit(source, downloads)
    folder = hub_model(source).place(downloads) / commit if commit else None
    return folder if folder and (folder / _SUMS).is_file() else None


def fetch_hub_model(source: str, downloads: Path, progress: Progress) -> Path:
    """The folder with the model's files, downloaded where they are not here yet; what is half here is gone on with.

    Raises:
        NetworkError: the hub cannot be reached.
        RunError: as for `hub_commit`, or a file is not what the hub has or not what was downloaded.
    """
    model, commit = hub_model(source), hub_commit(source, downloads)
    folder = model.place(downloads) / commit
    if (folder / _SUMS).is_file():
        _compare(folder, _hashes(folder), orjson.loads((folder / _SUMS).read_bytes()))
        return folder
    found = _look_up(model, commit)
    progress.message(f"downloading {model.repository} at {commit[:12]}")
    with _explained(model):
        _client().snapshot_download(
            model.repository, revision=commit, local_dir=folder, allow_patterns=WANTED, ignore_patterns=UNWANTED
        )
    check_model_folder(folder)
    hashes = _hashes(folder)
    published = {file.rfilename: file.lfs.sha256 for file in found.siblings or [] if file.lfs}
    _compare(folder, hashes, {name: digest for name, digest in published.items() if name in hashes})
    write_json(folder / _SUMS, hashes)
    return folder


def hub_config(source: str, folder: Path) -> Path:
    """The model's `config.json` alone, as it is now, downloaded into `folder`. Raises as `hub_commit` does."""
    model = hub_model(source)
    with _explained(model):
        return Path(
            _client().hf_hub_download(model.repository, "config.json", revision=model.revision, local_dir=folder)
        )


def _look_up(model: HubModel, revision: str) -> ModelInfo:
    with _explained(model):
        found = _client().model_info(model.repository, revision=revision, files_metadata=True, timeout=SECONDS)
    names = [file.rfilename for file in found.siblings or []]
    if not any(name.endswith(".safetensors") and "/" not in name for name in names):
        raise RunError(without_safetensors(names, model.repository))
    return found


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: sha256_file(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _compare(folder: Path, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    if wrong := [name for name, digest in expected.items() if found.get(name) != digest]:
        raise RunError(f"The download {folder / wrong[0]} is damaged: delete {folder} and run the same command again")


def _client() -> HfApi:
    """The hub's own client, without its reports of who asks, and with no token but that of the environment."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.utils.tqdm import disable_progress_bars

    constants.HF_HUB_DISABLE_TELEMETRY = True
    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    token = os.environ.get("HF_TOKEN", "").strip()
    if not re.fullmatch(r"[!-~]*", token):
        raise RunError("HF_TOKEN holds characters that no token has: set it to the token alone")
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token or False)


@contextmanager
def _explained(model: HubModel) -> Iterator[None]:
    """What the hub's client raises, as sentences. None of them repeats its text, which may hold addresses."""
    import httpx2
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        yield
    except (httpx2.HTTPError, OfflineModeIsEnabled, OSError, ValueError, KeyError, TypeError) as error:
        raise _failure(model, error) from error


def _failure(model: HubModel, error: BaseException) -> RunError:
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = model.repository
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__:
        return _failure(model, error.__cause__)
    if isinstance(error, GatedRepoError):
        return RunError(f"The model {name} needs a token: {_NEEDS_TOKEN}")
    if isinstance(error, RevisionNotFoundError):
        return RunError(f"The model {name} has no revision {model.revision}: name a branch, a tag or a commit of it")
    if isinstance(error, RepositoryNotFoundError | HFValidationError):
        return RunError(
            f"There is no model {name} on the hub, or it is private: check the name in model.source, or set HF_TOKEN "
            "to a token that may read it"
        )
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status in (401, 403):
            return RunError(f"The hub refused to show {name} ({status}): {_NEEDS_TOKEN}")
        return NetworkError(f"The hub could not give {name} (it answered {status}): run the same command again later")
    if isinstance(error, ValueError | KeyError | TypeError):
        return RunError(f"What was asked for {name} does not answer as the hub does: check $HF_ENDPOINT")
    if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError):
        return RunError(f"Cannot write the download of {name}: {error.strerror}; free space or choose another --home")
    return NetworkError(
        f"The model {name} at {model.revision} is not in the downloads and the hub cannot be reached: connect to the "
        "network and run the same command again, or name a folder as local:DIR"
    )
