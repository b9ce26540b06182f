"""The `mcpServers` file: what it may hold, what is wrong with it in one sentence, and that secrets stay hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paraagent.errors import UsageError
from paraagent.toolenv.mcp_config import ServerConfig, read_servers


def _file(tmp_path: Path, servers: Any) -> Path:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_both_kinds_of_servers_are_read_and_what_other_clients_add_is_ignored(tmp_path: Path) -> None:
    entry = {"command": "serve", "args": ["--fast"], "env": {"MODE": "x"}, "cwd": str(tmp_path), "autoApprove": ["a"]}
    web = {"url": "https://mcp.example/mcp", "headers": {"X-Team": "blue"}, "type": "streamable-http"}
    servers = read_servers(_file(tmp_path, {"files": entry, "web": web, "off": {"disabled": True, "command": 7}}))
    assert list(servers) == ["files", "web"]
    files, address = servers["files"].endpoint(), servers["web"].endpoint()
    assert (files.command, files.env, files.cwd) == (("serve", "--fast"), {"MODE": "x"}, str(tmp_path))
    assert (address.url, address.headers) == (web["url"], web["headers"])


def test_a_variable_stands_for_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "garden")
    entry = {"command": "serve", "args": ["$PLACE/a", "${PLACE}s", "${NOWHERE:-shed}", "5$"]}
    assert read_servers(_file(tmp_path, {"a": entry}))["a"].args == ("garden/a", "gardens", "shed", "5$")


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ({"a": {"command": "serve", "env": {"KEY": "${NOT_SET_ANYWHERE}"}}}, "a.env.KEY names .* NOT_SET_ANYWHERE"),
        ({"a": {}}, "mcpServers.a should have either a command or a url"),
        ({"a": {"command": "serve", "url": "https://mcp.example"}}, "should have either"),
        ({"a": "serve"}, "mcpServers.a should be an object"),
        ({"a": {"command": ["serve"]}}, r"mcpServers.a.command should be a valid string"),
        ({"a": {"command": "serve", "args": "fast"}}, r"mcpServers.a.args should be a valid list"),
        ({"a": {"command": "serve", "args": ["x", 7]}}, r"mcpServers.a.args.1 should be a valid string"),
        ({"a": {"command": "serve", "args": ["hunter2\0"]}}, r"a.args.0 holds a character"),
        ({"a": {"command": "serve", "env": {"PORT": 80}}}, r"a.env.PORT should be a valid string"),
        ({"a": {"command": "serve", "env": {"A=B": "hunter2"}}}, r"a.env: the name of a variable"),
        ({"a": {"command": "serve", "cwd": "/no/such/folder"}}, r"a.cwd: there is no such folder"),
        ({"a": {"command": "serve", "type": "sse"}}, r"a.type: the old SSE transport is not supported"),
        ({"a": {"command": "serve", "type": "http"}}, r"a has the type http, which needs a url"),
        ({"a": {"command": "serve", "type": "carrier-pigeon"}}, r"a.type should be 'stdio' or 'http'"),
        ({"a": {"url": "ftp://me:hunter2@mcp.example"}}, r"a.url should be http\(s\)"),
        ({"a": {"url": "http://[hunter2/mcp"}}, r"a.url"),
        ({"a": {"url": "https://mcp.example", "headers": {"X": "hunter2\n"}}}, "a.headers: names and values"),
        ({"": {"command": "serve"}}, "a name in mcpServers should have"),
        ({"x" * 65: {"command": "serve"}}, "a name in mcpServers should have"),
        ({}, "names no server in mcpServers"),
        ({"a": {"command": "serve", "disabled": True}}, "names no server that is not disabled"),
        ([], "has no object mcpServers"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path: Path, servers: Any, says: str) -> None:
    path = _file(tmp_path, servers)
    with pytest.raises(UsageError, match=says) as caught:
        read_servers(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"mcpServers": {\n"a": hunter2}}', "not valid JSON at line 2, column 6"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "gives 'a' twice"),
        ("[" * 100_000, "is no JSON file"),
        ("[]", "has no object mcpServers"),
    ],
)
def test_a_file_that_is_no_such_file_is_wrong_usage(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as caught:
        read_servers(path)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="Cannot read"):
        read_servers(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UsageError, match="is no JSON file"):
        read_servers(path)


def test_no_representation_shows_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-token")
    entry = {"command": "serve", "args": ["--token", "hunter2-word", "$MY_TOKEN"], "env": {"API_KEY": "hunter2-key"}}
    config = read_servers(_file(tmp_path, {"a": entry}))["a"]
    assert "hunter2" not in f"{config!r} {config} {config.endpoint()!r}"
    assert set(config.endpoint().secrets) == {"hunter2-word", "hunter2-token", "hunter2-key"}


def test_the_secrets_of_an_address_are_known() -> None:
    config = ServerConfig(
        url="https://me:hunter2-word@mcp.example/mcp?api_key=hunter2-key&team=blue",
        headers={"Authorization": "Bearer hunter2-token", "X-Team": "orange"},
    )
    assert set(config.endpoint().secrets) == {
        "hunter2-word",
        "hunter2-key",
        "hunter2-token",
        "Bearer hunter2-token",
    }
    assert "hunter2" not in repr(config)
