"""`act`, `eval` and `trace`: what a person asks for, of the simulated world or a real MCP server, and its record."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.cells import cell_len

from paraagent.catalog.store import Catalog
from paraagent.trace import Episode
from pipelines.home import Home
from tests.cli.command import ROOT, SECONDS, start
from tests.cli.test_env_play import _IN_TERMINAL as IN_TERMINAL
from tests.cli.test_env_play import furnished, parcel_task, read_until
from tests.cli.test_tasks_command import run
from tests.endpoint import Hang, Raw, serving

SERVER = """
import asyncio, os, pathlib, signal, sys, time
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("lab")
both = asyncio.Barrier(2)
READS = ToolAnnotations(read_only_hint=True)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))

@server.tool(annotations=READS)
async def measure_heat(sample: str) -> dict[str, float]:
    "Measures the temperature of a sample."
    await both.wait()
    await asyncio.sleep(0.3)
    return {"temperature": 21.5}

@server.tool(annotations=READS)
async def weigh(sample: str) -> dict[str, float]:
    "Reads the weight of a sample."
    await both.wait()
    raise RuntimeError("the scale is broken")

@server.tool(annotations=READS)
async def wait_for_ever(sample: str) -> str:
    "Waits until the sample is dry."
    pathlib.Path(sys.argv[1] + ".waits").touch()
    await asyncio.sleep(600)

@server.tool(annotations=READS)
async def block(sample: str) -> str:
    "Waits for ever, deaf to everything."
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pathlib.Path(sys.argv[1] + ".waits").touch()
    while True:
        time.sleep(600)

@server.tool(annotations=ToolAnnotations(destructive_hint=True))
async def discard(sample: str) -> str:
    "Throws a sample away."
    return "gone"

server.run()
"""
TOGETHER = """\
search measure the temperature of a sample
search read the weight of a sample

plan
call lab_measure_heat {"sample": "a"}
call lab_weigh {"sample": "a"}
call lab_discard {"sample": "a"}

answer It is 21.5 degrees warm.
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_catalog_path: Path, tiny_catalog: Catalog) -> Home:
    return furnished(tmp_path / "home", monkeypatch, tiny_catalog_path, parcel_task(tiny_catalog))


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    (tmp_path / "lab.py").write_text(SERVER)
    lab = {"command": sys.executable, "args": [str(tmp_path / "lab.py"), str(tmp_path / "pid")]}
    path = tmp_path / "servers.json"
    path.write_bytes(orjson.dumps({"mcpServers": {"lab": lab}}))
    return path


def act(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, turns: str, *options: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(turns))
    return run(capsys, "act", "How are the samples?", "--policy", "person", *options)


def kept(home: Home) -> Episode:
    [line] = (home.root / "act" / "episodes.jsonl").read_bytes().splitlines()
    return Episode.model_validate(orjson.loads(line)["row"])


