"""What tests of live MCP servers share: a call, a run of some servers, and the kind of a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from paraagent.files import canonical_json
from paraagent.toolenv.mcp import McpServers
from paraagent.toolenv.mcp_config import ServerConfig
from paraagent.toolenv.simulator import Response
from tests.toolenv import mcp_server
from tests.toolenv.interfaces import tool

SECRET = "hunter2-hunter2"
WRITES = [each.__name__ for each in mcp_server.WRITE]
Work = Callable[[McpServers], Awaitable[Any]]


async def call(servers: McpServers, name: str, server: str = "crooked", /, **arguments: Any) -> Response:
    effect = "other" if name in WRITES else "read"
    response = await servers.answer(tool(provider=server, source_name=name, effect=effect), arguments)
    assert response is not None
    assert response.seconds is not None
    canonical_json(response.result)
    return response


def run(work: Work, config: ServerConfig | dict[str, ServerConfig], **options: Any) -> Any:
    servers = config if isinstance(config, dict) else {"crooked": config}

    async def within() -> Any:
        async with McpServers(servers, **{"timeout": 60.0, **options}) as running:
            assert running.faults == []
            return await work(running)

    return asyncio.run(within())


def kind(response: Response) -> str:
    assert response.error is not None, response.result
    assert SECRET not in response.error.msg
    return response.error.type
