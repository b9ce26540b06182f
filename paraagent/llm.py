"""A client for any OpenAI-compatible endpoint: whoever asks a language model over HTTP asks through here.

- Every answer is kept on disk under a hash of endpoint and question: a rerun needs no network and says the same.
- `ask_json` takes nothing but JSON that satisfies a schema; a wrong answer is sent back once with what is wrong.
- Whatever goes wrong is one `LlmError`, in words for a person. The key comes from the environment and stays there.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import orjson

from paraagent.config import LlmConfig
from paraagent.errors import RunError, UsageError
from paraagent.files import canonical_json, sha256_bytes, write_once
from paraagent.message import Message
from paraagent.paraact.jsontext import JsonTextError, decode, decode_at
from paraagent.validators import compile_validator

if TYPE_CHECKING:
    import openai
    from jsonschema_rs import Draft202012Validator

Fault = Literal["network", "timeout", "rate_limit", "unavailable", "denied", "rejected", "unusable"]
"""Nobody there; too slow; too many requests; a failure of the server; wrong key, model or address; a request that the
server does not take; an answer that is none."""

_RETRYABLE: frozenset[Fault] = frozenset(["network", "timeout", "rate_limit", "unavailable"])
_MAX_ANSWER = 1_000_000
"""Characters of an answer that are looked at."""
_SAID = 200
"""Characters of a server's own words that are repeated."""
_REPEATED = 4_000
"""Characters of a wrong answer that are sent back."""
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class LlmError(RunError):
    """A question to a language model got no usable answer; `str(error)` says which and what to do."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault: Fault = fault

    @property
    def retryable(self) -> bool:
        """Whether the same question may be answered later."""
        return self.fault in _RETRYABLE


class LlmClient:
    """Asks one model at one endpoint; any number of questions at once, in any event loop."""

    def __init__(self, config: LlmConfig, cache: Path | None = None) -> None:
        """Nothing is contacted before the first question whose answer is not in the folder `cache`.

        Raises:
            UsageError: no model is named.
        """
        if not config.model:
            raise UsageError("No language model is named: set `model`, and `base_url` where it is served")
        self.config, self.cache = config, cache
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._transport: Any = None

    async def ask(self, messages: Sequence[Message], **parameters: Any) -> str:
        """The text of the model's answer. `parameters` go into the request, beside or over the configured ones.

        Raises:
            LlmError: there is no answer.
        """
        request = self._request(messages, parameters)
        answer: str | None = self._known(request)
        if answer is None:
            answer = self._keep(request, await self._complete(request))
        return answer

    async def ask_json(self, messages: Sequence[Message], schema: dict[str, Any], **parameters: Any) -> Any:
        """A JSON value that satisfies `schema`, which the model is told; asked once more where the answer does not.

        Raises:
            LlmError: there is no answer, or twice none that satisfies the schema.
        """
        asked = [*messages[:-1], _with_schema(messages[-1], schema)]
        request = self._request(asked, parameters) | {"schema": schema}
        known = self._known(request)
        if known is not None:
            return known["value"]
        validator, problem = compile_validator(schema), ""
        for _ in range(2):
            text = await self._complete(self._request(asked, parameters))
            try:
                value = read_json(text, validator)
            except JsonTextError as error:
                problem = str(error)
                asked = [*asked, {"role": "assistant", "content": text[:_REPEATED]}, _correction(problem)]
            else:
                return self._keep(request, {"value": value})["value"]
        raise LlmError("unusable", f"{self._name} twice gave no usable JSON: {problem}")

    @property
    def _name(self) -> str:
        return f"The model {self.config.model} at {self.config.base_url}"

    def _request(self, messages: Sequence[Message], parameters: dict[str, Any]) -> dict[str, Any]:
        usual = {"temperature": self.config.temperature, "max_completion_tokens": self.config.max_tokens}
        return {"model": self.config.model, "messages": list(messages), **usual, **parameters}

    def _path(self, request: dict[str, Any]) -> Path | None:
        name = sha256_bytes(canonical_json({"base_url": self.config.base_url.rstrip("/"), **request}))
        return None if self.cache is None else self.cache / name[:2] / f"{name}.json"

    def _known(self, request: dict[str, Any]) -> Any:
        """The answer on disk; None where there is none, or only a damaged file, which is asked for again."""
        path = self._path(request)
        if path is None or not path.exists():
            return None
        try:
            return orjson.loads(path.read_bytes())["answer"]
        except (ValueError, KeyError, TypeError):
            path.unlink(missing_ok=True)
            return None

    def _keep(self, request: dict[str, Any], answer: Any) -> Any:
        """The answer, or the one that was kept first where the same was asked twice at once."""
        path = self._path(request)
        if path is None:
            return answer
        kept = orjson.dumps({"request": request, "answer": answer})  # keys stay in the order that the model chose
        try:
            written = write_once(path, kept)
        except OSError as error:
            raise RunError(
                f"The answers of {self.config.model} cannot be kept in {self.cache}: {error.strerror}"
            ) from error
        first = None if written else self._known(request)
        return answer if first is None else first

    async def _complete(self, request: dict[str, Any]) -> str:
        import openai

        config = self.config
        slot = self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(config.concurrency))
        try:
            async with slot, self._client() as client, asyncio.timeout(config.timeout * (1 + config.retries)):
                completion = await client.chat.completions.create(**request)
        except (TimeoutError, openai.APITimeoutError):
            raise LlmError("timeout", f"{self._name} did not answer within {config.timeout:g} seconds") from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError:
            raise LlmError("network", f"{self._name} cannot be reached: start its server or check `base_url`") from None
        except (openai.OpenAIError, ValueError) as error:
            raise LlmError(
                "unusable", f"{self._name} answers no JSON: check `base_url` ({type(error).__name__})"
            ) from None
        return self._text(completion)

    def _client(self) -> openai.AsyncOpenAI:
        """A client for one question: one that lives longer is tied to an event loop. They share what is costly."""
        import httpx2
        import openai

        if self._transport is None:
            self._transport = httpx2.create_ssl_context()
        return openai.AsyncOpenAI(
            base_url=self.config.base_url,
            api_key=os.environ.get(self.config.api_key_env) or "none",
            timeout=self.config.timeout,
            max_retries=self.config.retries,
            http_client=openai.DefaultAsyncHttpxClient(verify=self._transport),
        )

    def _text(self, completion: Any) -> str:
        """What the model said. Servers send anything: a web page comes as a text, half an answer as empty fields."""
        choices = getattr(completion, "choices", None)
        message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
        if message is None:
            raise LlmError("unusable", f"{self._name} answers, but not with a chat completion: check `base_url`")
        if refusal := getattr(message, "refusal", None):
            raise LlmError("unusable", f"{self._name} refuses: {_line(str(refusal))}")
        text = getattr(message, "content", None)
        if not isinstance(text, str) or not text.strip():
            raise LlmError("unusable", f"{self._name} answers nothing within {self.config.max_tokens} tokens")
        return text[:_MAX_ANSWER].encode("utf-8", "replace").decode()

    def _refusal(self, error: openai.APIStatusError) -> LlmError:
        """The sentence for a status that is none of success; the server's own words, never the key."""
        code, key = error.status_code, os.environ.get(self.config.api_key_env)
        if code in (401, 403):
            return LlmError("denied", f"{self._name} wants a key: put a right one into ${self.config.api_key_env}")
        if code == 404:
            return LlmError("denied", f"{self._name} is not there: check `model` and `base_url`")
        if code == 429:
            return LlmError("rate_limit", f"{self._name} takes no more requests now: lower `concurrency`, or wait")
        if code >= 500 or code in (408, 409):
            return LlmError("unavailable", f"{self._name} fails with status {code}")
        said = _line(error.message.replace(key, "…") if key else error.message)
        return LlmError("rejected", f"{self._name} rejects the request with status {code}: {said}")


