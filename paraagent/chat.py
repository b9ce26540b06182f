"""One OpenAI-compatible endpoint: requests under way together, and another try for what may pass.

Whatever goes wrong is one `LlmError`, in words for a person. The key comes from the environment and stays there. An
endpoint that says how long to wait is believed, by all requests at once; otherwise the pauses grow.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from paraagent.config import LlmConfig
from paraagent.errors import RunError, UsageError

if TYPE_CHECKING:
    import openai

Fault = Literal["network", "timeout", "rate_limit", "unavailable", "denied", "too_long", "rejected", "unusable"]
"""Nobody there; too slow; too many requests; a failure of the server; wrong key, model or address; more than the model
can read; a request that the server does not take; an answer that is none."""

_RETRYABLE: frozenset[Fault] = frozenset(["network", "timeout", "rate_limit", "unavailable"])
_UNHEARD = 2
"""Further tries where nothing listens and nothing ever did: most likely the server is not running."""
_FIRST_PAUSE, _LONGEST_PAUSE, _TOLD_PAUSE = 0.5, 60.0, 1.0
"""Seconds. A server that asks for more than the longest is not waited for; from the last on, a person is told."""
_MAX_ANSWER = 1_000_000
"""Characters of an answer that are looked at."""
_SAID = 200
"""Characters of a server's own words that are repeated."""
_TOO_LONG = re.compile(
    "context_length|context length|maximum context|context window|prompt is too long|too many tokens|max_model_len",
    re.IGNORECASE,
)


class LlmError(RunError):
    """A question to a language model got no usable answer; `str(error)` says which and what to do."""

    def __init__(self, fault: Fault, message: str, *, garbled: bool = False, wait: float | None = None) -> None:
        """`garbled`: the server said something that no server should, so that it may do better next time. `wait`: how
        many seconds it asks to be left alone."""
        super().__init__(message)
        self.fault: Fault = fault
        self.garbled, self.wait = garbled, wait

    @property
    def retryable(self) -> bool:
        """Whether the same question may be answered later."""
        return self.fault in _RETRYABLE


class Answer(NamedTuple):
    """What a model said, and what it took."""

    content: str
    reasoning: str
    """What a server moved out of the content as thoughts."""
    tool_calls: tuple[tuple[str, str], ...]
    """(name, JSON text of the arguments) of what it moved out as calls."""
    finish: str
    """Why it stopped, as the server says: `stop`, `length`, `tool_calls`, …"""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """From the first try to the answer."""


