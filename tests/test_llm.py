"""The client of OpenAI-compatible endpoints, against real servers: one that works, and every kind that does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from paraagent.chat import LlmError
from paraagent.config import LlmConfig
from paraagent.errors import RunError, UsageError
from paraagent.llm import LlmClient
from paraagent.message import Message
from paraagent.progress import Quiet
from tests.endpoint import Answer, Drop, Endpoint, Hang, Raw, completion, serving

ASKED: list[Message] = [{"role": "user", "content": "Where is parcel 7?"}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

TALKATIVE = {"frequency_penalty": 2.0}
"""Without it the tiny model says the last token for ever."""


@pytest.fixture(scope="module")
def transformers_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """`transformers serve` with a tiny model: the server that people have at hand. Yields its URL and model."""
    from paraagent.training.pretrained import prepare_model

    folder = tmp_path_factory.mktemp("served")
    prepare_model("random:tiny", folder, folder / "model", seed=1, progress=Quiet())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model, command = str(folder / "model"), [str(Path(sys.executable).parent / "transformers"), "serve"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, model, "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 120
            while not _healthy(f"http://127.0.0.1:{port}/health"):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1", model
        finally:
            process.terminate()
            process.wait(30)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def ask(client: LlmClient, **parameters: Any) -> str:
    return asyncio.run(client.ask(ASKED, **parameters))


def ask_json(client: LlmClient, **parameters: Any) -> Any:
    return asyncio.run(client.ask_json(ASKED, CITY, **parameters))


def test_a_real_server_answers_and_what_it_said_is_kept(transformers_url: tuple[str, str], tmp_path: Path) -> None:
    url, model = transformers_url
    config = LlmConfig(base_url=url, model=model, max_tokens=12)
    said = ask(LlmClient(config, tmp_path), **TALKATIVE)
    assert said
    in_no_time = config.model_copy(update={"timeout": 1e-6, "retries": 0})
    with pytest.raises(LlmError, match="did not answer"):
        ask(LlmClient(in_no_time), **TALKATIVE)
    assert ask(LlmClient(in_no_time, tmp_path), **TALKATIVE) == said


def test_a_model_that_talks_nonsense_has_no_json(transformers_url: tuple[str, str]) -> None:
    url, model = transformers_url
    with pytest.raises(LlmError, match="twice gave no usable JSON: not valid JSON at character 1") as caught:
        ask_json(LlmClient(LlmConfig(base_url=url, model=model, max_tokens=12)), **TALKATIVE)
    assert (caught.value.fault, caught.value.retryable) == ("unusable", False)


def test_what_is_asked_is_the_configured_request() -> None:
    with serving("fine") as endpoint:
        assert ask(LlmClient(endpoint.config()), temperature=0.7) == "fine"
    assert endpoint.asked == [
        {"model": "tiny", "messages": ASKED, "temperature": 0.7, "max_completion_tokens": 2048},
    ]


@pytest.mark.parametrize(
    "said",
    [
        '{"city": "Lyon"}',
        '<think>{"city": 1}</think>\n{"city": "Lyon"}',
        'Here it is:\n```json\n{"city": "Lyon"}\n```\nAnything else?',
        'It is {"city": "Lyon"}.',
    ],
)
def test_json_is_found_in_what_models_say(said: str) -> None:
    with serving(said) as endpoint:
        assert ask_json(LlmClient(endpoint.config())) == {"city": "Lyon"}
    assert len(endpoint.asked) == 1


def test_a_text_may_run_over_several_lines() -> None:
    with serving('{"city": "Lyon\non the\tRhône"}') as endpoint:
        assert ask_json(LlmClient(endpoint.config())) == {"city": "Lyon\non the\tRhône"}
    assert len(endpoint.asked) == 1


def test_a_wrong_answer_is_sent_back_once_with_what_is_wrong() -> None:
    with serving('{"city": 3}', '{"city": "Lyon"}') as endpoint:
        assert ask_json(LlmClient(endpoint.config())) == {"city": "Lyon"}
    assert endpoint.asked[1]["messages"][1] == {"role": "assistant", "content": '{"city": 3}'}
    assert "at `city`: 3 is not of type" in endpoint.asked[1]["messages"][2]["content"]


OPENAI: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": False, "schema": CITY},
}
LLAMA_CPP: dict[str, Any] = {"type": "json_object", "schema": CITY}


def formats(endpoint: Endpoint) -> list[Any]:
    return [asked.get("response_format") for asked in endpoint.asked]


def test_the_server_is_asked_for_json_of_the_schema_and_for_nothing_else_of_text() -> None:
    with serving('{"city": 3}', '{"city": "Lyon"}') as endpoint:
        client = LlmClient(endpoint.config())
        ask_json(client)
        ask(client)
    assert formats(endpoint) == [OPENAI, OPENAI, None]


@pytest.mark.parametrize(
    "refusal",
    [
        Raw(b'{"error": {"message": "Invalid parameter: \'response_format\' is not supported."}}', 400),
        Raw(b'{"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}', 422),
        Raw(b"{\"error\": {\"message\": \"1 validation error: ('body', 'response_format', 'type')\"}}", 500),
    ],
    ids=["400", "422", "500"],
)
def test_a_form_that_the_server_refuses_is_asked_for_once(refusal: Raw) -> None:
    with serving(refusal, refusal, '{"city": "Lyon"}') as endpoint:
        client = LlmClient(endpoint.config(retries=2))
        assert [ask_json(client), ask_json(client)] == [{"city": "Lyon"}] * 2
    assert formats(endpoint) == [OPENAI, LLAMA_CPP, None, None]


def test_an_older_form_is_kept_to_where_the_server_takes_it() -> None:
    with serving(Raw(b'{"error": {"message": "json_schema?"}}', 400), '{"city": 3}', '{"city": "Lyon"}') as endpoint:
        assert ask_json(LlmClient(endpoint.config())) == {"city": "Lyon"}
    assert formats(endpoint) == [OPENAI, LLAMA_CPP, LLAMA_CPP]


def test_a_request_that_is_refused_in_every_form_changes_nothing_for_the_next() -> None:
    refused = Raw(b'{"error": {"message": "seed is not supported"}}', 400)
    with serving(refused, refused, refused, '{"city": "Lyon"}') as endpoint:
        client = LlmClient(endpoint.config())
        with pytest.raises(LlmError, match="seed is not supported"):
            ask_json(client, seed=1)
        assert ask_json(client) == {"city": "Lyon"}
    assert formats(endpoint) == [OPENAI, LLAMA_CPP, None, OPENAI]


def test_an_answer_is_kept_whatever_form_it_was_asked_in(tmp_path: Path) -> None:
    with serving(Raw(b"{}", 400), '{"city": "Lyon"}') as endpoint:
        ask_json(LlmClient(endpoint.config(), tmp_path))
        assert ask_json(LlmClient(endpoint.config(), tmp_path)) == {"city": "Lyon"}
    assert len(endpoint.asked) == 2


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (closed(["city"], city={"type": "string"}), True),
        (closed(["all"], all={"type": "array", "items": closed(["city"], city={"type": "string"})}), True),
        (closed([], city={"type": "string"}), False),
        (closed(["city"], city={"type": "string", "maxLength": 9}), False),
        (closed(["city"], city={"type": "object"}), False),
        (closed(["city"], city=True), False),
        (closed(["all"], all={"type": "array", "items": closed([], city={"type": "string"})}), False),
        (closed(["all"], all={"type": "array"}), False),
    ],
)
def test_strict_is_asked_only_where_openai_takes_the_schema(schema: dict[str, Any], strict: bool) -> None:
    with serving('{"city": "Lyon", "all": []}') as endpoint:
        client = LlmClient(endpoint.config())
        with contextlib.suppress(LlmError):
            asyncio.run(client.ask_json(ASKED, schema))
    assert formats(endpoint)[0]["json_schema"] == {"name": "answer", "strict": strict, "schema": schema}


@pytest.mark.parametrize(
    ("answer", "fault", "said"),
    [
        ("I am sorry, but I cannot help with that.", "unusable", "not valid JSON at character 1"),
        ('{"city": "Ly', "unusable", "not valid JSON"),
        ('{"town": ["Lyon"], "city": [', "unusable", "not valid JSON"),
        ('{"town": "Lyon"}', "unusable", '"city" is a required property'),
        ('{"city": NaN}', "unusable", "NaN is not JSON"),
        ("[" * 20_000, "unusable", "nested deeper"),
        ("<!doctype html><html><body>Sign in</body></html>", "unusable", "not valid JSON"),
        (completion(None, refusal="That is not allowed."), "unusable", "refuses: That is not allowed."),
        (completion(""), "unusable", "answers nothing"),
        (Raw(b"<html>Sign in</html>", content_type="text/html"), "unusable", "not with a chat completion"),
        (Raw(b'{"choices": [{"mess'), "unusable", "answers no JSON"),
        (Raw(b"{}"), "unusable", "not with a chat completion"),
        (Raw(b'{"choices": 3}'), "unusable", "not with a chat completion"),
        (Raw(b"[]"), "unusable", "not with a chat completion"),
        (Raw(b"\xff\xfe\x00"), "unusable", "answers no JSON"),
        (Raw(b"<html>Bad gateway</html>", 502, "text/html"), "unavailable", "fails with status 502"),
        (Raw(b"{}", 503), "unavailable", "fails with status 503"),
        (Raw(b"{}", 429), "rate_limit", "takes no more requests"),
        (Raw(b"{}", 401), "denied", "put a right one into $OPENAI_API_KEY"),
        (Raw(b"{}", 404), "denied", "check `model` and `base_url`"),
        (Raw(b'{"error": {"message": "too long"}}', 400), "rejected", "too long"),
        (Raw(b'{"error": {"message": "boom"}}', 500), "unavailable", "fails with status 500 (boom): try again later"),
        (Raw(b'{"choices": []}', torn=True), "network", "broke off: try again"),
        (Drop(), "network", "broke off: try again"),
        (Raw(b"{}", 429, headers={"Retry-After": "86400"}), "rate_limit", "asks for a pause of 24 hours"),
        (Raw(b"{}", 503, headers={"Retry-After": "600"}), "rate_limit", "asks for a pause of 10 minutes"),
        (completion(42), "unusable", "answers with a content of type int, not with text"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_what_is_no_answer_is_one_sentence(answer: Answer, fault: str, said: str) -> None:
    with serving(answer) as endpoint, pytest.raises(LlmError) as caught:
        ask_json(LlmClient(endpoint.config()))
    assert caught.value.fault == fault
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_hangs_is_given_up_on() -> None:
    with serving(Hang()) as endpoint, pytest.raises(LlmError, match=r"did not answer within 0\.2 seconds") as caught:
        ask(LlmClient(endpoint.config(timeout=0.2)))
    assert (caught.value.fault, caught.value.retryable) == ("timeout", True)


def test_a_server_that_sends_a_byte_now_and_then_is_given_up_on_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"

        async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
            while not writer.is_closing():
                writer.write(b" ")
                await asyncio.sleep(0.02)

        async def both() -> None:
            server = await asyncio.start_server(drip, sock=listening.dup())
            client = LlmClient(LlmConfig(base_url=url, model="tiny", timeout=0.3, retries=0))
            with pytest.raises(LlmError) as caught:
                await client.ask(ASKED)
            assert caught.value.fault == "timeout"
            server.close()

        asyncio.run(both())


@pytest.mark.parametrize(
    "refusal",
    [
        Raw(b"{}", 401),
        Raw(b'{"error": {"message": "No credit", "code": "insufficient_quota"}}', 429),
        Raw(b"{}", 429, headers={"Retry-After": "86400"}),
    ],
    ids=["wrong key", "no quota", "a day"],
)
def test_what_waiting_does_not_mend_is_not_tried_again(refusal: Raw) -> None:
    with serving(refusal) as endpoint:
        with pytest.raises(LlmError):
            ask(LlmClient(endpoint.config(retries=3)))
        assert len(endpoint.asked) == 1


def test_a_refused_key_is_sent_once() -> None:
    with serving(Raw(b"{}", 401)) as endpoint:
        client = LlmClient(endpoint.config())
        for seed in range(3):
            with pytest.raises(LlmError, match="wants a key"):
                ask(client, seed=seed)
        assert len(endpoint.asked) == 1


def test_the_servers_own_words_say_that_the_quota_is_used_up() -> None:
    empty = Raw(b'{"error": {"message": "You have no credit", "type": "insufficient_quota"}}', 429)
    with serving(empty) as endpoint, pytest.raises(LlmError, match=r"You have no credit$") as caught:
        ask(LlmClient(endpoint.config()))
    assert caught.value.fault == "denied"


def test_a_content_in_parts_is_one_text() -> None:
    parts = [{"type": "text", "text": "fi"}, {"type": "image"}, {"type": "text", "text": "ne"}]
    with serving(completion(parts)) as endpoint:
        assert ask(LlmClient(endpoint.config())) == "fine"


@pytest.mark.parametrize("key", ["sk-1\nsk-2", "sk-1\n", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(UsageError, match=r"\$SOME_KEY cannot be a key") as caught:
        LlmClient(LlmConfig(model="tiny", api_key_env="SOME_KEY"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("port", ["99999", "x"])
def test_a_port_that_is_none_is_one_sentence(port: str) -> None:
    with pytest.raises(UsageError, match=f"The port of http://127.0.0.1:{port}/v1 is none"):
        LlmClient(LlmConfig(model="tiny", base_url=f"http://127.0.0.1:{port}/v1"))


def test_nobody_there_is_one_sentence() -> None:
    with pytest.raises(LlmError, match="cannot be reached: start its server or check `base_url`") as caught:
        ask(LlmClient(LlmConfig(base_url="http://127.0.0.1:9/v1", model="tiny", retries=0)))
    assert (caught.value.fault, caught.value.retryable) == ("network", True)


def test_a_fault_that_may_pass_is_tried_again() -> None:
    with serving(Raw(b"{}", 503), "fine") as endpoint:
        assert ask(LlmClient(endpoint.config(retries=1))) == "fine"
    assert len(endpoint.asked) == 2


def test_an_answer_is_kept_and_a_rerun_asks_nobody(tmp_path: Path) -> None:
    with serving('{"city": "Lyon"}', '{"city": "Nice"}') as endpoint:
        first = LlmClient(endpoint.config(), tmp_path)
        assert [ask_json(first), ask_json(LlmClient(endpoint.config(), tmp_path))] == [{"city": "Lyon"}] * 2
        assert len(endpoint.asked) == 1
        assert ask_json(LlmClient(endpoint.config(model="other"), tmp_path)) == {"city": "Nice"}


def test_another_endpoint_is_asked_though_its_model_has_the_same_name(tmp_path: Path) -> None:
    with serving("one") as first, serving("two") as second:
        assert ask(LlmClient(first.config(), tmp_path)) == "one"
        assert ask(LlmClient(second.config(), tmp_path)) == "two"
        assert ask(LlmClient(first.config(base_url=f"{first.url}/"), tmp_path)) == "one"
        assert (len(first.asked), len(second.asked)) == (1, 1)


def test_a_kept_answer_has_its_keys_in_the_order_of_the_first(tmp_path: Path) -> None:
    with serving('{"zone": 1, "city": "Lyon", "area": {"b": 1, "a": 2}}') as endpoint:
        client = LlmClient(endpoint.config(), tmp_path)
        first, again = ask_json(client), ask_json(client)
        assert len(endpoint.asked) == 1
    assert orjson.dumps(first) == orjson.dumps(again) == b'{"zone":1,"city":"Lyon","area":{"b":1,"a":2}}'


def test_the_same_question_at_once_has_one_answer(tmp_path: Path) -> None:
    replies = iter(range(100))

    async def many(client: LlmClient) -> list[str]:
        return await asyncio.gather(*(client.ask(ASKED) for _ in range(6)))

    with serving(lambda messages: f"answer {next(replies)}") as endpoint:
        config = endpoint.config(concurrency=3)
        said = asyncio.run(many(LlmClient(config, tmp_path)))
        assert asyncio.run(many(LlmClient(config, tmp_path))) == said
    assert len(set(said)) == 1


def test_what_is_no_answer_is_not_kept_and_a_damaged_file_is_asked_for_again(tmp_path: Path) -> None:
    with serving("prose", "more prose", '{"city": "Lyon"}') as endpoint:
        client = LlmClient(endpoint.config(), tmp_path)
        with pytest.raises(LlmError):
            ask_json(client)
        assert ask_json(client) == {"city": "Lyon"}
        [kept] = tmp_path.rglob("*.json")
        kept.write_bytes(kept.read_bytes()[:20])
        assert ask_json(client) == {"city": "Lyon"}
    assert len(endpoint.asked) == 4


def test_the_key_goes_to_the_endpoint_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-topsecret")
    echo = Raw(b'{"error": {"message": "wrong key sk-topsecret"}}', 400)
    with serving("fine", echo) as endpoint:
        client = LlmClient(endpoint.config(api_key_env="SOME_KEY"), tmp_path)
        ask(client)
        with pytest.raises(LlmError) as caught:
            ask(client, seed=1)
    assert endpoint.keys == ["Bearer sk-topsecret"] * 2
    assert "topsecret" not in str(caught.value)
    assert all(b"topsecret" not in path.read_bytes() for path in tmp_path.rglob("*.json"))


def test_no_model_named_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="No language model is named"):
        LlmClient(LlmConfig())


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "http://me:secret@host/v1"},
        {"base_url": "http://host/v1?key=1"},
        {"base_url": "host"},
        {"api_key_env": "sk-proj-123"},
    ],
)
def test_secrets_have_no_place_in_the_settings(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        LlmConfig(model="tiny", **wrong)


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving("fine") as endpoint, pytest.raises(RunError, match="cannot be kept in"):
        ask(LlmClient(endpoint.config(), tmp_path / "file"))
