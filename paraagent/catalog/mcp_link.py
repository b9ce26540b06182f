"""What both transports of MCP share: where a server is, how much it may send, and what became of a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse, Tool
from pydantic import ValidationError

UNREACHABLE, BROKEN = -1_000_001, -1_000_002
"""Codes of JSON-RPC errors that the transports make up: a request that never left, and one that may have arrived."""
HTTP_STATUS = -1_000_000
"""Minus the status: the code of a request that the web server refused before the MCP server saw it."""
TOO_MUCH = "the answer is larger than an answer may be"
BROKE = "the connection broke"
"""What the message of an error says where the SDK leaves no other place for it."""


@dataclass(frozen=True)
class Endpoint:
    """A command or an address. Its values may be secrets, so it never shows them."""

    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the environment of this process."""
    cwd: str | None = field(default=None, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What must not appear in anything that the server says."""


class TooMuchError(Exception):
    """A server sent more than it may."""


@dataclass
class Link:
    """The state of one connection."""

    max_bytes: int
    whole: bool
    """The limit is for the connection, else for each message."""
    seconds: float = 60.0
    """For reaching an address."""
    total: int = 0
    """Bytes that came over HTTP."""
    exceeded: bool = False
    said: str = ""
    """The last line that its process wrote for a person."""
    exit_code: int | None = None
    """Of a process that ended by itself."""
    malformed: list[str] = field(default_factory=list)
    """Names or places of listed tools that are none; they are left out."""
    changed: bool = False
    """The server said that its tools are others now."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing will come any more."""


class Attempt:
    """Whether a request was handed to the transport: once it was, the server may have received it."""

    def __init__(self) -> None:
        self.sent = False


attempt: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
"""The attempt that the current task makes."""


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[TransportStreams], link: Link
) -> AsyncIterator[TransportStreams]:
    """The transport, noting in `link` when its end came and in `attempt` what was sent."""
    async with transport as (incoming, outgoing):
        yield _Incoming(incoming, link), _Outgoing(outgoing, link)


class _Stream:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> bool | None:
        closed: bool | None = await self._inner.__aexit__(*exception)
        return closed


class _Incoming(_Stream):
    def __init__(self, inner: ReadStream[SessionMessage | Exception], link: Link) -> None:
        super().__init__(inner)
        self._link = link

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            item: SessionMessage | Exception = await self._inner.__anext__()
        except BaseException:
            self._link.closed.set()
            raise
        if not self._link.whole:
            _keep_sound(item, self._link)
        return item

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


def _keep_sound(item: SessionMessage | Exception, link: Link) -> None:
    """Leave out listed tools that are none, for which the SDK would give up the whole list."""
    message = item.message if isinstance(item, SessionMessage) else None
    tools = message.result.get("tools") if isinstance(message, JSONRPCResponse) else None
    if not isinstance(message, JSONRPCResponse) or not isinstance(tools, list):
        return
    sound = []
    for number, tool in enumerate(tools, 1):
        try:
            Tool.model_validate(tool)
            sound.append(tool)
        except ValidationError:
            name = tool.get("name") if isinstance(tool, dict) else None
            link.malformed.append(name[:80] if isinstance(name, str) else f"number {number}")
    message.result["tools"] = sound


class _Outgoing(_Stream):
    def __init__(self, inner: WriteStream[SessionMessage], link: Link) -> None:
        super().__init__(inner)
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        current = attempt.get() if isinstance(item.message, JSONRPCRequest) else None
        if current is not None:
            current.sent = True
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._link.closed.set()
            if current is not None:
                current.sent = False
            raise