class ChatClient:
    """Asks one model at one endpoint; any number of questions at once, in any event loop."""

    def __init__(self, config: LlmConfig) -> None:
        """Nothing is contacted before the first question.

        Raises:
            UsageError: no model is named, or its address or its key cannot be used.
        """
        if not config.model:
            raise UsageError("No language model is named: set `model`, and `base_url` where it is served")
        _check_port(config.base_url)
        key = os.environ.get(config.api_key_env, "")
        if not key.isascii() or not key.isprintable() or key != key.strip():
            raise UsageError(
                f"${config.api_key_env} cannot be a key: it has a line break, an accent or a space around it"
            )
        self.config = config
        self.told: Callable[[str], None] | None = None
        """Hears what is waited for."""
        self._denied = ""
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        self._heard = False

    @property
    def name(self) -> str:
        """Model and endpoint, as a sentence begins."""
        return f"The {self._who}"

    @property
    def _who(self) -> str:
        return f"model {self.config.model} at {self.config.base_url}"

    async def complete(self, request: Mapping[str, Any]) -> Answer:
        """The answer to a request of chat completions, without its `model`.

        Raises:
            LlmError: there is none after all tries, or no other try would help.
        """
        line = await self._line()
        began = time.monotonic()
        for attempt in count():
            try:
                async with line.slot():
                    await line.turn()
                    return (await self._once(line, request))._replace(seconds=time.monotonic() - began)
            except LlmError as error:
                nobody = error.fault == "network" and not self._heard
                tries = min(self.config.retries, _UNHEARD) if nobody else self.config.retries
                too_long = error.wait is not None and error.wait > _LONGEST_PAUSE
                if attempt >= tries or too_long or not (error.retryable or error.garbled):
                    raise
                pause = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
                if error.wait is not None:
                    line.leave_alone(error.wait)
                    pause = error.wait
                if self.told is not None and pause >= _TOLD_PAUSE:
                    self.told(f"{error}; the next try is in {pause:.0f} s")
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _line(self) -> _Line:
        """The connections of this event loop, which closes them when it ends."""
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = _Line(self.config)
            await anext(line.closing)
        return line

    async def _once(self, line: _Line, request: Mapping[str, Any]) -> Answer:
        import openai
        from openai.types.chat import ChatCompletion

        if self._denied:
            raise LlmError("denied", self._denied)
        config = self.config
        body = {"model": config.model, **request}
        try:
            async with asyncio.timeout(config.timeout):
                # Not `chat.completions.create`, which walks through all messages against their types: half of the time.
                completion = await line.client.post("/chat/completions", body=body, cast_to=ChatCompletion)
        except (TimeoutError, openai.APITimeoutError):
            raise LlmError("timeout", f"{self.name} did not answer within {config.timeout:g} seconds") from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            if not type(error.__cause__).__name__.startswith("Connect"):
                self._heard = True
                said = f"The answer of the {self._who} broke off: try again, or look at the log of its server"
                raise LlmError("network", said) from None
            raise LlmError("network", f"{self.name} cannot be reached: start its server or check `base_url`") from None
        except (openai.OpenAIError, ValueError) as error:
            message = f"{self.name} answers no JSON: check `base_url` ({type(error).__name__})"
            raise LlmError("unusable", message, garbled=True) from None
        answer = self._answer(completion)
        self._heard = True
        return answer

    def _answer(self, completion: Any) -> Answer:
        """What the model said. Servers send anything: a web page comes as a text, half an answer as empty fields."""
        choices = getattr(completion, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            said = f"{self.name} answers, but not with a chat completion: check `base_url`"
            raise LlmError("unusable", said, garbled=True)
        if refusal := getattr(message, "refusal", None):
            raise LlmError("unusable", f"{self.name} refuses: {_line(str(refusal))}")
        reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
        usage = getattr(completion, "usage", None)
        return Answer(
            content=self._content(getattr(message, "content", None)),
            reasoning=_text(reasoning),
            tool_calls=tuple(_tool_calls(message)),
            finish=_text(getattr(choice, "finish_reason", None)),
            prompt_tokens=_count(getattr(usage, "prompt_tokens", 0)),
            completion_tokens=_count(getattr(usage, "completion_tokens", 0)),
            seconds=0.0,
        )

    def _content(self, content: Any) -> str:
        """The text, which some servers send in parts."""
        if isinstance(content, list):
            content = "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
        if content is not None and not isinstance(content, str):
            kind = type(content).__name__
            raise LlmError(
                "unusable", f"{self.name} answers with a content of type {kind}, not with text", garbled=True
            )
        return _text(content)

    def _refusal(self, error: openai.APIStatusError) -> LlmError:
        """The sentence for a status that is none of success; the server's own words, never the key."""
        code, key = error.status_code, os.environ.get(self.config.api_key_env)
        said = error.message.removeprefix(f"Error code: {code}").removeprefix(" - ")
        said = _line(said.replace(key, "…") if key else said) or "it does not say why"
        if code in (401, 403):
            text = f"{self.name} wants a key: put a right one into ${self.config.api_key_env}"
            if code == 401:
                self._denied = text
            return LlmError("denied", text)
        if code == 404:
            return LlmError("denied", f"{self.name} is not there: check `model` and `base_url`")
        wait = _retry_after(error.response.headers)
        if code == 429 and "insufficient_quota" in (error.code, error.type):
            self._denied = f"{self.name} has nothing left for this key: {said}"
            return LlmError("denied", self._denied)
        if wait is not None and wait > _LONGEST_PAUSE:
            return LlmError(
                "rate_limit", f"{self.name} asks for a pause of {_duration(wait)}: try again then", wait=wait
            )
        if code == 429:
            text = f"{self.name} takes no more requests now: lower `concurrency`, or wait"
            return LlmError("rate_limit", text, wait=wait)
        # llama-cpp-python calls a `response_format` that it does not know a failure of its own.
        if (code >= 500 and "response_format" not in error.message) or code in (408, 409):
            text = f"{self.name} fails with status {code} ({said}): try again later, or look at the log of its server"
            return LlmError("unavailable", text, wait=wait)
        if code in (400, 413, 422) and _TOO_LONG.search(f"{error.code} {error.message}"):
            return LlmError("too_long", f"{self.name} cannot read that much: {said}")
        return LlmError("rejected", f"{self.name} rejects the request with status {code}: {said}")


class _Line:
    """The connections to an endpoint in one event loop, and when the next request may go out."""

    def __init__(self, config: LlmConfig) -> None:
        import openai

        self.client = openai.AsyncOpenAI(
            base_url=config.base_url,
            api_key=os.environ.get(config.api_key_env) or "none",
            timeout=config.timeout,
            max_retries=0,
        )
        self._slots, self._left = asyncio.Semaphore(config.concurrency), config.concurrency
        self._most, self._in_time = config.concurrency, 0
        self._apart = 60 / config.requests_per_minute if config.requests_per_minute else 0.0
        self._next = 0.0
        self.closing = self._closing()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A place among the requests under way. A server that answers too late gets fewer of them at once, down to one,
        since many go on with a request that nobody waits for; answers in time bring the places back one by one."""
        await self._slots.acquire()
        try:
            yield
        except LlmError as error:
            self._in_time = 0
            if error.fault == "timeout" and self._left > 1:
                self._left -= 1
            else:
                self._slots.release()
            raise
        except BaseException:
            self._slots.release()
            raise
        self._slots.release()
        self._in_time += 1
        if self._left < self._most and self._in_time >= self._left:
            self._left, self._in_time = self._left + 1, 0
            self._slots.release()

    async def turn(self) -> None:
        """Wait until a request may go out."""
        now = asyncio.get_running_loop().time()
        goes, self._next = max(now, self._next), max(now, self._next) + self._apart
        if goes > now:
            await asyncio.sleep(goes - now)

    def leave_alone(self, seconds: float) -> None:
        """Send nothing for so long."""
        until = asyncio.get_running_loop().time() + seconds
        self._next = max(self._next, until)

    async def _closing(self) -> AsyncIterator[None]:
        """`asyncio.run` finishes every generator that was begun in its loop: there the connections are closed."""
        try:
            yield
        finally:
            await self.client.close()


def _tool_calls(message: Any) -> list[tuple[str, str]]:
    found = []
    for call in getattr(message, "tool_calls", None) or ():
        function = getattr(call, "function", None)
        found.append((_text(getattr(function, "name", None)), _text(getattr(function, "arguments", None)) or "{}"))
    return found


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, which it says as a number or as a date."""
    said = headers.get("retry-after", "")
    try:
        return max(float(said), 0.0) if math.isfinite(float(said)) else None
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _check_port(address: str) -> None:
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        raise UsageError(f"The port of {address} is none: it should be a number up to 65535") from error


def _text(value: Any) -> str:
    return value[:_MAX_ANSWER].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _line(text: str) -> str:
    return " ".join(text.split())[:_SAID]
