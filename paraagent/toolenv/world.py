"""The grounded world: it answers any call of any interface, with no model (design.md section 7).

A result is a pure function of the world's seed, the tool and the arguments that identify what is asked for, so
1. the same call gives the same bytes, for ever and in every process;
2. every result validates against the tool's `returns`;
3. arguments echo in the fields that name them.
How an answer is to be shown (page size, fields, format) changes nothing in the entity behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.files import canonical_json
from paraagent.seeds import derive
from paraagent.toolenv.echo import EchoPlan
from paraagent.toolenv.generate import Compiler, Generator, validator
from paraagent.toolenv.identifiers import words
from paraagent.toolenv.words import PRESENTATION

_EPOCH = 1_767_225_600
"""2026-01-01T00:00:00Z: clocks start in the half year after it."""
_CACHED_TOOLS = 8_192
_ATTEMPTS = 4
_IDENTIFYING = frozenset(["id", "name", "key", "slug", "code", "arn", "email", "number", "uuid"])


class UnsatisfiableError(Exception):
    """No value satisfies the tool's `returns`: its schema contradicts itself."""


class World:
    """One world; cheap to make. Compiled tools are shared, read-only, by all worlds of the process."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = _EPOCH + derive(seed, "clock") % 15_552_000 // 900 * 900
        """The world's clock in seconds since 1970, UTC."""

    def respond(self, tool: ToolInterface, arguments: Mapping[str, Any]) -> Any:
        """The result of a call whose arguments are valid. Raises `UnsatisfiableError` where no result exists."""
        compiled = _compiled(tool)
        identity = compiled.identity(arguments)
        key = derive(self.seed, tool.tool_id, identity.decode())
        valid = compiled.valid
        for attempt in range(_ATTEMPTS):
            result = compiled.full(key + attempt, self.now, arguments)
            if valid(result):
                return result
        for attempt in range(_ATTEMPTS):
            result = compiled.sparse()(key + attempt, self.now, {})
            if valid(result):
                return result
        for result in ({}, [], None, "", 0, False):
            if valid(result):
                return result
        raise UnsatisfiableError(f"no value satisfies the result schema of {tool.name}")


class _CompiledTool:
    """What of a tool does not depend on the call."""

    __slots__ = ("_sparse", "_tool", "full", "optional", "required", "returns", "valid")

    def __init__(self, tool: ToolInterface) -> None:
        self._tool = tool
        self._sparse: Generator | None = None
        self.returns: Schema = tool.returns if tool.returns else _default_returns(tool)
        self.valid: Callable[[Any], bool] = validator(self.returns)
        self.full = self._compile(sparse=False)
        required = set(tool.required)
        self.required = tuple(name for name in sorted(required) if not _presentation(name))
        optional = [name for name in tool.properties if name not in required and not _presentation(name)]
        self.optional = frozenset(
            name for name in optional if not self.required or set(words(name)[-1:]) & _IDENTIFYING
        )

    def _compile(self, *, sparse: bool) -> Generator:
        plan = EchoPlan(self._tool)
        entity = words(min(plan.entities, default=""))
        return Compiler(plan, sparse=sparse).compile(self.returns, entity=entity)

    def sparse(self) -> Generator:
        if self._sparse is None:
            self._sparse = self._compile(sparse=True)
        return self._sparse

    def identity(self, arguments: Mapping[str, Any]) -> bytes:
        """The arguments that decide which entity is meant: all required ones, and optional ones that name something."""
        chosen = {name: arguments[name] for name in self.required if name in arguments}
        for name in arguments:
            if name in self.optional:
                chosen[name] = arguments[name]
        return canonical_json(chosen)


def _presentation(name: str) -> bool:
    parts = words(name)
    return bool(parts) and (
        parts[0] in PRESENTATION or parts[-1] in PRESENTATION or ("token" in parts and "page" in parts)
    )


def _default_returns(tool: ToolInterface) -> Schema:
    """What a tool answers whose source says nothing of results: that it went well, and the scalars it was given."""
    scalars = {
        name: schema
        for name, schema in tool.properties.items()
        if isinstance(schema, dict)
        and schema.get("type") in ("string", "integer", "number", "boolean")
        and name != "status"
    }
    properties = {"status": {"const": "ok"}, **scalars}
    return {"type": "object", "properties": properties, "required": ["status"]}


_cache: dict[str, tuple[ToolInterface, _CompiledTool]] = {}


def _compiled(tool: ToolInterface) -> _CompiledTool:
    """Compile once a tool; another interface under the same identity replaces the earlier one."""
    entry = _cache.get(tool.tool_id)
    if entry is not None and (entry[0] is tool or entry[0] == tool):
        return entry[1]
    compiled = _CompiledTool(tool)
    if len(_cache) >= _CACHED_TOOLS:
        _cache.pop(next(iter(_cache)), None)
    _cache[tool.tool_id] = (tool, compiled)
    return compiled
