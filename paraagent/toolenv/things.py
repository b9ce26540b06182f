"""Objects of a result that are things: the same through every tool, known by their ids, keeping what was written.

A thing's fields follow from its key and their own place within it, never from where in a result it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from paraagent.catalog.entities import Entity
from paraagent.seeds import derive
from paraagent.toolenv.identifiers import singular
from paraagent.toolenv.leaves import MASK, Leaf, mix, pick
from paraagent.toolenv.meaning import WEAK, rank, scalar_type
from paraagent.toolenv.node import SHIFT, Node
from paraagent.toolenv.numbers import number_leaf
from paraagent.toolenv.scene import Scene
from paraagent.toolenv.session import Place, Record
from paraagent.toolenv.shapes import Check, check_of
from paraagent.toolenv.values import text_leaf
from paraagent.toolenv.words import NOUNS, ORGANISATIONS, PEOPLE, RESOURCES, TOPICS

_NOTHING: Mapping[Any, Any] = {}
_ATTEMPTS = 8


class Identity(NamedTuple):
    """How one kind of identifying value is made."""

    entity: Entity
    leaf: Leaf
    salt: int
    valid: Check

    def value(self, key: int, now: int, links: Mapping[Entity, Any]) -> Any:
        made = self.leaf(key * self.salt >> SHIFT & MASK, now)
        return _under(made, self.entity, links) if self.entity.attribute == "resource" else made


class Field(NamedTuple):
    """One field of a thing."""

    name: str
    node: Node
    names: tuple[str, ...]
    """Folded names of what may have been written or given for it, best first."""
    valid: Check
    identity: Identity | None


class Thing:
    """The compiled form of an object that is a thing."""

    __slots__ = ("_best", "_by_name", "_fields", "_lasting", "_own", "_part", "_salt", "_target")

    def __init__(self, fields: list[Field], own: Collection[Identity], salt: int, *, target: bool, part: bool) -> None:
        """`target` says that it is what the call is about; `part`, that it is a part of the thing that holds it.

        `salt` tells it apart from its holder, which has the same key; 0 where nothing holds it.
        """
        self._target, self._part, self._own, self._salt = target, part, tuple(own), salt
        self._best = min(own, key=lambda each: rank(each.entity), default=None)
        self._fields = tuple((field.name, *field.node, field.identity and field) for field in fields)
        self._lasting = tuple(field.node.make for field in fields if isinstance(field.node.make, Reference))
        self._by_name: dict[str, list[Field]] = {}
        for field in fields:
            for name in field.names:
                self._by_name.setdefault(name, []).append(field)

    def __call__(self, key: int, now: int, scene: Scene) -> dict[str, Any]:
        record = scene.record if self._part else scene.target if self._target else None
        if record is not None:
            given = scene.given if record is scene.target else _NOTHING
            return self.show(record, now, scene, given, scene.place)
        if self._salt:
            key = mix(key ^ self._salt)
        return self.show(self.record(key, now, scene, _NOTHING), now, scene)

    def record(self, key: int, now: int, scene: Scene, place: Place) -> Record:
        """The thing that stands here: one that the call or its holder refers to, else the one of this key."""
        best = self._best
        if best is None:
            return Record(mix(key))
        for identity in self._own:
            value = scene.known(identity.entity)
            if value is not None and not isinstance(value, list):
                return scene.session.seen(identity.entity, value, place)
        return scene.session.seen(best.entity, best.value(key, now, scene.links), place)

    def show(
        self, record: Record, now: int, scene: Scene, given: Mapping[str, Any] = _NOTHING, place: Place = _NOTHING
    ) -> dict[str, Any]:
        """The object; `given` are arguments that show in it without being written."""
        key, outer = record.key, scene.record
        said = dict(self._said(given, record.fields)) if given or record.fields else _NOTHING
        scene.record = record
        for refer in self._lasting:  # before what may be linked to the same
            refer.settle(record, now, scene)
        result = {
            name: _identify(record, field, said, now, scene, place)
            if field
            else said[name]
            if name in said
            else make(key * salt >> SHIFT & MASK, now)
            if salt
            else make(key, now, scene)
            for name, make, salt, field in self._fields
        }
        scene.record = outer
        return result

    def _said(self, given: Mapping[str, Any], written: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The fields of which something was given or written, with what they can hold of it."""
        by_name = self._by_name
        touched = {
            field.name: field for source in (given, written) for name in source for field in by_name.get(name, ())
        }
        for name, field in touched.items():
            values = (source.get(each) for source in (given, written) for each in field.names)
            value = next((value for value in values if value is not None and field.valid(value)), None)
            if value is not None:
                yield name, value


