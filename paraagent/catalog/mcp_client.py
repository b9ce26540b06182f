"""A live MCP server: a connection to it, and the one question of which tools it has. Bounded in time, pages and bytes.

As a source, its command is split as a shell would and run without one; it sees this process's environment, which is
never shown. `$NAME` in a command or an address stands for a variable of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp_types import Implementation, PaginatedRequestParams, ToolListChangedNotification

from paraagent import __version__
from paraagent.catalog.mcp_http import http
from paraagent.catalog.mcp_json import storable
from paraagent.catalog.mcp_link import TOO_MUCH, Endpoint, Link, TooMuchError, watched
from paraagent.catalog.mcp_stdio import stdio
from paraagent.catalog.secrets import expanded
from paraagent.catalog.sources.mcp import label
from paraagent.catalog.sources.openapi_files import is_url
from paraagent.errors import NetworkError, ParaAgentError, RunError, UsageError

SECONDS = 60.0
"""For everything: a first start may install the server."""
MAX_BYTES = 32_000_000
MAX_PAGES = 100
MAX_TOOLS = 5_000

for _name in ("mcp", "client", "httpx2"):
    # the SDK writes down addresses and what servers say; both may hold secrets, and every fault is told here anyway
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


def list_tools(name: str) -> dict[str, Any]:
    """`{"server": {name, version, title}, "tools": […]}` as JSON values, the tools in the server's order.

    Raises:
        UsageError: the command does not exist.
        NetworkError: nothing answers, or not in time.
        RunError: the server ends midway, never ends its list, or sends too much.
    """
    who = f"The MCP server {label(name)}"
    if is_url(name):
        endpoint = Endpoint(url=expanded(name))
    else:
        try:
            words = shlex.split(name)
            secrets = tuple(expanded(word) for word in words if "$" in word)
            endpoint = Endpoint(command=tuple(map(expanded, words)), secrets=secrets)
        except ValueError as error:
            raise UsageError(f"The command of mcp:{label(name)} cannot be split ({error}): check its quotes") from error
        ensure_command(endpoint)
    link = Link(MAX_BYTES, whole=True, seconds=SECONDS)
    try:
        return asyncio.run(_within(endpoint, link, who))
    except BaseException as error:
        fault = explained(error, link, who, SECONDS)
        raise fault from None if fault is error else error


def ensure_command(endpoint: Endpoint) -> None:
    """Raises UsageError where the endpoint is a command that does not exist."""
    if endpoint.url:
        return
    program = endpoint.command[0] if endpoint.command else ""
    at = Path(endpoint.cwd) / program if endpoint.cwd and os.sep in program else program
    if shutil.which(at, path=endpoint.env.get("PATH")) is None:
        raise UsageError(f"There is no command {program!r} on this machine: install it first")


async def _within(endpoint: Endpoint, link: Link, who: str) -> dict[str, Any]:
    async with asyncio.timeout(SECONDS), connected(endpoint, link) as client:
        return await listed(client, who)


@asynccontextmanager
async def connected(endpoint: Endpoint, link: Link) -> AsyncIterator[Client]:
    """A connection to a server, from its start to its end: processes and all.

    What the server asks of its client (to sample a model, to ask the person, to show folders) is refused. Enter and
    leave it in the same task; calls may come from any. What is raised is for `explained`.
    """

    async def told(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            link.changed = True

    transport = http(endpoint, link) if endpoint.url else stdio(endpoint, link)
    info = Implementation(name="paraagent", version=__version__)
    async with Client(watched(transport, link), client_info=info, cache=None, message_handler=told) as client:
        yield client


async def listed(client: Client, who: str) -> dict[str, Any]:
    """What `list_tools` gives, over a connection that is there."""
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += [storable(tool.model_dump(mode="json", by_alias=True, exclude_none=True)) for tool in page.tools]
        if len(tools) > MAX_TOOLS:
            raise RunError(f"{who} lists more than {MAX_TOOLS:,} tools: it is not used")
        cursor = page.next_cursor
        if cursor is None:
            break
    else:
        raise RunError(f"{who} does not end its list of tools after {MAX_PAGES} pages: it is not used")
    server = client.server_info.model_dump(mode="json", exclude_none=True) if client.server_info else {}
    return {"server": {key: server[key] for key in ("name", "version", "title") if key in server}, "tools": tools}


def explained(error: BaseException, link: Link, who: str, seconds: float) -> BaseException:
    """What went wrong with a connection, as the error that a person reads; a cancellation stays what it is."""
    first = _first(error)
    if isinstance(first, ParaAgentError | KeyboardInterrupt):
        return first
    if link.exceeded or TOO_MUCH in str(first):
        return RunError(f"{who} sent more than {link.max_bytes // 1_000_000} MB: it is not used")
    if isinstance(first, TimeoutError):
        return NetworkError(f"{who} did not answer within {seconds:.0f} seconds: try it by hand")
    if not isinstance(first, Exception):
        return first
    said = (str(first).strip() or type(first).__name__).splitlines()[0][:120]
    if link.exit_code is not None:
        said = f"it ended with exit code {link.exit_code}" + (f": {link.said}" if link.said else "")
    return NetworkError(f"{who} did not list its tools ({said}): check that it starts and answers")


def _first(error: BaseException) -> BaseException:
    """The cause inside groups of tasks; the most telling one where there are several."""
    while isinstance(error, BaseExceptionGroup):
        inner = error.exceptions
        error = next((e for e in inner if isinstance(e, TooMuchError)), inner[0])
    return error
