"""One live MCP server: started in a task that owns its connection, asked from any other, started again when it dies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import anyio
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
)
from pydantic import TypeAdapter, ValidationError

from paraagent.catalog.mcp_client import connected, ensure_command, explained, listed
from paraagent.catalog.mcp_link import BROKE, BROKEN, TOO_MUCH, UNREACHABLE, Attempt, Endpoint, Link, attempt
from paraagent.errors import ParaAgentError, RunError
from paraagent.paraact.executor import ToolError
from paraagent.toolenv.mcp_results import bounded, error_of, result_of, text_of
from paraagent.trace import ErrorInfo

MAX_MESSAGE_BYTES = 8_000_000
"""One message of a server; what it sends in all is not bounded."""
ATTEMPTS = 3
_PAUSE_SECONDS = 0.2
"""Before the second attempt; before the third it is twice as long."""
_CLOSE_SECONDS = 5.0
_RELIST_SECONDS = 5.0
_UNKNOWN = re.compile(r"unknown|not found|no such", re.IGNORECASE)
"""What a server may say of a tool that it does not have (any more)."""
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class Reply(NamedTuple):
    """What became of a call, and after how many attempts."""

    error: ErrorInfo | None
    result: Any
    attempts: int


class _BrokenError(Exception):
    """An attempt had no answer, since the connection is gone."""

    def __init__(self, sent: bool, said: str) -> None:
        super().__init__(said)
        self.sent = sent


class LiveServer:
    """A server that is there while it is needed."""

    def __init__(self, name: str, endpoint: Endpoint, concurrency: int) -> None:
        """At most `concurrency` calls are under way on it."""
        self.name, self._endpoint = name, endpoint
        self._slots = asyncio.Semaphore(concurrency)
        self._connection: _Connection | None = None
        self.listing: dict[str, Any] = {"server": {}, "tools": []}
        """What it listed when it was started: see `mcp_client.list_tools`."""
        self.malformed: tuple[str, ...] = ()
        """What it listed then that is no tool."""

    async def start(self, seconds: float) -> None:
        """Start it and read which tools it has.

        Raises:
            UsageError: its command does not exist.
            NetworkError: nothing answers, or not in time.
            RunError: it never ends its list, or sends too much.
        """
        self._connection = _Connection(self.name, self._endpoint, seconds)
        await self._connection.opened.wait()
        if self._connection.error is not None:
            raise self._connection.error
        self.listing = self._connection.listing
        self.malformed = tuple(self._connection.link.malformed)

    async def close(self) -> None:
        """End it with all its processes."""
        if self._connection is not None:
            await self._connection.close()

    async def call(self, tool: str, arguments: Mapping[str, Any], *, repeat: bool, timeout: float) -> Reply:
        """Call a tool, within `timeout` seconds from when a place is free.

        Args:
            repeat: a call that may have been received before the connection broke is made again.
        """
        attempts = 0
        async with self._slots:
            try:
                async with asyncio.timeout(timeout):
                    while True:
                        attempts += 1
                        try:
                            return Reply(None, await self._attempt(tool, arguments, timeout), attempts)
                        except _BrokenError as broken:
                            if attempts == ATTEMPTS or (broken.sent and not repeat):
                                raise
                            await asyncio.sleep(_PAUSE_SECONDS * attempts)
            except TimeoutError:
                error = ErrorInfo(type="TimeoutError", msg=f"no answer came within {timeout:g} seconds: call again")
            except _BrokenError as broken:
                said = "the connection broke; the call may or may not have taken effect" if broken.sent else str(broken)
                error = ErrorInfo(type="NetworkError", msg=said)
            except ToolError as tool_error:
                error = tool_error.info
            except Exception as unknown:
                error = ErrorInfo(type="ToolExecutionError", msg=f"the call broke off: {type(unknown).__name__}")
            return Reply(error, None, attempts)

    async def _attempt(self, tool: str, arguments: Mapping[str, Any], timeout: float) -> Any:
        connection = await self._open(timeout)
        if connection.link.changed:
            await connection.relist()
        if not connection.has(tool):
            raise _vanished()
        made = Attempt()
        token = attempt.set(made)
        secrets = self._endpoint.secrets
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            answer = await connection.client.session.send_request(request, _ANSWER)
        except MCPError as error:
            if (broken := connection.broken(error, made.sent)) is not None:
                raise broken from error
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND) and await connection.lost(tool):
                raise _vanished() from error
            raise error_of(error.code, error.message, secrets) from error
        except ValidationError as error:
            raise ToolError("ToolExecutionError", "the server answered what the protocol does not allow") from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise _BrokenError(made.sent, BROKE) from error
        finally:
            attempt.reset(token)
        unknown = isinstance(answer, CallToolResult) and answer.is_error and _UNKNOWN.search(text_of(answer))
        if unknown and await connection.lost(tool):
            raise _vanished()
        return result_of(answer, secrets)

    async def _open(self, seconds: float) -> _Connection:
        """The connection; a new one where the last is over."""
        if self._connection is None or self._connection.over:
            self._connection = _Connection(self.name, self._endpoint, seconds)
        connection = self._connection
        await connection.opened.wait()
        if connection.error is not None:
            said = bounded(str(connection.error), self._endpoint.secrets)
            raise _BrokenError(False, f"the server cannot be reached: {said}")
        return connection


class _Connection:
    """One start of a server. Its task enters and leaves the connection, as the SDK demands."""

    client: Client

    def __init__(self, name: str, endpoint: Endpoint, seconds: float) -> None:
        self.link = Link(MAX_MESSAGE_BYTES, whole=False, seconds=seconds)
        self.listing: dict[str, Any] = {"server": {}, "tools": []}
        self.opened = asyncio.Event()
        """It can be used, or `error` says why not."""
        self.error: ParaAgentError | None = None
        self._who, self._endpoint, self._seconds = f"The MCP server {name}", endpoint, seconds
        self._task = asyncio.create_task(self._own())

    @property
    def over(self) -> bool:
        """Nothing can be asked any more."""
        return self.link.closed.is_set()

    def has(self, tool: str) -> bool:
        return any(each.get("name") == tool for each in self.listing["tools"])

    async def relist(self) -> None:
        """Read again which tools there are; where that fails, what was known stays."""
        self.link.changed = False
        try:
            async with asyncio.timeout(_RELIST_SECONDS):
                self.listing = await listed(self.client, self._who)
        except Exception:
            self.link.changed = True

    async def lost(self, tool: str) -> bool:
        """Whether a call that failed did so because the tool is no more."""
        await self.relist()
        return not self.has(tool)

    def broken(self, error: MCPError, sent: bool) -> _BrokenError | None:
        """What an error says of the connection; None where it is the server's answer."""
        if error.code == UNREACHABLE:
            return _BrokenError(False, f"the server cannot be reached: {error.message}")
        if self._endpoint.url and error.code == INVALID_REQUEST and error.message == "Session terminated":
            self.link.closed.set()
            return _BrokenError(False, "the server ended the session")
        if TOO_MUCH in error.message:
            return None
        lost = self._endpoint.url and error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream ")
        if self.over or lost or error.code == BROKEN or BROKE in error.message:
            return _BrokenError(sent, BROKE)
        return None

    async def close(self) -> None:
        if not self.opened.is_set():
            self._task.cancel()
        self.link.closed.set()
        _, left = await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)
        if left:
            self._task.cancel()
            await asyncio.wait(left, timeout=_CLOSE_SECONDS)

    async def _own(self) -> None:
        try:
            ensure_command(self._endpoint)
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._seconds):
                    self.client = await stack.enter_async_context(connected(self._endpoint, self.link))
                    self.listing = await listed(self.client, self._who)
                self.opened.set()
                await self.link.closed.wait()
        except BaseException as error:
            if not self.opened.is_set():
                fault = explained(error, self.link, self._who, self._seconds)
                said = bounded(str(fault), self._endpoint.secrets)
                self.error = type(fault)(said) if isinstance(fault, ParaAgentError) else RunError(f"{self._who} ended")
            if not isinstance(error, Exception):
                raise
        finally:
            self.link.closed.set()
            self.opened.set()


def _vanished() -> ToolError:
    return ToolError("ToolNotFoundError", "the server does not offer this tool any more; search for another one")
