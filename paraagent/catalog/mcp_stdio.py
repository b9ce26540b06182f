"""The stdio transport of an MCP server that is not trusted: bounded bytes, and its process group ends with it.

The SDK's own transport keeps a line in memory however long it is, and leaves the group of a server that has ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

_CHUNK = 65_536
_GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.1


class TooMuchError(Exception):
    """A server sent more than it may."""


@asynccontextmanager
async def stdio(command: Sequence[str], max_bytes: int) -> AsyncIterator[TransportStreams]:
    """Start a server without a shell, in a process group of its own that never outlives this context.

    Raises:
        OSError: it cannot be started.
        TooMuchError: it sent more than `max_bytes` in all.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        assert process.stdout
        line, total = bytearray(), 0
        # a child that the server leaves behind may hold its output open
        with anyio.CancelScope() as listening, incoming:
            group.start_soon(gone, listening)
            while piece := await process.stdout.read(_CHUNK):
                total += len(piece)
                if total > max_bytes:
                    raise TooMuchError
                *whole, rest = piece.split(b"\n")
                for end in whole:
                    line += end
                    with suppress(ValueError):  # servers print what is no message
                        await incoming.send(SessionMessage(jsonrpc_message_adapter.validate_json(bytes(line))))
                    line.clear()
                line += rest

    async def gone(scope: anyio.CancelScope) -> None:
        while process.returncode is None:
            await anyio.sleep(_LOOK_SECONDS)
        await anyio.sleep(_LOOK_SECONDS)  # what it said last
        scope.cancel()

    async def speak() -> None:
        assert process.stdin
        async with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                with suppress(ConnectionError):
                    await process.stdin.drain()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            group.start_soon(speak)
            try:
                yield received, sent
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, as the protocol asks; then end the whole group, which may outlive its leader."""
    if process.stdin:
        process.stdin.close()
    with anyio.move_on_after(_GRACE_SECONDS):
        await process.wait()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if process.returncode is None:
            with anyio.move_on_after(_GRACE_SECONDS):
                await process.wait()
    with anyio.move_on_after(_GRACE_SECONDS):
        while process.stdout and await process.stdout.read(_CHUNK):
            pass