def read_json(text: str, validator: Draft202012Validator) -> Any:
    """The JSON value in an answer: the whole of it, its first fenced block, or the first object or array in it.

    Raises:
        JsonTextError: there is none, or it does not satisfy the schema.
    """
    said = _THOUGHT.sub("", text).strip()
    fenced = _FENCED.search(said)
    value = _first_value(fenced[1].strip() if fenced else said)
    faults = [
        f"at `{'.'.join(map(str, error.instance_path)) or 'the top'}`: {error.message[:_SAID]}"
        for error in validator.iter_errors(value)
    ]
    if faults:
        raise JsonTextError("; ".join(faults[:5]))
    return value


def _first_value(text: str) -> Any:
    try:
        return decode(text)
    except JsonTextError:
        opening = re.search(r"[{\[]", text)
        if opening is None or opening.start() == 0:
            raise
    return decode_at(text, opening.start())[0]


def _with_schema(message: Message, schema: dict[str, Any]) -> Message:
    told = "Answer with one JSON value that satisfies this JSON Schema, and with nothing else:"
    return {"role": message["role"], "content": f"{message['content']}\n\n{told}\n{orjson.dumps(schema).decode()}"}


def _correction(problem: str) -> Message:
    return {"role": "user", "content": f"That is not right: {problem}. Answer with the JSON value alone."}


def _line(text: str) -> str:
    return " ".join(text.split())[:_SAID]
