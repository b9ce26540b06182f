"""The grounded world: it answers any call of any interface, with no model.

An answer is a pure function of the world's seed and the session so far:
1. the same calls give the same bytes, for ever and in every process;
2. every result validates against the tool's `returns`;
3. arguments echo in the fields that name them;
4. a thing reads the same through every tool;
5. an id that neither this world nor the task issued is not found;
6. what was created, updated or deleted reads so afterwards;
7. worlds share nothing that changes;
8. lists honour filters, limits and pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, product
from typing import Any

from paraagent.catalog.entities import Entity
from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.executor import ToolError
from paraagent.seeds import derive
from paraagent.toolenv.compiled import CompiledTool, compiled_tool
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.lists import fill
from paraagent.toolenv.meaning import Meaning, Taken, fold_given
from paraagent.toolenv.scene import Scene
from paraagent.toolenv.session import Place, Record, Session
from paraagent.toolenv.words import GENERAL_NAMES
from paraagent.trace import Change

_EPOCH = 1_767_225_600
"""2026-01-01T00:00:00Z: clocks start in the half year after it."""
_ATTEMPTS = 4


class UnsatisfiableError(Exception):
    """No value satisfies the tool's `returns`: its schema contradicts itself."""


class World:
    """One world; cheap to make. Compiled tools are shared, read-only, by all worlds of the process."""

    def __init__(self, seed: int, issued: Iterable[Any] | None = None) -> None:
        """`issued` are the ids that the task gives; without them every id that is asked for exists."""
        self.seed = seed
        self.session = Session(seed, issued)
        self.now = _EPOCH + derive(seed, "clock") % 15_552_000 // 900 * 900
        """The world's clock in seconds since 1970, UTC."""

    def respond(self, tool: ToolInterface, arguments: Mapping[str, Any]) -> Any:
        """The result of a call whose arguments are valid.

        Raises:
            ToolError: something that the call names is not there.
            UnsatisfiableError: no result satisfies the tool's `returns`.
        """
        compiled = compiled_tool(tool)
        if compiled.alike:
            arguments = {name: arguments[name] for name in sorted(arguments)}
        scene = self._scene(compiled, arguments)
        key, made = derive(self.seed, *compiled.meaning.kind, compiled.identity(arguments).decode()), False
        if compiled.is_list:
            self._list(compiled, scene, arguments)
        elif scene.target is None and tool.effect == "create":
            scene.target, made = self._create(compiled, scene, arguments), True
        elif scene.target is None:
            scene.target = self._single(compiled, scene, key, arguments)
        if tool.effect in ("create", "update") and scene.target is not None and not made:
            scene.target.write(compiled.written(scene.given), scene.links)
        result = self._result(compiled, key, scene)
        if made and scene.target is not None:
            self.session.add(compiled.meaning.kind, scene.target)
        if tool.effect == "delete" and scene.target is not None:
            scene.target.deleted = True
        if scene.target is not None and tool.effect in ("create", "update", "delete"):
            fields = {} if tool.effect == "delete" else compiled.written(scene.given)
            self.session.note(
                compiled.meaning.kind, scene.target, fields, {} if tool.effect == "delete" else scene.links
            )
        return result

    def changes(self) -> tuple[Change, ...]:
        """What the session made, changed or deleted, as it stands now."""
        return tuple(
            Change(
                kind=" ".join(each.kind),
                key="" if each.made else f"{key:016x}",
                deleted=each.record.deleted,
                fields=each.fields,
                links={str(entity): value for entity, value in each.links.items()},
            )
            for key, each in self.session.written.items()
        )

    def _scene(self, compiled: CompiledTool, arguments: Mapping[str, Any]) -> Scene:
        """What the call names, all of it known. Raises `ToolError` where it is not."""
        meaning, links = compiled.meaning, {}
        taken = [(each, arguments[each.name]) for each in meaning.taken if each.name in arguments]
        for each, value in taken:
            if not each.own and not each.role and not isinstance(value, list):
                links[each.entity] = value
        place = _place(meaning, links, arguments) if compiled.weak else {}
        scene = Scene(self.session, fold_given(arguments, meaning), links, place)
        around = {}
        for each, value in taken:
            found = [self._find(each, part, scene) for part in (value if isinstance(value, list) else [value])]
            if each is meaning.own and found:
                scene.target, scene.only = found[0], found
                if value is not None and not isinstance(value, list):
                    found[0].ids[each.entity] = value  # the one of its ids that the call knows
            elif each.placed and each.entity in links:
                around[each.entity] = links[each.entity]
        target = scene.target
        if around and target is not None and meaning.own is not None:
            if any(str(target.links.get(entity, value)) != str(value) for entity, value in around.items()):
                raise _absent(meaning.own, arguments[meaning.own.name])
            target.link(around)
        return scene

    def _find(self, taken: Taken, value: Any, scene: Scene) -> Record:
        record = self.session.find(taken.entity, value, scene.place if taken.own else {})
        if record is None or record.deleted:
            raise _absent(taken, value)
        return record

    def _list(self, compiled: CompiledTool, scene: Scene, arguments: Mapping[str, Any]) -> None:
        """What the list is to show. Nothing else of the scene's target: the list is none."""
        lists, identity = compiled.lists, compiled.identity(arguments).decode()
        scene.target = None
        scene.page = lists.page(arguments)
        scene.token = lambda offset: f"{derive(self.seed, 'page', *compiled.meaning.kind, identity, offset):016x}"
        scene.wanted = {key: arguments[name] for name, key in lists.filters if name in arguments}
        scene.context = {
            key: arguments[name]
            for name in compiled.common
            if name in arguments and (key := folded(name)) not in GENERAL_NAMES
        }
        scene.members = [
            record
            for record in self.session.made(compiled.meaning.kind)
            if not record.deleted
            and all(str(record.links.get(entity)) == str(value) for entity, value in scene.links.items())
            and all(record.fields.get(key, value) == value for key, value in scene.context.items())
        ]

    def _create(self, compiled: CompiledTool, scene: Scene, arguments: Mapping[str, Any]) -> Record:
        record = Record(derive(self.seed, *compiled.meaning.kind, "made", self.session.count))
        record.write(compiled.written(scene.given), scene.links)
        for name, entity in compiled.meaning.naming.items():
            if isinstance(arguments.get(name), str | int):
                self.session.identify(record, entity, arguments[name], scene.place)
        return record

    def _single(self, compiled: CompiledTool, scene: Scene, key: int, arguments: Mapping[str, Any]) -> Record:
        """The one thing of its kind where the call points, such as the settings of an account."""
        record = self.session.single(key)
        if record.deleted:
            if compiled.tool.http_method != "PUT":
                raise ToolError("NotFoundError", f"there is no {_spoken(compiled.meaning.kind[1])} here any more")
            record.deleted = False
        record.link(scene.links)
        return record

    def _drafts(self, compiled: CompiledTool, key: int, scene: Scene, counted: bool = True) -> Iterator[Any]:
        """Results to try, the fullest first; where they are `counted`, what says how long their list is says it."""
        for generate, attempt in product((compiled.full, compiled.sparse), range(_ATTEMPTS)):
            result = generate()(key + attempt, self.now, scene)
            if counted and scene.window is not None:  # which the list has opened, if there is one
                fill(result, compiled.roles, scene.window, compiled.lists.token is not None)
            yield result

    def _result(self, compiled: CompiledTool, key: int, scene: Scene) -> Any:
        drafts, uncounted = self._drafts(compiled, key, scene), self._drafts(compiled, key, scene, counted=False)
        # A schema may forbid the count of its own list, which is then not insisted on.
        for result in chain(drafts, ({}, [], None, "", 0, False), uncounted):
            if compiled.valid(result):
                return result
        raise UnsatisfiableError(f"no value satisfies the result schema of {compiled.tool.name}")


def _place(meaning: Meaning, links: Mapping[Entity, Any], arguments: Mapping[str, Any]) -> Place:
    """Where the call's thing lies, as far as the call says."""
    lies_in = {str(entity): value for entity, value in links.items()}
    return lies_in | {folded(name): arguments[name] for name in meaning.untyped if name in arguments}


def _absent(taken: Taken, value: Any) -> ToolError:
    entity: Entity = taken.entity
    what = "" if entity.attribute == "resource" else f" with the {entity.attribute}"
    return ToolError("NotFoundError", f"there is no {_spoken(entity.noun)}{what} {str(value)[:120]!r}")


def _spoken(noun: str) -> str:
    return noun.rpartition("/")[2]
