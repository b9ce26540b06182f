"""The stdio transport of an MCP server that is not trusted: bounded bytes, and its process group ends with it.

The SDK's own transport keeps a line in memory however long it is, and leaves the group of a server that has ended.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Self

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from paraagent.catalog.mcp_json import ENDS, message
from paraagent.catalog.mcp_link import Endpoint, Link, TooMuchError

_CHUNK = 65_536
_GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_SAID_BYTES, _SAID = 2_000, 200
"""What is kept of the words of a server, and characters of its last line that are repeated."""
_SECRET = re.compile(
    r"((?:key|token|secret|passw(?:or)?d|pwd|credentials?|authorization)\S{0,20}?\s*[=:]\s*(?:bearer\s+)?|bearer\s+)\S+",
    re.IGNORECASE,
)


@asynccontextmanager
async def stdio(endpoint: Endpoint, link: Link) -> AsyncIterator[TransportStreams]:
    """Start a server without a shell, in a process group of its own that never outlives this context.

    Where the limit is for each message, one that is larger is dropped, and its request is told.

    Raises:
        OSError: it cannot be started.
        TooMuchError: it sent more than it may in all.
    """
    process = await asyncio.create_subprocess_exec(
        *endpoint.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, **endpoint.env},
        cwd=endpoint.cwd,
    )
    killed = partial(_signal, process.pid, signal.SIGKILL)
    atexit.register(killed)  # however often clean-up is interrupted
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def listen() -> None:
        assert process.stdout
        line, total = _Line(link.max_bytes), 0
        # a child that the server leaves behind may hold its output open
        with anyio.CancelScope() as listening, incoming:
            group.start_soon(gone, listening)
            while piece := await process.stdout.read(_CHUNK):
                total += len(piece)
                if link.whole and total > link.max_bytes:
                    link.exceeded = True
                    raise TooMuchError
                *whole, rest = piece.split(b"\n")
                for end in whole:
                    line.add(end)
                    if (found := message(*line.take())) is not None:  # servers print what is no message
                        await incoming.send(found)
                line.add(rest)

    async def overhear(tail: bytes = b"") -> None:
        assert process.stderr
        while piece := await process.stderr.read(_CHUNK):
            tail = (tail + piece)[-_SAID_BYTES:]
            link.said = _last_line(tail, endpoint.secrets) or link.said

    async def gone(scope: anyio.CancelScope) -> None:
        while process.returncode is None:
            await anyio.sleep(_LOOK_SECONDS)
        await anyio.sleep(_LOOK_SECONDS)  # what it said last
        scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            group.start_soon(overhear)
            try:
                yield received, _Outgoing(process)
            finally:
                group.cancel_scope.cancel()
    except BaseException:
        with anyio.CancelScope(shield=True), anyio.move_on_after(_LOOK_SECONDS):
            link.exit_code = await process.wait()  # before anything here ends it
            await overhear()
        raise
    finally:
        try:
            with anyio.CancelScope(shield=True):
                await _end(process)
        finally:
            killed()
            atexit.unregister(killed)


class _Line:
    """A line as its pieces come; of one that is too long, only so much and its very end are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept, self._tail = bytearray(), b""

    def add(self, piece: bytes) -> None:
        room = self._most - len(self._kept)
        self._kept += piece[:room]
        if len(piece) > room:
            self._tail = (self._tail + piece[room:])[-ENDS:]

    def take(self) -> tuple[bytes, bytes]:
        """What was kept, and the end of what was not; the next line begins."""
        taken = bytes(self._kept), self._tail
        self._kept, self._tail = bytearray(), b""
        return taken


class _Outgoing:
    """Writes messages at once, so that it is known of each whether a living server was there to read it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        self._process, self._pipe = process, process.stdin

    async def send(self, item: SessionMessage, /) -> None:
        # a child of a server that has ended may hold its input open, and never read it
        if _has_ended(self._process):
            raise anyio.BrokenResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode() + b"\n")
        try:
            await self._pipe.drain()
        except ConnectionError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.aclose()


def _has_ended(process: asyncio.subprocess.Process) -> bool:
    if process.returncode is None:
        try:
            os.kill(process.pid, 0)
        except ProcessLookupError:  # waited for, but the event loop was not told yet
            return True
    return process.returncode is not None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, as the protocol asks; then end the whole group, which may outlive its leader."""
    if process.stdin:
        process.stdin.close()
    with anyio.move_on_after(_GRACE_SECONDS):
        await process.wait()
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(process.pid, number)
        if process.returncode is None:
            with anyio.move_on_after(_GRACE_SECONDS):
                await process.wait()
    with anyio.move_on_after(_GRACE_SECONDS):
        while process.stdout and await process.stdout.read(_CHUNK):
            pass


def _last_line(said: bytes, secrets: Sequence[str]) -> str:
    """The last line of it, without secrets and what cannot be printed."""
    lines = said.decode("utf-8", "replace").splitlines()
    text = next((line for line in reversed(lines) if line.strip()), "")
    for secret in secrets:
        text = text.replace(secret, "***")
    text = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return _SECRET.sub(r"\1***", text)[:_SAID]


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
