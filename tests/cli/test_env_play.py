"""`paraagent env play`: by hand from a pipe, as the oracle, and what stands in its way."""

from __future__ import annotations

import io
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.agents.person import turn_of
from paraagent.catalog.store import Catalog
from paraagent.config import Profile
from paraagent.files import write_lines
from paraagent.paraact.protocol import CallBlock, SearchBlock, parse
from paraagent.retrieval.index import build_index
from paraagent.task import Task
from paraagent.toolenv.simulator import GroundedSimulator
from pipelines.home import Home
from pipelines.manifest import InputEntry, Manifest, write_manifest
from tests.cli.command import ROOT
from tests.cli.test_tasks_command import run
from tests.cli.test_tasks_command import task as parcel
from tests.endpoint import serving

_IN_TERMINAL = """\
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from paraagent.cli import app
app(prog_name="paraagent")
"""
"""The command line with its standard input as the terminal whose keys are its signals."""
TRACK = 'call shipping_track_parcel {"tracking_number": "278418"}'


def manifest(stage: str, config: dict[str, Any], inputs: dict[str, InputEntry]) -> Manifest:
    plain: dict[str, Any] = {key: {} for key in ("external", "rows", "metrics", "versions", "machine")}
    times: dict[str, Any] = dict.fromkeys(("run", "started", "finished"), "")
    counts: dict[str, Any] = dict.fromkeys(("version", "seed", "attempts", "seconds", "peak_rss_bytes"), 0)
    return Manifest(
        stage=stage,
        fingerprint="abc",
        profile="quick",
        config=config,
        inputs=inputs,
        files=[],
        contracts=[],
        **plain,
        **times,
        **counts,
    )


@pytest.fixture
def task(tiny_catalog: Catalog) -> Task:
    return parcel_task(tiny_catalog)


def parcel_task(tiny_catalog: Catalog) -> Task:
    """A task whose fact is what the parcel's tool says in the task's world."""
    one = parcel(1, "test")
    tool = tiny_catalog.get("shipping_track_parcel")
    assert tool
    city = GroundedSimulator(one.seed, ["278418"]).call(tool, {"tracking_number": "278418"}).result["city"]
    return one.model_copy(update={"atoms": (one.atoms[0].model_copy(update={"value": city}),)})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_catalog_path: Path, task: Task) -> Home:
    return furnished(tmp_path, monkeypatch, tiny_catalog_path, task)


