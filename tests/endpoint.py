"""A real HTTP server on this machine that answers chat completions as a test says, or as no server should."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from paraagent.config import LlmConfig


@dataclass(frozen=True)
class Raw:
    """Exactly these bytes."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    torn: bool = False
    """The connection ends after half of it."""


class Drop:
    """The connection ends without a word."""


class Hang:
    """The request is read and never answered."""


Answer = str | Raw | Hang | Drop | Callable[[list[dict[str, Any]]], "str | Raw | Drop"]
"""What the model says, or a function of the messages that says it; or what comes instead."""


@dataclass
class Endpoint:
    url: str
    answers: list[Answer]
    """One a request; the last one stays."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The requests' bodies."""
    keys: list[str] = field(default_factory=list)
    """Their Authorization headers."""
    over: threading.Event = field(default_factory=threading.Event)

    def config(self, **changes: Any) -> LlmConfig:
        values: dict[str, Any] = {"base_url": self.url, "model": "tiny", "retries": 0, "timeout": 20.0}
        return LlmConfig(**(values | changes))


def completion(text: str | None, usage: tuple[int, int] | None = None, **message: Any) -> Raw:
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": "stop", "message": said}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Raw(orjson.dumps(body))


@contextmanager
def serving(*answers: Answer) -> Iterator[Endpoint]:
    """An endpoint as long as the block lasts."""
    endpoint = Endpoint("", list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.asked.append(body)
            endpoint.keys.append(self.headers.get("Authorization", ""))
            answer = endpoint.answers[0] if len(endpoint.answers) == 1 else endpoint.answers.pop(0)
            if isinstance(answer, Hang):
                endpoint.over.wait(60)
                return
            said = answer if isinstance(answer, Raw | str | Drop) else answer(body["messages"])
            if isinstance(said, Drop):
                self.close_connection = True
                return
            answer = completion(said) if isinstance(said, str) else said
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.torn else answer.body)
            self.close_connection = answer.torn

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
