"""Questions to a language model behind an endpoint, whose answers are kept and checked.

- Every answer is kept on disk under a hash of endpoint and question: a rerun needs no network and says the same.
- `ask_json` takes nothing but JSON that satisfies a schema; a wrong answer is sent back once with what is wrong. The
  server is asked to let the model write nothing else, as far as it can.
- Whatever goes wrong is one `LlmError`, in words for a person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from paraagent.chat import ChatClient, LlmError
from paraagent.config import LlmConfig
from paraagent.errors import RunError
from paraagent.files import canonical_json, sha256_bytes, write_once
from paraagent.message import Message
from paraagent.paraact.jsontext import JsonTextError, decode, decode_at
from paraagent.validators import compile_validator

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

_SAID = 200
"""Characters of a fault that are told."""
_REPEATED = 4_000
"""Characters of a wrong answer that are sent back."""
_STRICT = frozenset({"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum"})
"""Keywords that OpenAI's strict mode knows, as far as our schemas have them."""
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class LlmClient:
    """Asks one model at one endpoint; any number of questions at once, in any event loop."""

    def __init__(self, config: LlmConfig, cache: Path | None = None) -> None:
        """Nothing is contacted before the first question whose answer is not in the folder `cache`.

        Raises:
            UsageError: no model is named.
        """
        self.config, self.cache = config, cache
        self._chat = ChatClient(config)
        self._form = 0
        """The first of the `_formats` that the server has not refused."""

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

    async def ask_json(
        self, messages: Sequence[Message], schema: dict[str, Any], example: Any = None, **parameters: Any
    ) -> Any:
        """A JSON value that satisfies `schema`; asked once more where the answer does not.

        The model is told the `example`, which small ones follow better, and where there is none the schema.

        Raises:
            LlmError: there is no answer, or twice none that satisfies the schema.
        """
        asked = with_form(messages, schema, example)
        request = self._request(asked, parameters) | {"schema": schema}
        known = self._known(request)
        if known is not None:
            return known["value"]
        validator, problem = compile_validator(schema), ""
        for _ in range(2):
            text = await self._complete_json(self._request(asked, parameters), schema)
            try:
                value = read_json(text, validator)
            except JsonTextError as error:
                problem = str(error)
                asked = [*asked, {"role": "assistant", "content": text[:_REPEATED]}, _correction(problem)]
            else:
                return self._keep(request, {"value": value})["value"]
        raise LlmError("unusable", f"{self._chat.name} twice gave no usable JSON: {problem}")

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

    async def _complete_json(self, request: dict[str, Any], schema: dict[str, Any]) -> str:
        """The answer in the best form that the server takes. What it refuses is not asked for again, once it has taken
        another: until then the form may not be what it minds. The answer is checked all the same, so the cache does not
        tell forms apart."""
        formats = _formats(schema)
        for form in range(self._form, len(formats)):
            try:
                text = await self._complete(formats[form] | request)
            except LlmError as error:
                if error.fault != "rejected" or form == len(formats) - 1:
                    raise
            else:
                self._form = max(self._form, form)
                return text
        raise AssertionError("unreachable")

    async def _complete(self, request: dict[str, Any]) -> str:
        answer = await self._chat.complete({key: value for key, value in request.items() if key != "model"})
        if not answer.content.strip():
            raise LlmError("unusable", f"{self._chat.name} answers nothing within {self.config.max_tokens} tokens")
        return answer.content


def read_json(text: str, validator: Draft202012Validator) -> Any:
    """The JSON value in an answer: the whole of it, its first fenced block, or the first object or array in it. Its
    texts may run over several lines, as models write them.

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


def with_form(messages: Sequence[Message], schema: dict[str, Any], example: Any = None) -> list[Message]:
    """The messages as they are sent for JSON: the last one says of what form the answer is to be."""
    *before, message = messages
    told = "Answer with one JSON value that satisfies this JSON Schema, and with nothing else:"
    if example is not None:
        told = "Answer with one JSON value of the form of this example, and with nothing else:"
    form = orjson.dumps(schema if example is None else example).decode()
    return [*before, {"role": message["role"], "content": f"{message['content']}\n\n{told}\n{form}"}]


def _first_value(text: str) -> Any:
    try:
        return decode(text, lenient=True)
    except JsonTextError:
        opening = re.search(r"[{\[]", text)
        if opening is None or opening.start() == 0:
            raise
    return decode_at(text, opening.start(), lenient=True)[0]


def _formats(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Ways to ask a server for JSON of a schema: OpenAI's, which most take, the older one of llama.cpp, and none."""
    named = {"name": "answer", "strict": _strict(schema), "schema": schema}
    return [
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"response_format": {"type": "json_object", "schema": schema}},
        {},
    ]


def _strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes a schema: it refuses one with an optional property, or a keyword it lacks."""
    if not isinstance(schema, dict) or not schema.keys() <= _STRICT:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False and {*schema.get("required", ())} == properties.keys()
        return closed and all(map(_strict, properties.values()))
    return schema.get("type") != "array" or _strict(schema.get("items"))


def _correction(problem: str) -> Message:
    return {"role": "user", "content": f"That is not right: {problem}. Answer with the JSON value alone."}