def furnished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_catalog_path: Path, task: Task) -> Home:
    """A home with a small catalog and one task."""
    monkeypatch.setenv("PARAAGENT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    home, env = Home(tmp_path), Profile(name="quick").env.model_dump(mode="json")
    catalog, tasks = home.artifact("catalog", "abc"), home.artifact("tasks", "abc")
    catalog.mkdir(parents=True)
    shutil.copy(tiny_catalog_path, catalog / "catalog.duckdb")
    build_index(tiny_catalog_path, catalog / "index")
    write_manifest(catalog, manifest("catalog", {}, {}))
    write_lines(tasks / "tasks.jsonl", [task.model_dump(mode="json")])
    write_manifest(tasks, manifest("tasks", {"env": env}, {"catalog": InputEntry(fingerprint="abc", digest="")}))
    home.set_current("quick", "catalog", "abc")
    home.set_current("quick", "tasks", "abc")
    return home


def play(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, turns: str, *options: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(turns))
    return run(capsys, "env", "play", "test-00001", *options)


def test_turns_from_a_pipe_are_played_and_scored(
    home: Home, task: Task, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    city = task.atoms[0].value
    turns = f"search parcel: track a parcel\nplan\n\nplan\n{TRACK}\n\nanswer It is in {city}.\n"
    code, out, _ = play(capsys, monkeypatch, turns)
    assert code == 0
    assert task.request in " ".join(out.replace("│", " ").split())
    assert "shipping_track_parcel(tracking_number: string" in out
    assert "plan, initial: shipping_track_parcel" in out
    assert '> shipping_track_parcel {"tracking_number":"278418"}  grounded' in out
    assert f"+ c1.city = {city}" in out
    assert "+2.00  these together" in out
    assert out.strip().endswith("\nsolved")


def test_the_oracle_solves_it_turn_by_turn(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "env", "play", "test-00001", "--policy", "oracle")
    assert code == 0
    assert [f"turn {number}: {kind}" in out for number, kind in ((1, "search"), (2, "call"), (3, "answer"))] == [
        True
    ] * 3
    assert out.strip().endswith("\nsolved")


def test_json_is_the_episode_with_its_rewards(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "env", "play", "test-00001", "--policy", "oracle", "--json")
    assert code == 0
    document = orjson.loads(out)
    assert (document["episode_id"], document["end"]) == ("oracle/paraact/test-00001/0", "answer")
    assert document["rewards"]["trajectory"] == 2.0
    assert "turn 1: search" in err


def test_what_is_wrong_is_told_and_the_player_goes_on(
    home: Home, task: Task, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [
        "serach parcel",
        "search track a parcel",
        'call shipping_track_parcl {}\ncall shipping_track_parcel {"id": 1',
        '<think>raw</think><tool_call>{"name": "shipping_track_parcel", "arguments": {}}</tool_call>',
        TRACK,
        f"answer {task.atoms[0].value}",
    ]
    code, out, err = play(capsys, monkeypatch, "\n\n".join(turns))
    assert code == 0
    assert "`serach` is none of think, plan, search, call, answer" in err
    assert "ToolNotFoundError: there is no tool of this name; did you mean shipping_track_parcel" in out
    assert "x a call that cannot be read" in out
    assert "missing required parameter 'tracking_number' (string)" in out
    assert out.strip().endswith("\nsolved")


def test_what_was_changed_and_what_is_no_turn_is_shown(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = 'call tickets_CreateTicket {"subject": "Late", "priority": "high"}'
    code, out, _ = play(capsys, monkeypatch, f"<b>I would rather talk</b>\n\n{ticket}\n")
    assert code == 0
    assert "\n<b>I would rather talk</b>\n" in out
    assert '(new): {"subject":"Late","priority":"high"}' in out


@pytest.mark.parametrize("turns", ["", "search track a parcel\n\nquit\nanswer x\n"])
def test_whoever_leaves_sees_the_score_so_far(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, turns: str
) -> None:
    code, out, _ = play(capsys, monkeypatch, turns)
    assert code == 0
    assert "left before the end" in out
    assert "-0.50  outcome" in out
    assert out.strip().endswith("\nnot solved")


def read_until(terminal: int, text: bytes, seconds: float = 120) -> bytes:
    """What a terminal shows until `text` stands in it, or until whoever writes there is gone."""
    shown, deadline = b"", time.monotonic() + seconds
    while text not in shown and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65_536)
            except OSError:  # Linux says so of a terminal that nobody holds any more
                break
    return shown


SLOW = ("--set", "env.latency=fixed", "--set", "env.latency_seconds=600", "--set", "env.call_timeout=900")


@pytest.mark.parametrize(
    ("typed", "key"),
    [("", b"\x03"), ("", b"\x04"), (f"{TRACK}\n\n", b"\x03")],
    ids=["Ctrl-C", "Ctrl-D", "Ctrl-C while a call is slow"],
)
def test_one_key_leaves_a_terminal_with_the_score(home: Home, typed: str, key: bytes) -> None:
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _IN_TERMINAL, "env", "play", "test-00001", *SLOW],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(inside)
    try:
        assert b"> " in read_until(terminal, b"\n> ")
        os.write(terminal, typed.encode())
        time.sleep(0.5 if typed else 0)
        os.write(terminal, key)
        shown = read_until(terminal, b"not solved").decode()
        assert "left before the end" in shown
        assert "not solved" in shown
        assert "Traceback" not in shown
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(terminal)


def test_settings_of_the_line_count(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--set", "env.fault_rate=1", "--set", "env.fault_weights={ServiceUnavailable = 1.0}")
    code, out, _ = run(capsys, "env", "play", "test-00001", "--policy", "oracle", *more)
    assert code == 0
    assert "by chance" in out
    assert out.strip().endswith("\nnot solved")


def test_a_result_that_was_left_out_is_marked_as_failed(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = play(capsys, monkeypatch, f"{TRACK}\n\nquit\n", "--set", "env.max_turn_chars=40")
    assert code == 0
    assert "InvalidRequestError: left out" in out
    assert "x shipping_track_parcel" in out
    assert "> shipping_track_parcel" not in out


def test_a_language_model_is_read_the_same_the_second_time(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel = {"tracking_number": "278418", "eta": "2026-03-04", "delivered": False, "city": "Lyon", "status": "late"}
    with serving(orjson.dumps({"response": parcel, "error": None}).decode()) as endpoint:
        line = ("--json", "--set", 'env.backends=["llm"]', "--set", f"env.llm.base_url={endpoint.url}")
        first, again = (
            play(capsys, monkeypatch, f"{TRACK}\n\nquit\n", *line, "--set", "env.llm.model=tiny") for _ in range(2)
        )
        assert len(endpoint.asked) == 1
    assert first == again
    [call] = orjson.loads(first[1])["turns"][0]["events"]
    assert (call["backend"], list(call["result"])) == ("llm", list(parcel))


def test_recordings_that_answer_nothing_are_said(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    write_lines(path, [{"tool": "somebody_elses", "arguments": {}, "response": 1}])
    named = ("--set", f"env.recordings={path}")
    monkeypatch.setenv("COLUMNS", "400")
    _, out, _ = play(capsys, monkeypatch, "", *named)
    assert "nothing reads them: recorded is not among env.backends" in out
    _, out, _ = play(capsys, monkeypatch, "", *named, "--set", "env.backends=recorded,grounded")
    assert f"No row of {path} is about a tool of this catalog" in out
    write_lines(path, [{"tool": name, "arguments": {}, "response": 1} for name in ("x", "Shipping_Track_Parcel")])
    _, out, _ = play(capsys, monkeypatch, "", *named, "--set", "env.backends=recorded,grounded")
    assert "No row of" not in out


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("test-0001",), 2, "There is no task test-0001: did you mean test-00001?"),
        (("test-00001", "--policy", "orakle"), 2, "There is no policy orakle: choose person, oracle, base, sft"),
        (("test-00001", "--policy", "sft"), 1, "There is no sft of the profile quick"),
        (("test-00001", "--policy", "local:/no/where"), 1, "/no/where holds no model"),
        (("test-00001", "--set", "env.fault_rat=1"), 2, "did you mean env.fault_rate?"),
        (
            ("test-00001", "--set", 'env.fault_weights={"NetworkError": 0}'),
            2,
            "env.fault_weights in --set should give a weight above 0 to at least one fault",
        ),
        (("test-00001", "--set", 'env.backends=["llm"]'), 2, "The backend llm has no model: set env.llm.model"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(
    home: Home, capsys: pytest.CaptureFixture[str], line: tuple[str, ...], code: int, said: str
) -> None:
    found, _, err = run(capsys, "env", "play", *line)
    assert found == code
    assert err.startswith("Error: ")
    assert said in err
    assert err.count("\n") == 1


def test_tasks_whose_catalog_is_gone_are_one_sentence(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(home.artifact("catalog", "abc"))
    code, _, err = run(capsys, "env", "play", "test-00001")
    assert code == 1
    assert "The catalog that the tasks are about is gone" in err


def test_shorthand_says_the_same_as_the_turn_grammar() -> None:
    turn = parse(turn_of(["think look", "plan", "search parcel: track it", "search  find the price of a stock"]))
    assert turn.problems == ()
    assert (turn.think, turn.plan) == ("look", '{"capacity_slots":["parcel","find the price"]}')
    assert turn.blocks == (
        SearchBlock("parcel", "track it"),
        SearchBlock("find the price", "find the price of a stock"),
    )
    turn = parse(turn_of(["call a", 'call b {"x": [1, "</tool_call>"]}', "plan"]))
    assert turn.problems == ()
    assert turn.blocks == (CallBlock("a"), CallBlock("b", {"x": [1, "</tool_call>"]}))
    assert turn.plan == (
        '{"available_tools":["a","b"],"execution_flow":[{"step":1,"parallel":["a","b"]}],"dependencies":[]}'
    )
