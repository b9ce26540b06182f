"""One document from the web, read once, bounded in size, time and redirects, and kept as it was."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from urllib.parse import urlsplit

from paraagent.catalog.secrets import expanded
from paraagent.errors import NetworkError, RunError
from paraagent.files import write_atomic

MAX_BYTES = 100_000_000
SECONDS = 60.0
"""For the whole answer."""
_REDIRECTS = 5


def fetched(url: str, downloads: Path, kind: str, refresh: bool) -> Path:
    """The document of an address in the downloads, from the web where it was never read.

    Raises:
        NetworkError: nothing answers, or not with a document.
        RunError: the answer is too large, or the downloads cannot be written.
    """
    stem = f"{kind}-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    if not refresh:
        for suffix in (".json", ".yaml"):
            if (path := downloads / (stem + suffix)).is_file():
                return path
    data = _get(url)
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    path = downloads / (stem + (".json" if start in (b"{", b"[") else ".yaml"))
    try:
        write_atomic(path, data)
        for suffix in (".json", ".yaml"):
            if (other := downloads / (stem + suffix)) != path:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"Cannot write to the download folder {downloads}: {error.strerror or error}") from error
    return path


def shown(url: str) -> str:
    """An address without its user, password and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _get(url: str) -> bytes:
    import httpx

    name, until = shown(url), time.monotonic() + SECONDS
    accept = {"Accept": "application/json, application/yaml, */*;q=0.5"}
    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=_REDIRECTS, timeout=SECONDS / 3) as client,
            client.stream("GET", expanded(url), headers=accept) as answer,
        ):
            if answer.status_code != 200:
                raise NetworkError(f"{name} answers {answer.status_code} {answer.reason_phrase}: check the address")
            data = bytearray()
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > MAX_BYTES:
                    raise RunError(f"{name} sends more than {MAX_BYTES // 1_000_000} MB: download it and name the file")
                if time.monotonic() > until:
                    raise NetworkError(
                        f"{name} did not end within {SECONDS:.0f} seconds: download it and name the file"
                    )
            html = "html" in answer.headers.get("content-type", "").lower()
    except httpx.TooManyRedirects as error:
        raise NetworkError(f"{name} redirects more than {_REDIRECTS} times: name the address where it ends") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise NetworkError(f"{name} cannot be read ({said}): check the address and the network") from error
    if html or data[:512].lstrip()[:1] == b"<":
        raise NetworkError(f"{name} answers with a web page, not a document: name the address of the raw file")
    return bytes(data)
