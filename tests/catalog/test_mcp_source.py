"""Live MCP servers as sources: real ones over both transports, and ones that misbehave."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.catalog import mcp_client
from paraagent.catalog.crawl import fetch
from paraagent.catalog.spec import parse_spec
from paraagent.errors import NetworkError, ParaAgentError, RunError, UsageError
from paraagent.progress import Quiet
from tests.mcp_web import serving

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("orchard", version="2.1")

class Tree(BaseModel):
    id: str
    height: float
    parent: "Tree | None" = None

@server.tool(title="Look at a tree", annotations=ToolAnnotations(read_only_hint=True))
def plant_view(tree_id: str) -> Tree:
    "Looks at one tree of the orchard."

@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def fell(tree_id: str, reason: str | None = None) -> None:
    "Cuts a tree down."

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server.run("streamable-http", host="127.0.0.1", port=port) if port else server.run()
"""
RAW = """
import json, os, subprocess, sys, time
def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        answer(request, {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                         "serverInfo": {"name": "raw", "version": "1"}})
    elif request.get("method") == "tools/list":
        tool = {"name": "poke", "description": "Pokes a thing once.",
                "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}}}
        BEHAVIOUR
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                          "error": {"code": -32601, "message": "no"}}), flush=True)
"""


def _command(path: Path, text: str) -> str:
    path.write_text(text)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def _raw(tmp_path: Path, behaviour: str) -> str:
    return "mcp:" + _command(tmp_path / "raw.py", RAW.replace("BEHAVIOUR", behaviour))


def _check_orchard(built: Any) -> None:
    view = built.tool("orchard_plant_view")
    assert (view["title"], view["effect"], view["service"]) == ("Look at a tree", "read", "orchard")
    assert view["parameters"]["required"] == ["tree_id"]
    assert view["returns"]["properties"]["parent"]["properties"]["height"]["type"] == "number"
    fell = built.tool("orchard_fell")
    assert fell["effect"] in ("update", "delete")
    assert fell["parameters"]["required"] == ["tree_id"]


def test_a_server_over_stdio_brings_its_tools_and_its_snapshot_is_enough_afterwards(tmp_path: Path, build: Any) -> None:
    spec = "mcp:" + _command(tmp_path / "orchard.py", SERVER)
    built = build([spec])
    _check_orchard(built)
    (tmp_path / "orchard.py").unlink()
    assert build([spec]).rows("SELECT * FROM tools") == built.rows("SELECT * FROM tools")
    assert {row["source"] for row in built.rows("SELECT source FROM tools")} == {
        f"mcp:{Path(sys.executable).name} orchard.py"
    }


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "web.py").write_text(SERVER)
    with serving(tmp_path / "web.py") as where:
        yield where


def test_a_server_over_http_brings_the_same(address: str, build: Any) -> None:
    _check_orchard(build([f"mcp:{address}"]))


def test_reading_again_takes_a_new_snapshot(tmp_path: Path) -> None:
    spec = parse_spec("mcp:" + _command(tmp_path / "orchard.py", SERVER))
    first = fetch(spec, tmp_path, Quiet())
    _command(tmp_path / "orchard.py", SERVER.replace("def fell(", "def chop("))
    assert fetch(spec, tmp_path, Quiet()) == first
    assert fetch(spec, tmp_path, Quiet(), refresh=True).sha256 != first.sha256
    assert {tool["name"] for tool in orjson.loads(first.path.read_bytes())["tools"]} == {"plant_view", "chop"}


def test_a_tool_listed_twice_comes_once_and_the_copy_is_quarantined(tmp_path: Path, build: Any) -> None:
    built = build([_raw(tmp_path, 'answer(request, {"tools": [tool, dict(tool, description="Another one."), tool]})')])
    assert built.tool("raw_poke")["description"] == "Pokes a thing once."
    rows = built.rows("SELECT source_name, reason FROM quarantine")
    assert rows == [{"source_name": "poke", "reason": "duplicate"}] * 2


def test_pages_are_followed_to_their_end(tmp_path: Path, build: Any) -> None:
    behaviour = (
        'cursor = (request.get("params") or {}).get("cursor"); page = {"tools": [dict(tool, name=cursor or "first")]};'
        ' answer(request, page if cursor else dict(page, nextCursor="second"))'
    )
    rows = build([_raw(tmp_path, behaviour)]).rows("SELECT source_name FROM tools ORDER BY 1")
    assert [row["source_name"] for row in rows] == ["first", "second"]


