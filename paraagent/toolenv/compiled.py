"""What of a tool does not depend on the call: its result compiled, its lists, its meaning. Shared by all worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.files import canonical_json
from paraagent.toolenv.echo import EchoPlan
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.identifiers import folded, words
from paraagent.toolenv.lists import ListPlan, roles
from paraagent.toolenv.meaning import WEAK, Meaning
from paraagent.toolenv.node import Node
from paraagent.toolenv.words import PRESENTATION
from paraagent.validators import compile_validator

_CACHED_TOOLS = 8_192
_IDENTIFYING = frozenset(["id", "name", "key", "slug", "code", "arn", "email", "number", "uuid"])


class CompiledTool:
    """What of a tool does not depend on the call."""

    __slots__ = (
        "_full",
        "_sparse",
        "_telling",
        "alike",
        "common",
        "is_list",
        "list_path",
        "lists",
        "meaning",
        "returns",
        "roles",
        "tool",
        "valid",
        "weak",
    )

    def __init__(self, tool: ToolInterface) -> None:
        self.tool = tool
        self._sparse: Node | None = None
        self.returns: Schema = tool.returns if tool.returns else _default_returns(tool)
        self.valid: Callable[[Any], bool] = compile_validator(self.returns).is_valid
        self.meaning = Meaning(tool)
        self.alike = len({folded(name) for name in tool.properties}) < len(tool.properties)
        """`eventId` and `event_id` may both be given, and which counts must not depend on their order."""
        self.weak = any(each.entity.attribute in WEAK for each in self.meaning.taken)
        """Something of it is told apart only within its place."""
        self.lists = ListPlan(tool, self.meaning)
        self.is_list = False
        self._full = self._compile(sparse=False)
        self.roles = tuple(roles(self.returns)) if self.is_list else ()
        required = set(tool.required)
        paging = self.lists.paging if self.is_list else frozenset()
        telling = [name for name in sorted(tool.properties) if name not in paging and not _presentation(name)]
        needed = tuple(name for name in telling if name in required)
        linked = {each.name for each in self.meaning.taken if not each.role}
        roles_taken = [each.name for each in self.meaning.taken if each.role]
        self.common = tuple(name for name in dict.fromkeys([*needed, *roles_taken]) if name not in linked)
        """Parameters of a list that say what all its elements have in common, beside what they lie in."""
        optional = [name for name in telling if name not in required]
        named = [name for name in optional if not needed or set(words(name)[-1:]) & _IDENTIFYING]
        self._telling = tuple(self._identifying(needed, named))

    def _compile(self, *, sparse: bool) -> Node:
        plan = EchoPlan(self.tool)
        entity = words(min(plan.entities, default=""))
        lists = self.lists if self.tool.effect == "read" else None
        compiler = Compiler(plan, self.meaning, lists, sparse=sparse)
        generator = compiler.compile(self.returns, entity=entity)
        self.list_path = compiler.list_path or ()
        self.is_list = compiler.list_path is not None
        self.weak = self.weak or compiler.weak
        return generator

    def full(self) -> Node:
        return self._full

    def sparse(self) -> Node:
        if self._sparse is None:
            self._sparse = self._compile(sparse=True)
        return self._sparse

    def written(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What of the given arguments, by folded name, a writing tool leaves behind."""
        taken = {folded(each.name) for each in self.meaning.taken if not each.role}
        return {name: value for name, value in given.items() if name not in taken}

    def identity(self, arguments: Mapping[str, Any]) -> bytes:
        """The arguments that decide which entity is meant: all required ones, and optional ones that name something."""
        return canonical_json({key: arguments[name] for name, key in self._telling if name in arguments})

    def _identifying(self, required: Sequence[str], optional: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The parameters that do so, and their folded names; where two are alike, the later one counts."""
        names = required
        if self.tool.effect in ("update", "other"):
            placed = {each.name for each in self.meaning.taken} | set(self.meaning.untyped)
            names = tuple(name for name in names if name in placed) or names
        filters = {name for name, _ in self.lists.filters} if self.is_list else set()
        yield from ((name, folded(name)) for name in names)
        yield from ((name, folded(name)) for name in optional if name not in filters)


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


_cache: dict[str, tuple[ToolInterface, CompiledTool]] = {}


def compiled_tool(tool: ToolInterface) -> CompiledTool:
    """Compile once a tool; another interface under the same identity replaces the earlier one."""
    entry = _cache.get(tool.tool_id)
    if entry is not None and (entry[0] is tool or entry[0] == tool):
        return entry[1]
    compiled = CompiledTool(tool)
    if len(_cache) >= _CACHED_TOOLS:
        _cache.pop(next(iter(_cache)), None)
    _cache[tool.tool_id] = (tool, compiled)
    return compiled
