"""One document from the web: bounded in size, time and redirects, read once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paraagent.catalog import web
from paraagent.catalog.crawl import fetch
from paraagent.catalog.spec import parse_spec
from paraagent.catalog.web import fetched, shown
from paraagent.errors import NetworkError, ParaAgentError, RunError
from paraagent.progress import Quiet

DOCUMENT = b'{"openapi": "3.0.0", "info": {"title": "Buoys", "version": "1"}, "paths": {}}'


class Pages(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        page = self.path.split("?")[0]
        if page == "/moved":
            return self._answer(302, b"", Location="/spec.json")
        if page == "/round":
            return self._answer(302, b"", Location="/round")
        if page == "/page":
            return self._answer(200, b"<html>Sign in</html>", **{"Content-Type": "text/html"})
        if page == "/missing":
            return self._answer(404, b"nothing")
        if page in ("/endless", "/slow"):
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * (1_000_000 if page == "/endless" else 1))
                    time.sleep(0 if page == "/endless" else 0.02)
            except OSError:
                return None
        return self._answer(200, DOCUMENT)

    def _answer(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Pages.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_document_is_read_once_and_again_when_asked(site: str, tmp_path: Path) -> None:
    spec = parse_spec(f"openapi:{site}/moved")
    first = fetch(spec, tmp_path, Quiet())
    assert first.path.read_bytes() == DOCUMENT
    assert fetch(spec, tmp_path, Quiet()) == first
    assert Pages.asked == ["/moved", "/spec.json"]
    fetch(spec, tmp_path, Quiet(), refresh=True)
    assert Pages.asked == ["/moved", "/spec.json"] * 2


@pytest.mark.parametrize(
    ("page", "error", "says"),
    [
        ("missing", NetworkError, "answers 404 Not Found: check the address"),
        ("page", NetworkError, "answers with a web page, not a document"),
        ("round", NetworkError, "redirects more than 5 times"),
        ("endless", RunError, "sends more than 5 MB"),
        ("slow", NetworkError, "did not end within 1 seconds"),
    ],
)
def test_what_is_no_document_is_one_sentence_and_leaves_nothing(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, error: type[ParaAgentError], says: str
) -> None:
    monkeypatch.setattr(web, "MAX_BYTES", 5_000_000)
    monkeypatch.setattr(web, "SECONDS", 1.0)
    with pytest.raises(error, match=says) as caught:
        fetched(f"{site}/{page}", tmp_path, "openapi", refresh=False)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_nothing_there_names_the_address_without_its_query(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"http://127.0.0.1:9/spec.json cannot be read") as caught:
        fetched("http://127.0.0.1:9/spec.json?tenant=hunter2", tmp_path, "openapi", refresh=False)
    assert "hunter2" not in str(caught.value)
    assert shown("https://me:hunter2@api.example:8443/spec.json?x=1") == "https://api.example:8443/spec.json"