@pytest.mark.parametrize(
    ("behaviour", "error", "says"),
    [
        ("sys.exit(3)", NetworkError, "did not list its tools .*check that it starts and answers"),
        ("time.sleep(600)", NetworkError, "did not answer within 3 seconds"),
        ('answer(request, {"tools": [], "nextCursor": "more"})', RunError, "does not end its list of tools"),
        ('answer(request, {"tools": [dict(tool, description="x" * 9_000_000)]})', RunError, "sent more than"),
        ('sys.stdout.write("x" * 9_000_000); sys.stdout.flush(); time.sleep(600)', RunError, "sent more than"),
        ('answer(request, {"tools": [{"name": 7}]})', NetworkError, "did not list its tools"),
        ('answer(request, {"tools": [dict(tool, name=str(i)) for i in range(6000)]})', RunError, "more than 5,000"),
    ],
)
def test_a_server_that_misbehaves_is_one_sentence_and_its_processes_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, error: type[ParaAgentError], says: str
) -> None:
    monkeypatch.setattr(mcp_client, "SECONDS", 3.0)
    monkeypatch.setattr(mcp_client, "MAX_BYTES", 8_000_000)
    pids = tmp_path / "pids"
    child = 'child = subprocess.Popen(["sleep", "600"])'
    note = f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')"
    with pytest.raises(error, match=says) as caught:
        fetch(parse_spec(_raw(tmp_path, f"{child}; {note}; {behaviour}")), tmp_path / "downloads", Quiet())
    assert "\n" not in str(caught.value)
    for pid in map(int, pids.read_text().split()):
        assert _ended(pid), f"process {pid} is still there"
    assert not list(tmp_path.glob("downloads/*"))


def _ended(pid: int) -> bool:
    """Gone, or dead and waiting for whoever adopted it."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_a_command_that_does_not_exist_is_wrong_usage_and_no_argument_is_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no command 'no-such-server'") as caught:
        fetch(parse_spec("mcp:no-such-server --depth hunter2"), tmp_path, Quiet())
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be split") as caught:
        fetch(parse_spec("mcp:serve 'half"), tmp_path, Quiet())


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("mcp:npx -y @scope/server --key $KEY", "mcp:npx @scope/server"),
        ("mcp:/usr/bin/python3 -m mcp_server_time", "mcp:python3 mcp_server_time"),
        ("mcp:https://me:$WORD@mcp.example:8443/v1/mcp?key=$KEY", "mcp:mcp.example:8443/v1/mcp"),
    ],
)
def test_a_source_is_named_without_places_and_secrets(text: str, source: str) -> None:
    assert parse_spec(text).source == source


@pytest.mark.parametrize(
    "text",
    [
        "mcp:serve --token hunter2",
        "mcp:serve --api-key=hunter2",
        "mcp:env API_KEY=hunter2 serve",
        "mcp:https://me:hunter2@mcp.example/mcp",
        "mcp:https://mcp.example/mcp?api_key=hunter2",
        "openapi:https://mcp.example/spec.json?token=hunter2",
    ],
)
def test_a_secret_in_a_spec_is_refused_before_anything_writes_it(text: str) -> None:
    with pytest.raises(UsageError, match=r"looks like a secret.*environment variable") as caught:
        parse_spec(text)
    assert "hunter2" not in str(caught.value)


def test_a_variable_stands_for_its_value_only_where_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"mcp:env API_KEY=$TOKEN {shlex.quote(sys.executable)} $ORCHARD"
    _command(tmp_path / "orchard.py", SERVER)
    monkeypatch.setenv("ORCHARD", str(tmp_path / "orchard.py"))
    with pytest.raises(UsageError, match="TOKEN, which the source names, is not set"):
        fetch(parse_spec(text), tmp_path, Quiet())
    monkeypatch.setenv("TOKEN", "hunter2")
    archive = fetch(parse_spec(text), tmp_path, Quiet())
    assert archive.spec.text == text
    assert b"hunter2" not in archive.path.read_bytes()


def test_nothing_at_an_address_is_a_network_error(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="did not list its tools"):
        fetch(parse_spec("mcp:http://127.0.0.1:9/mcp"), tmp_path, Quiet())
