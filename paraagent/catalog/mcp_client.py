"""One question to a live MCP server: which tools do you have? Bounded in time, pages and bytes.

The command is split as a shell would and run without one; it sees this process's environment, which is never shown.
`$NAME` in a command or an address stands for a variable of it.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from paraagent.catalog.secrets import expanded
from paraagent.catalog.sources.mcp import label
from paraagent.catalog.sources.openapi_files import is_url
from paraagent.errors import NetworkError, ParaAgentError, RunError, UsageError

SECONDS = 60.0
"""For everything: a first start may install the server."""
MAX_BYTES = 32_000_000
MAX_PAGES = 100
MAX_TOOLS = 5_000


def list_tools(name: str) -> dict[str, Any]:
    """`{"server": {name, version, title}, "tools": […]}` as JSON values, the tools in the server's order.

    Raises:
        UsageError: the command does not exist.
        NetworkError: nothing answers, or not in time.
        RunError: the server ends midway, never ends its list, or sends too much.
    """
    who = f"The MCP server {label(name)}"
    command: list[str] = []
    if not is_url(name):
        try:
            command = [expanded(word) for word in shlex.split(name)]
        except ValueError as error:
            raise UsageError(f"The command of mcp:{label(name)} cannot be split ({error}): check its quotes") from error
        if not command or shutil.which(command[0]) is None:
            raise UsageError(f"There is no command {command[0] if command else ''!r} on this machine: install it first")
    try:
        return asyncio.run(_within(expanded(name) if not command else name, command, who))
    except BaseException as error:
        first = _first(error)
        if isinstance(first, KeyboardInterrupt | ParaAgentError):
            raise first from None
        if isinstance(first, TimeoutError):
            raise NetworkError(f"{who} did not answer within {SECONDS:.0f} seconds: try it by hand") from error
        if type(first).__name__ == "TooMuchError":
            raise RunError(f"{who} sent more than {MAX_BYTES // 1_000_000} MB: it is not used") from error
        if isinstance(first, Exception):
            said = (str(first).strip() or type(first).__name__).splitlines()[0][:120]
            raise NetworkError(f"{who} did not list its tools ({said}): check that it starts and answers") from error
        raise


async def _within(name: str, command: list[str], who: str) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS):
        return await _ask(name, command, who)


async def _ask(name: str, command: list[str], who: str) -> dict[str, Any]:
    from mcp.client.client import Client
    from mcp_types import Implementation, PaginatedRequestParams

    from paraagent import __version__
    from paraagent.catalog.mcp_stdio import stdio

    transport: AbstractAsyncContextManager[Any] = stdio(command, MAX_BYTES) if command else _http(name)
    info = Implementation(name="paraagent", version=__version__)
    async with Client(transport, client_info=info, cache=None) as client:
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            if len(tools) > MAX_TOOLS:
                raise RunError(f"{who} lists more than {MAX_TOOLS:,} tools: it is not used")
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            raise RunError(f"{who} does not end its list of tools after {MAX_PAGES} pages: it is not used")
        server = client.server_info.model_dump(mode="json", exclude_none=True) if client.server_info else {}
    return {"server": {key: server[key] for key in ("name", "version", "title") if key in server}, "tools": tools}


@asynccontextmanager
async def _http(url: str) -> AsyncIterator[Any]:
    """The SDK's transport over a client that counts what comes."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from paraagent.catalog.mcp_stdio import TooMuchError

    total = 0

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal total
            async for piece in self._stream:
                total += len(piece)
                if total > MAX_BYTES:
                    raise TooMuchError
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def count(response: httpx2.Response) -> None:
        response.stream = Counted(response.stream)

    async with (
        httpx2.AsyncClient(timeout=SECONDS, event_hooks={"response": [count]}) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


def _first(error: BaseException) -> BaseException:
    """The cause inside groups of tasks; the most telling one where there are several."""
    while isinstance(error, BaseExceptionGroup):
        inner = error.exceptions
        error = next((e for e in inner if type(e).__name__ == "TooMuchError"), inner[0])
    return error
