"""Live MCP servers over HTTP: a real web server, and one that refuses, cuts off and forgets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from paraagent.errors import NetworkError
from paraagent.toolenv.mcp import McpServers
from paraagent.toolenv.mcp_config import ServerConfig
from tests.mcp_web import serving
from tests.toolenv.interfaces import tool
from tests.toolenv.mcp_client import SECRET, call, kind, run

WEB = """
import asyncio, sys
from mcp.server.mcpserver import MCPServer, Context
from mcp_types import ToolAnnotations

server = MCPServer("orchard")
here, both = [], asyncio.Event()

@server.tool()
async def meet() -> str:
    here.append(1)
    if len(here) == 2:
        both.set()
    await both.wait()
    return "met"

@server.tool()
async def hang() -> str:
    await asyncio.Event().wait()
    return ""

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@server.tool()
def large() -> str:
    return "x" * 9_000_000

server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


@pytest.fixture
def orchard(tmp_path: Path) -> Iterator[ServerConfig]:
    (tmp_path / "web.py").write_text(WEB)
    with serving(tmp_path / "web.py") as address:
        yield ServerConfig(url=address)


def test_over_http_calls_overlap_and_are_bounded_each_for_itself(orchard: ServerConfig) -> None:
    async def work(servers: McpServers) -> None:
        calls = [("meet", {}), ("meet", {}), ("large", {}), ("add", {"a": 2, "b": 3}), ("nothing", {})]
        met, too, large, added, unknown = await asyncio.gather(
            *(call(servers, name, "web", **arguments) for name, arguments in calls)
        )
        assert met.result == too.result == {"result": "met"}
        assert added.result == {"result": 5}
        assert [kind(each) for each in (large, unknown)] == ["ToolExecutionError", "ToolNotFoundError"]
        assert (await call(servers, "add", "web", a=1, b=1)).result == {"result": 2}

    run(work, {"web": orchard})


def test_over_http_a_call_that_hangs_times_out(orchard: ServerConfig) -> None:
    async def work(servers: McpServers) -> None:
        assert kind(await call(servers, "hang", "web")) == "TimeoutError"
        assert (await call(servers, "add", "web", a=1, b=1)).result == {"result": 2}

    run(work, {"web": orchard}, timeout=2.0)


class _Web(BaseHTTPRequestHandler):
    """A server of few words: it asks for a key, keeps a session, and answers `fault` with that status."""

    session = 1
    calls: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        request = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {SECRET}":
            return self._say(401, None)
        method = request.get("method")
        if method == "initialize":
            version, info = request["params"]["protocolVersion"], {"name": "web", "version": "1"}
            return self._say(
                200, _result(request, protocolVersion=version, capabilities={"tools": {}}, serverInfo=info)
            )
        if "id" not in request:
            return self._say(202, None)
        if method == "tools/list":
            listed = [{"name": name, "inputSchema": {"type": "object"}} for name in ("fault", "cut", "forget")]
            return self._say(200, _result(request, tools=listed))
        if method != "tools/call":
            return self._say(404, None)
        if self.headers["mcp-session-id"] != str(_Web.session):
            return self._say(404, None)
        name, arguments = request["params"]["name"], request["params"]["arguments"]
        _Web.calls.append(name)
        if name == "fault":
            return self._say(arguments["status"], None)
        if name == "cut" and _Web.calls.count("cut") == 1:
            self.close_connection = True
            return None
        return self._say(200, _result(request, content=[{"type": "text", "text": "here"}]))

    def do_GET(self) -> None:
        self._say(405, None)

    def do_DELETE(self) -> None:
        self._say(200, None)

    def _say(self, status: int, body: Any) -> None:
        data = b"" if body is None else orjson.dumps(body)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("mcp-session-id", str(_Web.session))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def _result(request: dict[str, Any], **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(_Web, "session", 1)
    monkeypatch.setattr(_Web, "calls", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_a_web_server_refuses_has_its_kind_and_headers_reach_it(web: str) -> None:
    async def work(servers: McpServers) -> None:
        kinds = {status: kind(await call(servers, "fault", "web", status=status)) for status in (401, 403, 429, 503)}
        assert kinds == {
            401: "AuthenticationError",
            403: "PermissionError",
            429: "RateLimitError",
            503: "ServiceUnavailable",
        }

    run(work, {"web": ServerConfig(url=web, headers={"Authorization": f"Bearer {SECRET}"})})
    with pytest.raises(NetworkError, match="answers 401 Unauthorized"):
        run(work, {"web": ServerConfig(url=web)})


@pytest.mark.parametrize(("effect", "sent"), [("read", 2), ("delete", 1)])
def test_a_cut_connection_is_tried_again_for_reads_only(web: str, effect: Any, sent: int) -> None:
    async def work(servers: McpServers) -> None:
        response = await servers.answer(tool(provider="web", source_name="cut", effect=effect), {})
        assert response is not None
        assert response.attempts == sent
        assert response.result == ("here" if effect == "read" else None)
        assert response.error is None or "may or may not" in response.error.msg

    run(work, {"web": ServerConfig(url=web, headers={"Authorization": f"Bearer {SECRET}"})})
    assert _Web.calls == ["cut"] * sent


def test_a_session_that_the_server_forgot_is_begun_again_even_for_a_change(web: str) -> None:
    async def work(servers: McpServers) -> None:
        _Web.session += 1
        response = await servers.answer(tool(provider="web", source_name="forget", effect="delete"), {})
        assert response is not None
        assert (response.result, response.attempts) == ("here", 2)

    run(work, {"web": ServerConfig(url=web, headers={"Authorization": f"Bearer {SECRET}"})})
    assert _Web.calls == ["forget"]
