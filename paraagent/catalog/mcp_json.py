"""JSON from a server that nothing here vouches for, made such that it can be stored, sent and compared."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from paraagent.catalog.mcp_link import TOO_MUCH

MAX_DEPTH = 64
ENDS = 256
"""Bytes at each end of a message in which its id is looked for."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def storable(value: Any, depth: int = 1) -> Any:
    """The value without half surrogates, NaN, integers beyond 64 bits and levels beyond `MAX_DEPTH`."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            return "(nested too deeply)"
        if isinstance(value, list):
            return [storable(item, depth + 1) for item in value]
        return {storable(str(key)): storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value) if value.bit_length() < 4_096 else "(a number of too many digits)"
    return value


def message(line: bytes, tail: bytes = b"") -> SessionMessage | None:
    """The message on a line, or None where it is none.

    A response that cannot be read is an error of its request, so that nobody waits for it.

    Args:
        tail: the end of a line that was too long to be kept.
    """
    if not tail:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line))
        except ValueError:
            if not line.lstrip().startswith(b"{"):
                return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(storable(json.loads(line))))
        except (ValueError, RecursionError):
            pass
    said = TOO_MUCH if tail else "the answer is no JSON that can be read"
    found = _ID_FIRST.match(line[:ENDS]) or _ID_LAST.search((line[-ENDS:] + tail)[-ENDS:])
    if found is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=said)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))
