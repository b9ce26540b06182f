"""Live MCP servers as the tools of an agent: a catalog of what they list, and a backend that calls it."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

from paraagent.catalog.build import build_catalog
from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import pack_catalog
from paraagent.config import CatalogConfig
from paraagent.errors import NetworkError, ParaAgentError, RunError
from paraagent.files import canonical_json, write_atomic
from paraagent.progress import Quiet
from paraagent.retrieval.index import build_index
from paraagent.toolenv.mcp_config import ServerConfig
from paraagent.toolenv.mcp_server import LiveServer
from paraagent.toolenv.simulator import Response
from paraagent.trace import ErrorInfo

Confirm: TypeAlias = Callable[[ToolInterface, dict[str, Any]], Awaitable[bool]]
"""Whether a person allows a call that may change something."""
START_SECONDS = 60.0
"""A first start may install the server."""
_NAMED = 5
"""Malformed tools that are named."""


class McpServers:
    """Servers that run while this context does, all started at once."""

    name = "mcp"

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        *,
        timeout: float,
        concurrency: int = 8,
        confirm: Confirm | None = None,
        start_timeout: float = START_SECONDS,
    ) -> None:
        """
        Args:
            timeout: seconds of one call, and of a later start.
            concurrency: calls under way on one server.
            confirm: asked before each call of a tool that does more than read, one question at a time; None allows all.
            start_timeout: seconds of the first start, where that is more than `timeout`.
        """
        self._servers = {name: LiveServer(name, config.endpoint(), concurrency) for name, config in servers.items()}
        self._timeout, self._start_timeout = timeout, max(timeout, start_timeout)
        self._confirm, self._asking = confirm, asyncio.Lock()
        self._started: dict[str, LiveServer] = {}
        self.faults: list[str] = []
        """A sentence for each server that did not start, and for those with tools that cannot be used."""

    async def __aenter__(self) -> Self:
        """Raises ParaAgentError where no server starts: the reason of the only one, or of all."""
        try:
            faults = await asyncio.gather(*map(self._start, self._servers.values()))
        except BaseException:
            await self._close()
            raise
        found = [fault for fault in faults if fault is not None]
        self.faults += map(str, found)
        if not self._started:
            await self._close()
            raise found[0] if len(found) == 1 else NetworkError("; ".join(self.faults))
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._close()

    async def _start(self, server: LiveServer) -> ParaAgentError | None:
        try:
            await server.start(self._start_timeout)
        except ParaAgentError as error:
            return error
        self._started[server.name] = server
        if server.malformed:
            names = ", ".join(server.malformed[:_NAMED]) + (", …" if len(server.malformed) > _NAMED else "")
            self.faults.append(f"The MCP server {server.name} lists what is no tool ({names}): the rest is used")
        return None

    async def _close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def write_catalog(self, folder: Path) -> Path:
        """Write `catalog.duckdb` and `index/` of the tools that the servers listed; provider and service are a
        server's name in the configuration. Returns the catalog's path.

        Raises:
            RunError: none of them has a tool that can be used, or the folder cannot be written.
        """
        if not any(server.listing["tools"] for server in self._started.values()):
            raise RunError(
                "; ".join(
                    [f"No tool is listed by {', '.join(self._started)}: an agent has nothing to call", *self.faults]
                )
            )
        downloads = folder / "servers"
        sources = []
        for number, (name, server) in enumerate(sorted(self._started.items())):
            source = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-')}-{number}"
            snapshot = downloads / f"mcp-{hashlib.sha256(source.encode()).hexdigest()[:16]}.json"
            write_atomic(snapshot, canonical_json(server.listing | {"server": {"name": name}}))
            sources.append(f"mcp:{source}")
        config = CatalogConfig(sources=sources, min_description=0)
        built = build_catalog(config, downloads, folder, 1, Quiet(), sources=sources)
        if left_out := built["quarantine"]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
            self.faults.append(f"Not all tools of the MCP servers can be used ({reasons}): the rest is")
        catalog = folder / "catalog.duckdb"
        pack_catalog(catalog)
        build_index(catalog, folder / "index")
        return catalog

    async def answer(self, tool: ToolInterface, arguments: dict[str, Any]) -> Response | None:
        """What the tool's server answers; None where the tool belongs to none of them.

        Whatever goes wrong is an error for the model, of one of the kinds in `paraact.executor.ERROR_TYPES`.
        """
        server = self._started.get(tool.provider)
        if server is None:
            return None
        reads = tool.effect == "read"
        if not reads and not await self._allowed(tool, arguments):
            refused = ErrorInfo(type="PermissionError", msg="the person did not allow this call")
            return Response(refused, None, self.name, 0.0)
        begun = time.perf_counter()
        reply = await server.call(tool.source_name, arguments, repeat=reads, timeout=self._timeout)
        seconds = time.perf_counter() - begun
        return Response(reply.error, reply.result, self.name, seconds, reply.attempts)

    async def _allowed(self, tool: ToolInterface, arguments: dict[str, Any]) -> bool:
        if self._confirm is None:
            return True
        async with self._asking:
            return await self._confirm(tool, arguments)