def _identify(record: Record, field: Field, said: Mapping[str, Any], now: int, scene: Scene, place: Place) -> Any:
    identity = field.identity
    assert identity is not None
    entity, value = identity.entity, record.ids.get(identity.entity)
    if value is None or not identity.valid(value):
        value = said.get(field.name)
        if value is None:
            value = _fresh(record, identity, now, scene, place)
    elif entity.attribute not in WEAK:
        return value  # identified already, and the same everywhere
    scene.session.identify(record, entity, value, place)
    return value


def _fresh(record: Record, identity: Identity, now: int, scene: Scene, place: Place) -> Any:
    """A value that identifies the thing and, if that can be had, no other one."""
    links, value = {**scene.links, **record.links}, None
    for attempt in range(_ATTEMPTS):
        value = identity.value(record.key + attempt, now, links)
        if scene.session.is_free(identity.entity, value, place, record):
            break
    return value


def identity_of(entity: Entity, schema: Any, role: str = "") -> Identity:
    """How values of this entity are made where the schema allows them; `role` tells apart two of one kind."""
    valid = check_of(schema)
    noun = last_noun(entity.noun)
    salt = derive(0, "identity", *entity, role) | 1
    if scalar_type(schema) in ("integer", "number"):
        leaf: Leaf = number_leaf("id", schema, True)
    elif entity.attribute == "resource" and "pattern" not in schema:
        leaf = _resource(entity.noun)
    else:
        leaf = text_leaf(entity.attribute, (noun,), schema)
    return Identity(entity, leaf, salt, valid)


class Reference:
    """A field that refers to another thing: the one that the thing shown is linked to, else one of its own."""

    __slots__ = ("_identity", "_lasting", "_role")

    def __init__(self, identity: Identity, *, role: bool, lasting: bool) -> None:
        """A `lasting` one says where the thing shown lies from then on. Of a `role`, such as a source, there may be
        several of one kind, so they are the thing's own whatever it is linked to."""
        self._identity, self._role, self._lasting = identity, role, lasting

    def __call__(self, key: int, now: int, scene: Scene) -> Any:
        value = None if self._role else scene.known(self._identity.entity)
        if value is None or not self._identity.valid(value):
            value = self._identity.value(key, now, scene.links)
        scene.session.issue(self._identity.entity, value)
        return value

    def settle(self, record: Record, now: int, scene: Scene) -> None:
        """Let a thing lie where this field says."""
        if self._lasting and self._identity.entity not in record.links:
            record.link({self._identity.entity: self._identity.value(record.key, now, scene.links)})


def last_noun(noun: str) -> str:
    """The word that says what sort of name the thing has: `instance` of `dbinstance` and of `projects/instances`."""
    noun = singular(noun.rpartition("/")[2])
    known = (word for size in range(len(noun) - 2) if (word := noun[size:]) in _KNOWN)
    return next(known, noun)


_KNOWN = PEOPLE | ORGANISATIONS | RESOURCES


def _resource(chain: str) -> Leaf:
    """`projects/atlas/locations/harbor-12`: a name under each collection."""
    parts = chain.split("/")
    first, second = pick(TOPICS), pick(NOUNS)

    def resource(key: int, now: int) -> str:
        texts = []
        for place, part in enumerate(parts):
            own = mix(key + place)
            texts.append(f"{part}/{first(own, now)}-{second(own >> 16, now)}-{own >> 40 & 0xFFF:03x}")
        return "/".join(texts)

    return resource


def _under(name: str, entity: Entity, links: Mapping[Entity, Any]) -> str:
    """The resource name with the beginning that the call named, so that children lie under their parent."""
    best = ""
    for link, value in links.items():
        inside = entity.noun.startswith(link.noun + "/") and isinstance(value, str)
        if link.attribute == "resource" and inside and value.count("/") > best.count("/"):
            best = value
    return "/".join([best, *name.split("/")[best.count("/") + 1 :]]) if best else name