def test_real_calls_overlap_and_one_may_fail(
    home: Home, servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls meet inside the server, which only calls that run together can."""
    code, out, _ = act(capsys, monkeypatch, TOGETHER, "--mcp", str(servers))
    assert code == 0
    assert "… starting lab: a first start may take a minute" in out
    assert "person, paraact, 5 tools of lab" in out
    slow, broken, refused = kept(home).calls
    assert (slow.result, slow.backend) == ({"temperature": 21.5}, "mcp")
    assert broken.error is not None
    assert broken.error.type == "ToolExecutionError"
    assert slow.seconds >= 0.3
    assert slow.started < broken.started + broken.seconds
    assert broken.started < slow.started + slow.seconds
    assert refused.error is not None
    assert refused.error.type == "PermissionError"
    assert "not allowed: there is no terminal to ask at" in out


def test_yes_lets_a_tool_write(
    home: Home, servers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 'call lab_discard {"sample": "a"}\n\nanswer Done.\n'
    code, out, _ = act(capsys, monkeypatch, turns, "--mcp", str(servers), "--yes", "--json")
    assert code == 0
    episode = Episode.model_validate(orjson.loads(out))
    assert [call.result for call in episode.calls] == [{"result": "gone"}]


@pytest.mark.parametrize(("tool", "interrupts"), [("wait_for_ever", 1), ("block", 4)])
def test_interrupts_in_the_middle_of_a_call_keep_the_trace_and_end_the_server(
    home: Home, servers: Path, tmp_path: Path, tool: str, interrupts: int
) -> None:
    turn = (
        "<think>t</think>"
        f'<tool_call>{{"name": "lab_{tool}", "arguments": {{"sample": "a"}}}}</tool_call>'
        '<tool_call>{"name": "lab_discard", "arguments": {"sample": "a"}}</tool_call>'
    )
    with serving(turn) as endpoint:
        process = start(
            home.root,
            *("act", "Wait.", "--policy", "openai:tiny", "--mcp", str(servers), "--yes"),
            OPENAI_BASE_URL=endpoint.url,
        )
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / "pid.waits").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(interrupts):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        out, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, errors
    episode = kept(home)
    assert (episode.end, episode.error) == ("error", "left before the end")
    waiting, quick = episode.calls
    assert waiting.error is not None
    assert waiting.error.msg == "interrupted before an answer came"
    assert quick.result == {"result": "gone"} or quick.error == waiting.error  # it may not have come back yet
    assert f"kept: paraagent trace {episode.episode_id}" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(("typed", "result", "code"), [("y\n", "gone", 0), ("n\n", None, 0), ("\x03", None, 130)])
def test_before_a_change_a_person_is_asked_who_may_say_no_or_leave(
    home: Home, servers: Path, typed: str, result: str | None, code: int
) -> None:
    """One key leaves: nothing goes on reading the terminal."""
    turn = '<think>t</think><tool_call>{"name": "lab_discard", "arguments": {"sample": "a"}}</tool_call>'
    terminal, inside = pty.openpty()
    with serving(turn, "<think>t</think><answer>Done.</answer>") as endpoint:
        words = ["--home", str(home.root), "act", "Clean up.", "--policy", "openai:tiny", "--mcp", str(servers)]
        process = subprocess.Popen(
            [sys.executable, "-c", IN_TERMINAL, *words],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=ROOT,
            env={**os.environ, "OPENAI_BASE_URL": endpoint.url},
            start_new_session=True,
        )
        os.close(inside)
        try:
            assert b"allow it?" in read_until(terminal, b"allow it? [y/N] ")
            os.write(terminal, typed.encode())
            assert b"kept: " in read_until(terminal, b"kept: ")
            assert process.wait(30) == code
        finally:
            process.kill()
            os.close(terminal)
    [call] = kept(home).calls
    assert call.result == (result and {"result": result})
    assert (call.error is None) == (result is not None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "servers.json"),
        (b"{", "servers.json"),
        (b'{"mcpServers": {}}', "servers.json"),
        (b'{"mcpServers": {"a": {"command": "no-such-program"}}}', "no-such-program"),
        (b'{"mcpServers": {"a": {"command": "x", "url": "http://127.0.0.1:1/"}}}', "servers.json"),
    ],
)
def test_a_wrong_file_of_servers_is_one_sentence(
    home: Home,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
    says: str,
) -> None:
    path = tmp_path / "servers.json"
    if content is not None:
        path.write_bytes(content)
    code, _, errors = act(capsys, monkeypatch, "answer x\n", "--mcp", str(path))
    assert code in (1, 2)
    assert errors.startswith("Error: ")
    assert says in errors
    assert errors.count("\n") == 1


def test_the_simulated_world_answers_and_the_trace_can_be_played_again(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 'search parcel: track a parcel\n\ncall shipping_track_parcel {"tracking_number": "7"}\n\nanswer Soon.\n'
    code, out, _ = act(capsys, monkeypatch, turns, "--html", str(tmp_path / "page.html"))
    assert code == 0
    assert "answered in 3 turns, 1 call\n" in out
    assert "How are the samples?" in (tmp_path / "page.html").read_text("utf-8")
    assert [run(capsys, "trace", "open-", *more)[0] for more in ([], ["--raw"], ["--json"])] == [0, 0, 0]
    code, out, _ = run(capsys, "trace", "open-", "--replay")
    assert (code, out) == (0, "the same observations in all 3 turns\n")
    assert "How are the samples?" in run(capsys, "trace")[1]


@pytest.mark.parametrize(
    ("fault", "timeout", "says"),
    [
        (Raw(b"{}", 401), 60, "wants a key: put a right one into $OPENAI_API_KEY"),
        (Hang(), 0.1, "did not answer within 0.1 seconds"),
    ],
)
def test_an_endpoint_that_fails_ends_it_with_one_sentence(
    home: Home,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: Any,
    timeout: float,
    says: str,
) -> None:
    with serving(fault) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        options = ["--set", "agent.retries=0", "--set", f"agent.timeout={float(timeout)}"]
        code, out, _ = run(capsys, "act", "x", "--policy", "openai:tiny", *options)
    assert code == 1
    assert says in out


def test_the_same_request_may_be_asked_again_and_each_time_be_opened(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for number in range(3):
        _, out, _ = act(capsys, monkeypatch, f"answer the {number}th\n")
        names.append(out.splitlines()[-1].removeprefix("kept: paraagent trace "))
    assert names == [names[0], f"{names[0]}-2", f"{names[0]}-3"]
    for number, name in enumerate(names):
        assert f"the {number}th" in run(capsys, "trace", name)[1]


def test_without_an_answer_the_exit_code_says_so(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = act(capsys, monkeypatch, "search a thing\n", "--set", "env.max_turns=1")
    assert code == 1
    assert "no answer: it ran out of turns" in out


@pytest.mark.parametrize("command", [["act", "x", "--policy", "person"], ["trace"]])
def test_a_page_goes_into_a_folder_that_is_there(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert f"{tmp_path} is a folder" in run(capsys, *command, "--html", str(tmp_path))[2]
    assert "There is no folder" in run(capsys, *command, "--html", str(tmp_path / "a" / "b.html"))[2]
    assert not (tmp_path / "a").exists()


def test_what_breaks_in_a_policy_ends_the_episode_and_the_trace_is_kept(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object) -> str:
        raise ValueError("odd")

    monkeypatch.setattr("paraagent.agents.person.PersonPolicy._turn", odd)
    code, out, _ = act(capsys, monkeypatch, "")
    assert code == 1
    assert "no answer: ValueError: odd (0 turns, 0 calls)" in out
    assert kept(home).end == "error"


def test_what_cannot_be_asked_for_is_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (["act", " "], "The request is empty"),
        (["act", "x", "--policy", "oracle"], "needs a task with a known solution"),
        (["act", "x", "--policy", "nobody"], "There is no policy nobody"),
        (["act", "x", "--policy", "person", "--paradigm", "cot"], "There is no paradigm cot"),
        (["act", "x", "--policy", "openai:"], "--policy openai: names no model"),
        (["eval", "--policy", "oracle", "--benchmark", "x"], "There is no benchmark x"),
        (["eval", "--policy", "oracle", "--policy", "person"], "A person is not evaluated"),
        (["trace", "nothing"], "There are no episodes"),
        (["trace", "--replay"], "--replay needs the id of an episode"),
        (["trace", "--raw"], "--raw needs the id of an episode"),
    ):
        code, _, errors = run(capsys, *words)
        assert code in (1, 2)
        assert says in errors


def test_a_policy_is_evaluated_under_every_paradigm_and_what_is_done_is_kept(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paradigms = [word for name in ("paraact", "react-ete", "react-eae") for word in ("--paradigm", name)]
    code, out, _ = run(capsys, "eval", "--policy", "oracle", *paradigms, "--json")
    assert code == 0
    document = orjson.loads(out)
    assert {name: each["solved"] for name, each in document["success"].items()} == {
        "oracle": 1,
        "oracle react-ete": 1,
        "oracle react-eae": 1,
    }
    again = orjson.loads(run(capsys, "eval", "--policy", "oracle", *paradigms, "--json")[1])
    assert [system["seconds"] for system in again["systems"]] == [None, None, None]
    assert again["success"] == document["success"]
    code, out, _ = run(capsys, "trace", "react-ete", "--replay")
    assert (code, out) == (0, "the same observations in all 2 turns\n")
    code, out, _ = run(capsys, "trace", "--to", str(tmp_path / "t.parquet"), "--html", str(tmp_path / "t.html"))
    assert code == 0
    assert run(capsys, "trace", "--file", str(tmp_path / "t.parquet"), "-n", "2")[0] == 0
    (tmp_path / "t.jsonl").write_text("\nhalf\n")
    code, _, errors = run(capsys, "trace", "--file", str(tmp_path / "t.jsonl"))
    assert code == 2
    assert "1 line is no episode; the first is 2 (" in errors
    code, _, errors = run(capsys, "trace", "oracle")[0:3]
    assert code == 2
    assert "3 episodes have oracle in their id" in errors


def test_one_cause_of_all_failures_is_the_sentence_and_a_refused_key_is_asked_once(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Raw(b"{}", 401)) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        code, _, errors = run(capsys, "eval", "--policy", "openai:tiny")
        assert len(endpoint.asked) == 1
    assert code == 1
    assert errors.splitlines()[-1].startswith("Error: The model tiny at http://127.0.0.1")
    assert "wants a key: put a right one into $OPENAI_API_KEY (every task of openai:tiny, paraact" in errors


@pytest.mark.parametrize("columns", ["80", "120"])
def test_tables_keep_their_columns_in_a_narrow_terminal(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    name = f"openai:{'organisation/' * 8}model-7b"
    with serving("<think>t</think><answer>Krakow</answer>") as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        code, out, _ = run(capsys, "eval", "--policy", name, "--paradigm", "react-eae")
        assert run(capsys, "act", "[b]何が遅い？" * 20, "--policy", name)[0] == 0
    assert code == 0
    _, head, row, *_ = out.splitlines()
    assert " ".join(head.split()) == "policy paradigm solved interval turns a turn found read written time"
    assert "…" in row.split()[0]
    assert len(row.split()) == 11
    assert max(map(len, (head, row))) <= int(columns)
    head, asked, row = run(capsys, "trace")[1].splitlines()
    assert head.split() == ["episode", "ended", "turns", "calls", "request"]
    assert "…" in row.split()[0]
    assert " turn limit " in row
    assert "answer         1     0 [b]何" in asked
    assert max(map(cell_len, (head, asked, row))) <= int(columns)


def test_what_a_model_says_cannot_turn_the_terminal(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("answer a\u202eb\x1b[2Jc\n"))
    code, out, _ = run(capsys, "act", "x\u2066y", "--policy", "person")
    assert code == 0
    assert "ab[2Jc" in out
    shown = out + run(capsys, "trace")[1] + run(capsys, "trace", "person")[1]
    assert not set(shown) & set("\u202e\u2066\x1b")
