"""The root record of the catalog: one tool that can be found and called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "create", "update", "delete", "other"]
"""What a call does to the world."""

Schema = dict[str, Any]
"""A JSON Schema 2020-12 document, valid, free of `$ref`, bounded in depth and size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInterface:
    """One row of the table `tools` (see `sql/schema.sql`)."""

    tool_id: str
    """Identity across builds: `<provider>/<service>/<source name>`; never shown to a model."""
    name: str
    """What the model calls: `^[a-zA-Z0-9_-]{1,64}$`, unique in its catalog after case-folding."""
    source_name: str
    """What the source calls it: an operation name, a method id, an MCP tool name."""
    provider: str
    service: str
    category: str
    title: str
    description: str
    effect: Effect
    http_method: str
    path: str
    parameters: Schema
    """Always `{"type": "object", "properties": {…}, "required": […]}`."""
    returns: Schema | None
    deprecated: bool
    source: str
    """The spec without its version, e.g. `pypi:botocore`."""
    source_version: str
    licence: str
    quality: float
    """0 … 1."""

    @property
    def properties(self) -> dict[str, Schema]:
        found: dict[str, Schema] = self.parameters.get("properties", {})
        return found

    @property
    def required(self) -> list[str]:
        found: list[str] = self.parameters.get("required", [])
        return found
