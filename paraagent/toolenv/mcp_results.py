"""What a call of an MCP tool gave, as the model sees it: a JSON value that can be stored, or an error and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)

from paraagent.catalog.mcp_json import storable
from paraagent.catalog.mcp_link import HTTP_STATUS
from paraagent.paraact.executor import ToolError
from paraagent.paraact.jsontext import JsonTextError, decode

MAX_ERROR = 600
"""Characters of an error's text."""
_NOT_FOUND = -32002
"""What servers answer where a resource does not exist."""
_KINDS = {
    INVALID_PARAMS: "InvalidRequestError",
    METHOD_NOT_FOUND: "ToolNotFoundError",
    REQUEST_TIMEOUT: "TimeoutError",
    _NOT_FOUND: "NotFoundError",
    HTTP_STATUS - 401: "AuthenticationError",
    HTTP_STATUS - 403: "PermissionError",
    HTTP_STATUS - 429: "RateLimitError",
    HTTP_STATUS - 502: "ServiceUnavailable",
    HTTP_STATUS - 503: "ServiceUnavailable",
    HTTP_STATUS - 504: "ServiceUnavailable",
}


def result_of(answer: CallToolResult | InputRequiredResult, secrets: Sequence[str] = ()) -> Any:
    """The structured content where there is one, else what the contents say: one alone, or a list.

    Data of images, sound and files never is part of it, only its kind and size; nor is any of `secrets`.

    Raises:
        ToolError: the tool says that it failed, or asks for what nobody here can give.
    """
    if isinstance(answer, InputRequiredResult):
        raise ToolError("ToolExecutionError", "the tool asks a person for more input, which nobody can give here")
    if answer.is_error:
        said = bounded(text_of(answer), secrets)
        raise ToolError("ToolExecutionError", said or "the tool failed and does not say why")
    if answer.structured_content is not None:
        value = answer.structured_content
    else:
        parts = [_part(content) for content in answer.content]
        value = parts[0] if len(parts) == 1 else parts or None
    return hidden(storable(value), secrets)


def text_of(answer: CallToolResult) -> str:
    """All its texts, in a row."""
    return " ".join(content.text for content in answer.content if isinstance(content, TextContent)).strip()


def error_of(code: int, message: str, secrets: Sequence[str] = ()) -> ToolError:
    """The error of a request that the server, or the way to it, refused with this JSON-RPC code."""
    return ToolError(_KINDS.get(code, "ToolExecutionError"), bounded(message, secrets) or f"the server said {code}")


def bounded(text: str, secrets: Sequence[str]) -> str:
    """An error's text, not too long and without secrets."""
    clean: str = hidden(storable(text.strip()), secrets)
    return clean if len(clean) <= MAX_ERROR else clean[: MAX_ERROR - 1] + "…"


def hidden(value: Any, secrets: Sequence[str]) -> Any:
    """The JSON value with stars for every secret in its texts."""
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "***")
        return value
    if isinstance(value, list):
        return [hidden(item, secrets) for item in value]
    if isinstance(value, dict):
        return {hidden(key, secrets): hidden(item, secrets) for key, item in value.items()}
    return value


def _part(content: ContentBlock) -> Any:
    match content:
        case TextContent(text=text):
            return _read(text)
        case ImageContent() | AudioContent():
            return {"type": content.type, "mimeType": content.mime_type, "bytes": _size(content.data)}
        case ResourceLink():
            return {"type": "link", "uri": content.uri, "title": content.title or content.name}
        case EmbeddedResource(resource=held):
            if isinstance(held, BlobResourceContents):
                return {"type": "blob", "uri": held.uri, "mimeType": held.mime_type, "bytes": _size(held.blob)}
            return {"type": "text", "uri": held.uri, "text": held.text}


def _read(text: str) -> Any:
    """The JSON object or array that a text is; else the text."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return decode(text)
        except JsonTextError:
            pass
    return text


def _size(base64: str) -> int:
    return max(0, len(base64) * 3 // 4 - base64[-2:].count("="))
