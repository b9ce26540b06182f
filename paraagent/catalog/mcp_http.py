"""The streamable HTTP transport of an MCP server that is not trusted: bounded bytes, and a fault costs one request.

Left to the SDK, one request that fails on the network ends the connection and all that is under way on it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from paraagent.catalog.mcp_link import BROKE, BROKEN, HTTP_STATUS, TOO_MUCH, UNREACHABLE, Endpoint, Link

_REFUSED = frozenset({401, 403, 429, 502, 503, 504})
"""Statuses that say something of the way to the server, whatever their body is."""
_GOODBYE_SECONDS = 2.0
_ENDS_OF_EVENTS = (b"\n\n", b"\r\n\r\n", b"\r\r")


@asynccontextmanager
async def http(endpoint: Endpoint, link: Link) -> AsyncIterator[TransportStreams]:
    """The SDK's transport over a client that counts what comes, and makes errors of faults of the network."""
    async with (
        _Client(endpoint, link) as client,
        streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=None) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    def __init__(self, endpoint: Endpoint, link: Link) -> None:
        timeout = httpx2.Timeout(None, connect=link.seconds)
        super().__init__(headers={**endpoint.headers, "accept-encoding": "identity"}, timeout=timeout)
        self._link = link

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method == "DELETE":
            request.extensions["timeout"] = httpx2.Timeout(_GOODBYE_SECONDS).as_dict()
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            return _error(request, UNREACHABLE, "nothing answers at its address")
        except httpx2.TransportError:
            return _error(request, BROKEN, BROKE)
        if response.status_code in _REFUSED:
            await response.aclose()
            said = f"the web server answers {response.status_code} {response.reason_phrase}"
            return _error(request, HTTP_STATUS - response.status_code, said)
        response.headers.pop("content-encoding", None)  # a few bytes that unpack to gigabytes were not asked for
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = _Counted(response.stream, self._link, events)
        return response


class _Counted(httpx2.AsyncByteStream):
    """Counts bytes: of all responses, of this one, or of the events of a stream one by one."""

    def __init__(self, stream: Any, link: Link, events: bool) -> None:
        self._stream, self._link, self._events = stream, link, events
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                self._count(piece)
                yield piece
        except httpx2.SSEError:
            raise
        except httpx2.TransportError as error:
            raise self._fault(BROKE) from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _count(self, piece: bytes) -> None:
        link = self._link
        if link.whole:
            link.total += len(piece)
        else:
            last = max(piece.rfind(end) for end in _ENDS_OF_EVENTS) if self._events else -1
            self._size = len(piece) - last if last >= 0 else self._size + len(piece)
        if max(link.total, self._size) > link.max_bytes:
            link.exceeded = True
            raise self._fault(TOO_MUCH)

    def _fault(self, said: str) -> Exception:
        """An exception that the SDK makes an error of this one request."""
        return httpx2.SSEError(said) if self._events else httpx2.StreamError(said)


def _error(request: httpx2.Request, code: int, said: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": said}}
    return httpx2.Response(503, json=body, request=request)
