"""A hub on this machine: the part of the Hugging Face hub's HTTP interface that a download goes through."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import orjson

REPOSITORY = "lab/tiny"
COMMIT = "c0ffee" + "0" * 34


@dataclass
class Hub:
    """One model in one commit on the branch `main`; a test may spoil any part of it."""

    files: dict[str, bytes]
    url: str = ""
    token: str = ""
    """Without it files are refused, where it is set."""
    altered: bytes = b""
    """What is sent in place of the weights, though their checksum stays."""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    tokens: set[str] = field(default_factory=set)
    """What came as `Authorization`."""


def hub_of(folder: Path) -> Hub:
    return Hub({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            hub.tokens.add(self.headers.get("Authorization", ""))
            api = f"/api/models/{REPOSITORY}"
            if not path.startswith((api, f"/{REPOSITORY}/resolve/")):
                return self._refuse(404, "RepoNotFound")
            revision = path.removeprefix(api).removeprefix("/revision/").removeprefix("/tree/")
            if path.startswith(api):
                if revision not in ("main", COMMIT):
                    return self._refuse(404, "RevisionNotFound")
                return self._answer(orjson.dumps(_tree(hub) if "/tree/" in path else _info(hub)))
            commit, name = path.removeprefix(f"/{REPOSITORY}/resolve/").split("/", 1)
            if commit not in ("main", COMMIT):
                return self._refuse(404, "RevisionNotFound")
            if name not in hub.files:
                return self._refuse(404, "EntryNotFound")
            if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                return self._refuse(403, "GatedRepo")
            data = hub.altered if hub.altered and name.endswith(".safetensors") else hub.files[name]
            return self._answer(data, {"X-Repo-Commit": COMMIT, "ETag": f'"{_digest(hub.files[name])}"'})

        def _answer(self, data: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def _refuse(self, status: int, code: str) -> None:
            self._answer(b"", {"X-Error-Code": code}, status)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _info(hub: Hub) -> dict[str, object]:
    siblings = [{"rfilename": name, "size": len(data), **_stored(name, data)} for name, data in hub.files.items()]
    return {"id": REPOSITORY, "sha": COMMIT, "siblings": siblings}


def _tree(hub: Hub) -> list[dict[str, object]]:
    return [
        {"type": "file", "path": name, "size": len(data), "oid": _digest(data), **_stored(name, data)}
        for name, data in hub.files.items()
    ]


def _stored(name: str, data: bytes) -> dict[str, object]:
    """Large files are named by their content."""
    if not name.endswith((".safetensors", ".bin")):
        return {}
    digest = _digest(data)
    return {"lfs": {"sha256": digest, "oid": digest, "size": len(data), "pointerSize": 130}}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
