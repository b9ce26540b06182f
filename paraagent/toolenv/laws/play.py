"""The eight laws as checks of what a world answers, over the tools of one kind of thing.

    list -> get what it lists -> guess ids -> page and filter -> create, update, delete -> read again

Answers alone are compared: no check looks into the world.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paraagent.catalog.entities import Entity
from paraagent.catalog.interface import ToolInterface
from paraagent.files import canonical_json
from paraagent.paraact.executor import ToolError
from paraagent.seeds import derive
from paraagent.toolenv.compiled import CompiledTool, compiled_tool
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.laws.findings import Findings
from paraagent.toolenv.laws.lists import check_list
from paraagent.toolenv.laws.shown import Shown, apart, own_paths, shown
from paraagent.toolenv.meaning import Taken, scalar_type
from paraagent.toolenv.sample import draw_arguments
from paraagent.toolenv.shapes import check_of, kind_of, merged
from paraagent.toolenv.words import PRESENTATION
from paraagent.toolenv.world import UnsatisfiableError, World

_READ_ALONE = 3
"""Things of one result that are read by the other tools."""
_WRITTEN = 6
"""Optional parameters that a writing call gives."""


def check_laws(tools: Sequence[ToolInterface], seed: int) -> Findings:
    """Play the tools of one kind of thing in a world of this seed, twice, and check every law on the way."""
    first, second = _Play(tools, seed, Findings()), _Play(tools, seed, Findings())
    first.run()
    second.run()
    for tool in tools:
        same = first.answers[tool.name] == second.answers[tool.name]
        first.found.check(1, tool.name, same, "another answer the second time")
    first.found.digest = hashlib.sha256(canonical_json(first.answers)).hexdigest()
    return first.found


class _Member(NamedTuple):
    """A tool that takes part."""

    tool: ToolInterface
    compiled: CompiledTool
    own: Taken | None
    """The parameter that says which thing is meant."""
    paths: tuple[tuple[str, ...], ...]
    """Where results show what identifies things."""
    arguments: dict[str, Any]
    """The required ones."""

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def lists_own(self) -> bool:
        """It lists things of the kind themselves, and not others that hold some."""
        depth = (*self.compiled.list_path, "[]").count("[]")
        return self.compiled.is_list and any(path.count("[]") == depth for path in self.paths)


class _Play:
    """One world and the tools of one kind."""

    def __init__(self, tools: Sequence[ToolInterface], seed: int, found: Findings) -> None:
        self.seed, self.found = seed, found
        self.answers: dict[str, list[str]] = {tool.name: [] for tool in tools}
        self.fixed: dict[tuple[Entity | str, str], Any] = {}
        """What a task would give: one value an entity and type, so that all tools speak of the same places."""
        every = [compiled_tool(tool) for tool in tools]
        owns = [each.meaning.own for each in every]
        self.entity = next((own.entity for own in owns if own), None)
        members = []
        for each, own in zip(every, owns, strict=True):
            arguments = draw_arguments(
                each.tool, derive(seed, "laws"), (), lambda *made, each=each: self._fix(each, *made)
            )
            if arguments is None:
                found.outside[each.tool.name] = "no valid arguments could be made"
            else:
                own = own if own and own.entity == self.entity else None
                arguments |= _first_page(each, arguments) if each.is_list else {}
                members.append(_Member(each.tool, each, own, own_paths(each, self.entity), arguments))
        self.members = members
        self.readers = [member for member in members if member.tool.effect == "read"]
        self.world = self._fresh()

    def _fresh(self) -> World:
        """Another world of the same seed, whose task gives the same ids."""
        return World(self.seed, self._issued())

    def _issued(self) -> set[str]:
        return {str(part) for value in self.fixed.values() for part in _parts(value)}

    def _fix(self, compiled: CompiledTool, name: str, made: Any) -> Any:
        """The value that is given throughout for what this parameter takes."""
        entity = next((each.entity for each in compiled.meaning.taken if each.name == name), None)
        if entity is None and name not in compiled.meaning.untyped:
            return made
        schema, key = compiled.tool.properties[name], entity or folded(name)
        value = self.fixed.setdefault((key, scalar_type(schema)), made)
        return value if check_of(schema)(value) else self.fixed.setdefault((key, compiled.tool.name), made)

    def _call(self, world: World, member: _Member, arguments: Mapping[str, Any]) -> Any:
        """The result, checked against laws 2 and 3; None where there can be none. Raises `ToolError`."""
        tool, found = member.tool, self.found
        try:
            result = world.respond(tool, arguments)
        except UnsatisfiableError:
            found.outside[tool.name] = "no value satisfies its result schema"
            return None
        except ToolError as error:
            self.answers[tool.name].append(error.info.type)
            raise
        self.answers[tool.name].append(canonical_json(result).decode())
        if tool.returns is None:
            found.outside[tool.name] = "its source says nothing of results"
        else:
            found.check(2, tool.name, member.compiled.valid(result), f"{arguments} -> {result}")
        if isinstance(result, dict) and not member.compiled.is_list:
            self._echoes(member, arguments, result)
        return result

    def _echoes(self, member: _Member, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Arguments stand in the fields of their names, but the `id` of a team is no `id` of its repository."""
        meaning, properties = member.compiled.meaning, merged(member.compiled.returns).get("properties", {})
        taken = {each.name: each.entity for each in meaning.taken}
        spelled = Counter(map(folded, arguments))
        for name, value in arguments.items():
            if name not in result or isinstance(value, list) or not check_of(properties[name])(value):
                continue
            if spelled[folded(name)] > 1 or name in meaning.foreign:
                continue
            typed = meaning.field(name, properties[name])
            named = taken.get(name) or meaning.naming.get(name)
            if typed is None or typed.entity == named:
                shown = _as_far(result[name], value)
                self.found.check(
                    3, member.name, shown == _as_far(value, result[name]), f"{name}: {value!r} -> {shown!r}"
                )

    def _try(self, law: int, member: _Member, arguments: Mapping[str, Any]) -> Any:
        """The result of a call that this law says finds what it names; None where it does not."""
        try:
            return self._call(self.world, member, arguments)
        except ToolError as error:
            self.found.check(law, member.name, error.info.type != "NotFoundError", f"{arguments}: {error.info.msg}")
            return None

    def _missing(self, world: World, member: _Member, arguments: Mapping[str, Any]) -> bool:
        """Whether what the call names is not there."""
        try:
            self._call(world, member, arguments)
        except ToolError as error:
            return error.info.type == "NotFoundError"
        return False

    def _about(self, member: _Member, value: Any, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments turned to one thing; None where the tool takes no such value."""
        if member.own is None:
            return None
        schema = member.tool.properties[member.own.name]
        asked = [value] if kind_of(schema) == "array" else value
        return {**arguments, member.own.name: asked} if check_of(schema)(asked) else None

    def _where(self, reader: _Member, thing: Shown | None) -> dict[str, Any]:
        """The reader's arguments, in the place where the thing itself says that it lies."""
        if thing is None:
            return reader.arguments
        taken = {each.entity: each.name for each in reader.compiled.meaning.taken if each.name in reader.arguments}
        arguments, properties = dict(reader.arguments), thing.schema.get("properties", {})
        for field, value in thing.thing.items():
            typed = reader.compiled.meaning.field(field, properties.get(field, {}))
            name = taken.get(typed.entity) if typed and typed.rule != "role" and not typed.is_own else None
            may_differ = name and check_of(properties.get(field, {}))(arguments[name])
            if name and may_differ and check_of(reader.tool.properties[name])(value):
                arguments[name] = value
        return arguments

    def _things(self, member: _Member, result: Any) -> list[Shown]:
        return shown(result, member.compiled.returns, member.paths)

    def run(self) -> None:
        """Everything, in the order of an episode: what reads before what writes."""
        for member in self.members:
            self.world = self._fresh()
            result = self._try(4, member, member.arguments)
            if member.tool.effect == "read":
                for thing in self._things(member, result)[:_READ_ALONE]:
                    self._reads_alike(4, thing, member.arguments)
        for member in self.members:
            self._guess(member)
        for member in self.readers:
            if member.compiled.is_list:
                self._pages(member)
        for member in self.members:
            self.world = self._fresh()
            if member.tool.effect == "create" and member.compiled.meaning.own is None:
                self._create(member)
            elif member.tool.effect in ("create", "update") and member.own is not None:
                self._update(member)
            elif member.tool.effect == "delete" and member.own is not None:
                self._delete(member, member.arguments.get(member.own.name))

    def _reads_alike(self, law: int, thing: Shown, given: Mapping[str, Any]) -> None:
        """Every tool that reads one thing finds it and says the same of it; arguments echo, whatever they are."""
        for reader in self.readers:
            arguments = self._about(reader, thing.value, self._where(reader, thing))
            if arguments is None:
                continue
            echoed = frozenset(map(folded, {**given, **arguments}))
            for other in self._things(reader, self._try(law, reader, arguments)):
                if other.value == thing.value:
                    seen = next(apart(thing.thing, other.thing, thing.schema, other.schema, echoed), "")
                    self.found.check(law, reader.name, not seen, f"{thing.value!r}{seen}")

    def _guess(self, member: _Member) -> None:
        """Each parameter that takes what identifies something, with a value that nobody issued."""
        for taken in member.compiled.meaning.taken:
            made = draw_arguments(member.tool, derive(self.seed, "guess"), [taken.name]) or {}
            guess = made.get(taken.name)
            if _parts(guess) and self._issued().isdisjoint(map(str, _parts(guess))):
                asked = {**member.arguments, taken.name: guess}
                missing = self._missing(self._fresh(), member, asked)
                self.found.check(5, member.name, missing, f"{taken.name}: {guess!r}")

    def _pages(self, member: _Member) -> None:
        """Limits, pages and filters of a list."""
        self.world = self._fresh()

        def ask(arguments: Mapping[str, Any]) -> Any:
            return self._call(self.world, member, arguments)

        try:
            for holds, seen in check_list(member.compiled, member.arguments, ask):
                self.found.check(8, member.name, holds, seen)
        except ToolError as error:
            self.found.check(8, member.name, False, error.info.msg)

    def _writing(self, member: _Member) -> dict[str, Any]:
        """The required arguments and some that say what to write."""
        typed = {each.name for each in member.compiled.meaning.taken}
        plain = [
            name for name, schema in member.tool.properties.items() if scalar_type(schema) in ("string", "boolean")
        ]
        free = [name for name in plain if name not in typed and name not in member.tool.required][:_WRITTEN]
        drawn = draw_arguments(member.tool, derive(self.seed, "write"), free) or {}
        return {**member.arguments, **{name: drawn[name] for name in free if name in drawn}}

    def _create(self, member: _Member) -> None:
        arguments = self._writing(member)
        result = self._try(6, member, arguments)
        single = [path for path in member.paths if "[]" not in path or path[0] == "[]" not in path[1:]]
        made = next(iter(shown(result, member.compiled.returns, tuple(single))), None)
        if made is None:
            return
        self._reads_alike(6, made, {})
        self._wrote(member, arguments, made.value, made)
        for reader in self.readers:
            asked = self._about(reader, made.value, reader.arguments)
            if asked is not None and str(made.value) not in self._issued():
                self.found.check(7, reader.name, self._missing(self._fresh(), reader, asked), f"{made.value!r}")
        self._listed(member, made.value, there=True)
        for other in self.members:
            if other.tool.effect == "delete" and other.own and self._about(other, made.value, other.arguments):
                self._delete(other, made.value, made)
                self._listed(member, made.value, there=False)
                return

    def _update(self, member: _Member) -> None:
        arguments = self._writing(member)
        value = arguments.get(member.own.name) if member.own else None
        result = self._try(6, member, arguments)
        if value is not None and result is not None:
            seen = next((each for each in self._things(member, result) if each.value == value), None)
            self._wrote(member, arguments, _parts(value)[0], seen)

    def _delete(self, member: _Member, value: Any, thing: Shown | None = None) -> None:
        """Deleted once, a thing is there no more, in this session."""
        value = next(iter(_parts(value)), None)
        arguments = self._about(member, value, self._where(member, thing))
        if value is None or arguments is None or self._try(6, member, arguments) is None:
            return
        self.found.check(6, member.name, self._missing(self.world, member, arguments), f"{value!r} is deleted twice")
        for reader in self.readers:
            asked = self._about(reader, value, self._where(reader, thing))
            if asked is not None:
                self.found.check(6, reader.name, self._missing(self.world, reader, asked), f"{value!r} is deleted")
                if str(value) in self._issued():
                    there = not self._missing(self._fresh(), reader, asked)
                    self.found.check(7, reader.name, there, f"{value!r} is deleted elsewhere")

    def _wrote(self, writer: _Member, arguments: Mapping[str, Any], value: Any, seen: Shown | None = None) -> None:
        """What was written is what readers show, where they have a field that can hold it."""
        typed = {folded(each.name) for each in writer.compiled.meaning.taken} | PRESENTATION
        typed |= {folded(path[-1]) for member in self.members for path in member.paths}
        for reader in self.readers:
            asked = self._about(reader, value, self._where(reader, seen))
            if asked is None:
                continue
            skipped = typed | {folded(name) for name in asked}
            for thing in self._things(reader, self._try(6, reader, asked)):
                seen = thing if thing.value == value else seen
                properties = thing.schema.get("properties", {})
                for name in arguments.keys() & thing.thing.keys():
                    written, held = arguments[name], thing.thing[name]
                    if thing.value == value and folded(name) not in skipped and check_of(properties.get(name))(written):
                        self.found.check(6, reader.name, held == written, f"{name}: {written!r} -> {held!r}")

    def _listed(self, writer: _Member, value: Any, *, there: bool) -> None:
        """What was made stands in the lists of the place where it was made, until it is deleted."""
        places = {each.entity for each in writer.compiled.meaning.taken if each.name in writer.arguments}
        for reader in self.readers:
            taken = {each.name: each.entity for each in reader.compiled.meaning.taken if each.name in reader.arguments}
            chosen = reader.arguments.keys() - taken.keys() - reader.compiled.lists.paging
            if reader.lists_own and not chosen and places.issuperset(taken.values()):
                things = self._things(reader, self._try(6, reader, reader.arguments))
                if things and type(things[0].value) is not type(value):
                    continue
                found = any(each.value == value for each in things)
                self.found.check(6, reader.name, found == there, f"{value!r} in the list: {found}")


def _first_page(compiled: CompiledTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Required arguments that page, turned to the first page."""
    lists, properties = compiled.lists, compiled.tool.properties
    first = {lists.number: lists.first_number, lists.offset: lists.first_offset, lists.limit: 50}
    return {
        name: value for name, value in first.items() if name and name in arguments and check_of(properties[name])(value)
    }


def _as_far(value: Any, other: Any) -> Any:
    """Of an object the fields that the other one has too: a body says what to write, and the thing shows more."""
    both = isinstance(value, dict) and isinstance(other, dict)
    return {name: value[name] for name in sorted(value.keys() & other.keys())} if both else value


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]
