"""Backends in layers: recorded calls, the grounded world, a language model behind a real endpoint."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from paraagent.catalog.store import Catalog
from paraagent.chat import LlmError
from paraagent.config import EnvConfig
from paraagent.errors import UsageError
from paraagent.files import write_lines
from paraagent.message import Completion
from paraagent.paraact.observation import read_responses
from paraagent.paraact.protocol import CallBlock, ParsedTurn, render
from paraagent.retrieval.index import ToolIndex
from paraagent.toolenv.backends import Backends
from paraagent.toolenv.env import ToolEnv
from paraagent.toolenv.recorded import recording_hashes
from paraagent.trace import Call
from tests.endpoint import Answer, Hang, Raw, serving
from tests.toolenv.interfaces import tool
from tests.toolenv.test_env import TASK

Play = Callable[..., list[Call]]
ORDER = {"order_id": "ord_1", "customer_name": "Ada", "total": 12.5, "currency": "EUR", "status": "open"}
ROW = {"tool": "orders_get_order", "arguments": {"order_id": "ord_1"}, "response": ORDER}


@pytest.fixture
def play(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Play:
    """Plays calls, each in a turn of its own, in an environment of these settings."""

    def run(config: EnvConfig, *calls: tuple[str, dict[str, Any]], cache: Path | None = None) -> list[Call]:
        env = ToolEnv(tiny_catalog, tiny_index, config, backends=Backends.open(config, cache))

        async def episode() -> list[Call]:
            env.reset(TASK, 1)
            for name, arguments in calls:
                step = await env.step(Completion(render(ParsedTurn("t", None, (CallBlock(name, arguments),)))))
                assert len(read_responses(step.observation)) == 1
            await env.step(Completion("<think>t</think><answer>end</answer>"))
            return list(env.episode("test").calls)

        return asyncio.run(episode())

    return run


def recorded(path: Path, rows: Sequence[Any], *backends: str) -> EnvConfig:
    write_lines(path, rows)
    return EnvConfig(backends=list(backends) or ["recorded", "grounded"], recordings=[str(path)])


def outcome(call: Call) -> tuple[str, str | None, Any]:
    return call.backend, call.error and call.error.type, call.result


def test_what_was_recorded_is_answered_and_the_rest_comes_from_the_next_layer(play: Play, tmp_path: Path) -> None:
    config = recorded(tmp_path / "calls.jsonl", [ROW])
    first, second = play(config, ("orders_get_order", {"order_id": "ord_1"}), ("orders_get_order", {"order_id": "x"}))
    assert outcome(first) == ("recorded", None, ORDER)
    assert outcome(second) == ("grounded", "NotFoundError", None)


def test_an_id_that_a_recording_showed_can_be_looked_up_in_the_world(play: Play, tmp_path: Path) -> None:
    config = recorded(tmp_path / "calls.jsonl", [{**ROW, "response": {**ORDER, "order_id": "ord_77"}}])
    seen = [("orders_get_order", {"order_id": "ord_1"}), ("orders_get_order", {"order_id": "ord_77"})]
    assert [outcome(call)[:2] for call in play(config, *seen)] == [("recorded", None), ("grounded", None)]
    assert outcome(play(config, seen[1])[0])[:2] == ("grounded", "NotFoundError")


def test_recorded_errors_are_errors_of_the_tool(play: Play, tmp_path: Path) -> None:
    error = {"type": "PermissionError", "msg": "not yours"}
    config = recorded(tmp_path / "calls.jsonl", [{**ROW, "response": None, "error": error}])
    [call] = play(config, ("orders_get_order", {"order_id": "ord_1"}))
    assert call.error
    assert call.error.model_dump() == error
    assert (call.backend, call.injected) == ("recorded", False)


def test_without_a_layer_that_answers_a_call_fails(play: Play, tmp_path: Path) -> None:
    config = recorded(tmp_path / "calls.jsonl", [ROW], "recorded")
    [call] = play(config, ("orders_get_order", {"order_id": "ord_2"}))
    assert outcome(call) == ("", "ToolExecutionError", None)


def test_numbers_written_as_strings_match_and_nothing_else_does(tmp_path: Path) -> None:
    rows = [
        {"tool": "calendar_events_get", "arguments": {"id": 5, "deep": [{"n": 2.0}]}, "response": 1},
        {"tool": "calendar_events_get", "arguments": {"id": "5", "deep": [{"n": "2"}]}, "response": 2},
        {"tool": "calendar_events_get", "arguments": {"id": True}, "response": 3},
        {"tool": "calendar_events_get", "arguments": {"id": 5, "deep": [{"n": 2.0}]}, "response": 4},
    ]
    backend = Backends.open(recorded(tmp_path / "calls.jsonl", rows)).recorded
    assert backend

    def answer(**arguments: Any) -> Any:
        response = asyncio.run(backend.answer(tool(), arguments))
        return response and response.result

    assert answer(deep=[{"n": 2.0}], id=5) == 1
    assert answer(id="5", deep=[{"n": "2"}]) == 2
    assert answer(id="5", deep=[{"n": 2}]) == 1
    assert answer(id=True) == 3
    assert [answer(id="true"), answer(id=1), answer(id="05", deep=[{"n": 2}]), answer(id=5)] == [None] * 4


def test_parquet_holds_the_same_as_json_lines(play: Play, tmp_path: Path) -> None:
    columns = {
        "tool": ["orders_get_order", "orders_get_order"],
        "arguments": ['{"order_id":"ord_1"}', '{"order_id":"ord_2"}'],
        "response": [orjson.dumps(ORDER).decode(), None],
        "error": [None, '{"type":"NotFoundError","msg":"gone"}'],
    }
    pq.write_table(pa.table(columns), tmp_path / "calls.parquet")
    config = EnvConfig(backends=["recorded"], recordings=[str(tmp_path / "calls.parquet")])
    found, gone = play(config, *[("orders_get_order", {"order_id": f"ord_{number}"}) for number in (1, 2)])
    assert outcome(found) == ("recorded", None, ORDER)
    assert outcome(gone) == ("recorded", "NotFoundError", None)


SHAPE = 'a row looks like {"tool": "NAME", "arguments": {…}, "response": …},'
LINE = orjson.dumps(ROW).decode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{LINE}\n\n{LINE[:40]}", "line 3 is not JSON (unexpected end of data), which seems to be torn off"),
        (f"{LINE[:40]}\n{LINE}\n", "line 1 is not JSON (unexpected end of data)"),
        (LINE.replace("12.5", "NaN"), "line 1 is not JSON"),
        ("[1]\n", f"line 1: the row should be an object; {SHAPE}"),
        (LINE.replace('"tool"', '"name"'), f"line 1: `tool` is missing; {SHAPE}"),
        (LINE.replace('"orders_get_order"', "7"), f"line 1: `tool` should be a text; {SHAPE}"),
        ('{"tool":"x","response":1}', f"line 1: `arguments` is missing; {SHAPE}"),
        (LINE.replace('{"order_id":"ord_1"}', '"ord_1"'), f"line 1: `arguments` should be an object; {SHAPE}"),
        (LINE.replace('"response"', '"responses"'), f"line 1: `responses` has no place in it; {SHAPE}"),
        ('{"tool":"x","arguments":{}}', f"line 1: neither a response nor an error is in it; {SHAPE}"),
        ('{"tool":"x","arguments":{},"error":"gone"}', f"line 1: `error` should be an object; {SHAPE}"),
        ('{"tool":"x","arguments":{},"error":{"type":"KeyError"}}', f"line 1: `error.msg` is missing; {SHAPE}"),
        (
            f'{LINE[:-1]},"error":{{"type":"NotFoundError","msg":"m"}}}}',
            f"line 1: both a response and an error are in it; {SHAPE}",
        ),
        ('{"tool":"x","arguments":{},"error":{"type":"KeyError","msg":"m"}}', "line 1: KeyError is no error of a tool"),
        ('{"tool":"x","arguments":{},"response":' + "[" * 300 + "]" * 300 + "}", "line 1: nested too deep"),
        ("\x00\x01", "line 1 is not JSON"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_line_that_cannot_be_read_is_one_sentence_with_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        Backends.open(EnvConfig(backends=["recorded"], recordings=[str(path)]))
    assert str(caught.value).startswith(f"{path}, {said}")
    assert "\n" not in str(caught.value)


def test_a_parquet_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "calls.parquet"
    config = EnvConfig(backends=["recorded"], recordings=[str(path)])
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(UsageError, match="cannot be read as Parquet"):
        Backends.open(config)
    pq.write_table(pa.table({"tool": ["a", "b"], "arguments": ["{}", "{"], "response": ["1", "2"]}), path)
    with pytest.raises(UsageError, match=r"row 2 holds a text that is not JSON"):
        Backends.open(config)
    pq.write_table(pa.table({"name": ["a"]}), path)
    with pytest.raises(UsageError, match=r"row 1: `tool` is missing"):
        Backends.open(config)
    pq.write_table(pa.table({"tool": pa.array([], "string"), "arguments": pa.array([], "string")}), path)
    with pytest.raises(UsageError, match="holds no recorded call"):
        Backends.open(config)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_a_call_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        Backends.open(EnvConfig(backends=["recorded"], recordings=[str(path)]))
    assert str(caught.value).startswith(f"{path} holds no recorded call: {SHAPE}")


def test_a_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{tmp_path} is a folder: env.recordings names the files in it"):
        Backends.open(EnvConfig(backends=["recorded"], recordings=[str(tmp_path)]))


def test_recordings_that_answer_nothing_are_said(tmp_path: Path, tiny_catalog: Catalog) -> None:
    ours, strange = recorded(tmp_path / "a.jsonl", [ROW]), recorded(tmp_path / "b.jsonl", [{**ROW, "tool": "x"}])
    mixed = recorded(tmp_path / "c.jsonl", [{**ROW, "tool": "x"}, {**ROW, "tool": " Orders_get_order"}])
    both = EnvConfig(backends=["recorded"], recordings=[*ours.recordings, *strange.recordings, *mixed.recordings])
    [note] = Backends.open(both).notes(both, tiny_catalog)
    assert note.startswith(f"No row of {tmp_path / 'b.jsonl'} is about a tool of this catalog")
    unread = EnvConfig(recordings=ours.recordings)
    [note] = Backends.open(unread).notes(unread, tiny_catalog)
    assert "recorded is not among env.backends" in note
    assert Backends.open(ours).notes(ours, tiny_catalog) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backends": ["recorded"]}, "name files in env.recordings"),
        ({"backends": ["recorded"], "recordings": ["/no/such.jsonl"]}, "There is no file /no/such.jsonl"),
        ({"backends": ["llm"]}, "set env.llm.model"),
    ],
)
def test_a_backend_without_what_it_needs_is_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Backends.open(EnvConfig(**settings))


@pytest.mark.parametrize("backends", [[], ["llm", "grounded"], ["grounded", "grounded"], ["simulated"]])
def test_an_order_that_makes_no_sense_is_no_setting(backends: list[Any]) -> None:
    with pytest.raises(ValidationError):
        EnvConfig(backends=backends)


def test_a_changed_recording_counts_as_another_input(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    write_lines(path, [ROW])
    first = recording_hashes([str(path)])
    write_lines(path, [ROW, ROW])
    assert recording_hashes([str(path)]) != first


def said(response: Any, error: Any = None) -> str:
    return orjson.dumps({"error": error, "response": response} if error is None else {"error": error}).decode()


def test_a_model_answers_what_fits_the_interface(play: Play, tmp_path: Path) -> None:
    call = ("orders_get_order", {"order_id": "ord_1"})
    with serving(said({**ORDER, "total": -1}), said(ORDER)) as endpoint:
        config = EnvConfig(backends=["llm"], llm=endpoint.config())
        [first] = play(config, call, cache=tmp_path)
        [again] = play(config, call, cache=tmp_path)
    assert outcome(first) == outcome(again) == ("llm", None, ORDER)
    assert len(endpoint.asked) == 2
    prompt, correction = (endpoint.asked[turn]["messages"][-1]["content"] for turn in (0, 1))
    assert '"name":"orders_get_order"' in prompt
    assert '{"order_id":"ord_1"}' in prompt
    assert "at `response.total`: -1 is less than the minimum of 0" in correction


@pytest.mark.parametrize("empty", ["{}", '{"error": null}', '{"error": null, "response": {}}', '{"response": {}}'])
def test_an_empty_success_is_none(play: Play, empty: str) -> None:
    with serving(empty) as endpoint:
        [call] = play(EnvConfig(backends=["llm"], llm=endpoint.config()), ("orders_get_order", {"order_id": "ord_1"}))
    assert outcome(call) == ("llm", "ToolExecutionError", None)
    assert len(endpoint.asked) == 2


def test_a_model_may_refuse_as_a_service_does(play: Play) -> None:
    with serving(said(None, {"type": "StateConflictError", "msg": "already shipped"})) as endpoint:
        [call] = play(EnvConfig(backends=["llm"], llm=endpoint.config()), ("orders_get_order", {"order_id": "ord_1"}))
    assert call.error
    assert (call.error.type, call.error.msg, call.backend) == ("StateConflictError", "already shipped", "llm")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("I cannot help with that.", "ToolExecutionError"),
        ('{"error": null, "response": {"order_', "ToolExecutionError"),
        ("<html>Sign in</html>", "ToolExecutionError"),
        (Raw(b"<html>Sign in</html>", content_type="text/html"), "ToolExecutionError"),
        (Raw(b"{}", 400), "ToolExecutionError"),
        (Raw(b"{}", 429), "RateLimitError"),
        (Raw(b"{}", 500), "ServiceUnavailable"),
        (Hang(), "TimeoutError"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_what_an_endpoint_does_wrong_is_an_error_of_the_tool(play: Play, answer: Answer, kind: str) -> None:
    with serving(answer) as endpoint:
        llm = endpoint.config(timeout=0.2 if isinstance(answer, Hang) else 20.0)
        [call] = play(EnvConfig(backends=["llm"], llm=llm), ("orders_get_order", {"order_id": "ord_1"}))
    assert outcome(call) == ("llm", kind, None)
    assert call.error
    assert endpoint.url not in call.error.msg


def test_nobody_at_the_endpoint_is_a_network_error_and_a_person_is_told_once(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    with serving("") as endpoint:
        config = EnvConfig(backends=["llm"], llm=endpoint.config())
    calls = play(config, *[("orders_get_order", {"order_id": "ord_1"})] * 2)
    assert [outcome(call) for call in calls] == [("llm", "NetworkError", None)] * 2
    [record] = caplog.records
    assert f"The model tiny at {endpoint.url} cannot be reached: start its server" in record.getMessage()


def test_a_wrong_key_is_for_a_person_and_not_for_the_model(play: Play) -> None:
    with serving(Raw(b"{}", 401)) as endpoint, pytest.raises(LlmError, match="wants a key"):
        play(EnvConfig(backends=["llm"], llm=endpoint.config()), ("orders_get_order", {"order_id": "ord_1"}))


def test_calls_of_one_turn_are_asked_together(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    """Three questions meet at the endpoint, which answers none before the last has come."""
    meet = threading.Barrier(3)

    def answer(messages: list[dict[str, Any]]) -> str:
        meet.wait(30)
        return said(ORDER)

    blocks = tuple(CallBlock("orders_get_order", {"order_id": f"ord_{number}"}) for number in range(3))
    with serving(answer) as endpoint:
        env = ToolEnv(tiny_catalog, tiny_index, EnvConfig(backends=["llm"], llm=endpoint.config()))
        env.reset(TASK, 1)
        step = asyncio.run(env.step(Completion(render(ParsedTurn("t", None, blocks)))))
    assert [response["result"] for response in read_responses(step.observation)] == [ORDER] * 3
