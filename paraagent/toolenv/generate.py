"""A JSON Schema compiled into a function from (key, clock, arguments) to a value that validates.

Compiling chooses everything that does not depend on the call: branches of unions, bounds, names, echoes. Running only
mixes keys. A field's value depends on the key and the field's place alone, so equal keys give equal entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.catalog.nouns import container
from paraagent.toolenv.arrays import MANY, array, members, written
from paraagent.toolenv.echo import KEYS, EchoPlan
from paraagent.toolenv.identifiers import folded, words
from paraagent.toolenv.leaves import MASK, mix
from paraagent.toolenv.lists import ListPlan
from paraagent.toolenv.meaning import WEAK, Meaning
from paraagent.toolenv.node import SHIFT, Node, constant
from paraagent.toolenv.numbers import number_leaf
from paraagent.toolenv.place import Place
from paraagent.toolenv.scene import Scene
from paraagent.toolenv.session import Session
from paraagent.toolenv.shapes import check_of, choice, kind_of, merged
from paraagent.toolenv.things import Field, Identity, Reference, Thing, identity_of, last_noun
from paraagent.toolenv.values import text_leaf
from paraagent.toolenv.words import TOPICS

_OPTIONAL_FIELDS = (24, 16, 10, 6)
"""Optional fields shown of an object, by its depth; deeper ones show the required fields alone."""
_ITEMS = ((2, 4), (2, 3), (1, 2))
"""Fewest and most elements of an array where the schema leaves it open, by depth."""
_TELLING = ("id", "name", "status", "state", "title")
_WRAPPERS = frozenset({"data", "result", "response", "item", "object", "body"})
_TRIALS = 3
_GONE = frozenset({"deleted", "removed", "trashed", "purged"})
"""Words of what is true of nothing that can still be read."""
_FULL = (1_000, 30, 5, 2)
"""Elements of an array that are ever made, by the arrays around it; a schema that asks for more has no answer."""


class Compiler:
    """Compiles the schemas of one tool. `sparse` leaves out optional fields, where the full form fails.

    With a `meaning`, objects that are things are compiled to `Thing`s, and what the tool lists to a list of them.
    """

    def __init__(
        self,
        echo: EchoPlan | None = None,
        meaning: Meaning | None = None,
        lists: ListPlan | None = None,
        *,
        sparse: bool = False,
    ) -> None:
        self._echo, self._meaning, self._lists = echo, meaning, lists
        self._sparse = sparse
        self.list_path: tuple[str, ...] | None = None
        """Where in the result what the tool lists stands; None where it lists nothing."""
        self.weak = False
        """Whether it shows something that is told apart only within its place."""

    def compile(self, schema: Any, entity: Sequence[str] = ()) -> Node:
        """The generator of a result's schema; `entity` is the words of what the result is about."""
        return self._compile(schema, Place("", (), tuple(entity)))

    def compile_field(self, name: str, schema: Any, entity: Sequence[str] = ()) -> Node:
        """The generator of one named value of `entity`, such as an argument."""
        return self._compile(schema, Place("", (), tuple(entity)).inside(name, same=False))

    def _compile(self, schema: Any, place: Place) -> Node:
        if not isinstance(schema, dict):
            schema = {}
        schema = merged(schema)
        if "const" in schema:
            return constant(schema["const"])
        for union in ("oneOf", "anyOf"):
            if schema.get(union):
                return self._union(schema, union, place)
        if schema.get("enum"):
            return Node(choice(schema), place.salt)
        kind = kind_of(schema)
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            if self._is_members(place):
                return self._members(schema, place)
            return self._written(schema, place) if self._is_written(place) else self._array(schema, place)
        if kind == "string":
            return Node(text_leaf(place.name, place.entity, schema), place.salt)
        if kind in ("integer", "number"):
            return Node(number_leaf(place.name, schema, kind == "integer"), place.salt)
        if kind == "boolean":
            return Node(_never if _GONE & set(words(place.name)) else _truth, place.salt)
        return constant(None)

    def _union(self, schema: Schema, union: str, place: Place) -> Node:
        """The first branch whose values satisfy the whole schema; null only where nothing else does."""
        base = {key: value for key, value in schema.items() if key != union}
        branches = [branch for branch in schema[union] if isinstance(branch, dict)]
        branches.sort(key=lambda branch: branch.get("type") == "null")
        valid, made, scene = check_of(schema), None, Scene(Session(0, None), {}, {}, {})
        for branch in branches:
            generator = self._compile(merged({**base, "allOf": [*base.get("allOf", []), branch]}), place)
            made = made or generator
            if all(valid(generator(mix(trial), 1_780_000_000, scene)) for trial in range(_TRIALS)):
                return generator
        return made or self._compile(base, place)

    def _object(self, schema: Schema, place: Place) -> Node:
        properties: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        shown = self._shown(properties, required, place.depth)
        extra = schema.get("additionalProperties")
        for name in sorted(required - properties.keys()):
            shown[name] = extra if isinstance(extra, dict) else {}
        least = schema.get("minProperties", 0)
        if not properties and not self._sparse and extra is not False:
            least = max(least, 2)
        most = schema.get("maxProperties", MANY)
        while len(shown) > max(most, len(required)):
            shown.pop(next(name for name in reversed(shown) if name not in required))
        for topic in TOPICS[(place.salt >> 8) % 4 :]:
            if len(shown) >= min(least, most) or extra is False:
                break
            shown.setdefault(topic, extra if isinstance(extra, dict) else {"type": "string"})
        wrapper = place.primary and len(properties) == 1
        if place.primary and self._lists is not None and not self._own(shown, place):
            place.listing = self._listing(shown)
        if self._meaning is not None and (thing := self._thing(shown, place, wrapper)) is not None:
            return Node(thing)
        fields = tuple((name, *self._field(name, field, place, wrapper)) for name, field in shown.items())
        return Node(
            lambda key, now, scene: {
                name: make(key * salt >> SHIFT & MASK, now) if salt else make(key, now, scene)
                for name, make, salt in fields
            }
        )

    def _thing(self, shown: dict[str, Any], place: Place, wrapper: bool) -> Thing | None:
        """The object as a thing; None where it only holds others or says nothing of what it is."""
        own, part = self._own(shown, place), ""
        if not own and (place.primary or place.member):
            part, own = self._part(shown, place, wrapper)
        if place.primary:
            inner = not own and any(self._is_same(name, field, wrapper) for name, field in shown.items())
            if inner or place.listing is not None:
                return None
        elif not own and not place.member:
            return None
        noun = next(iter(own.values())).entity.noun if own else self._meaning.kind[1] if self._meaning else ""
        inside = place.thing_of(last_noun(noun))
        fields = []
        for name, schema in shown.items():
            names = tuple(dict.fromkeys([*self._sources(name, place), *_aliases(name, noun)]))
            at = inside.inside(name, same=False)
            at.part = name == part or (self._meaning is not None and self._meaning.is_named(name))
            identity = None if part else own.get(name)
            referred = None if identity else self._reference(name, schema, place, at, lasting=True)
            fields.append(Field(name, referred or self._compile(schema, at), names, check_of(schema), identity))
        salt = 0 if place.primary or place.member else place.salt
        return Thing(fields, own.values(), salt, target=place.primary, part=place.part)

    def _part(self, shown: dict[str, Any], place: Place, wrapper: bool) -> tuple[str, dict[str, Identity]]:
        """The field that holds what identifies the object, such as `metadata`, and what does; nothing where none."""
        for name, schema in shown.items():
            about = self._meaning is not None and self._meaning.is_about(name)
            if about and isinstance(schema, dict) and kind_of(schema) == "object":
                if place.primary and self._is_same(name, schema, wrapper):
                    continue
                own = self._own(merged(schema).get("properties", {}), place.inside(name, same=False))
                if own:
                    return name, own
        return "", {}

    def _sources(self, name: str, place: Place) -> list[str]:
        """Folded names of the arguments that a field of the call's own thing repeats."""
        if self._echo is None or not place.primary:
            return []
        return [folded(source) for source in self._echo.sources(name, place.owner, primary=True)]

    def _own(self, shown: dict[str, Any], place: Place) -> dict[str, Identity]:
        """What identifies the object itself, by field."""
        found: dict[str, Identity] = {}
        if self._meaning is None:
            return found
        parts = (container(part.replace("[]", "")) for part in reversed(place.path.split(".")))
        holder = next((part for part in parts if part), "")
        for name, schema in shown.items():
            if not isinstance(schema, dict) or "enum" in schema or "const" in schema or kind_of(schema) == "array":
                continue
            typed = self._meaning.field(place.field_path(name), schema)
            if typed is None:
                continue
            home = not holder or self._meaning.is_about(holder)
            if typed.entity.noun == holder or typed.rule in ("place", "resource") or (typed.is_own and home):
                found[name] = identity_of(typed.entity, schema)
                self.weak = self.weak or typed.entity.attribute in WEAK
        return found

    def _reference(self, name: str, schema: Any, place: Place, inner: Place, *, lasting: bool) -> Node | None:
        """The generator of a field that identifies another thing; `inner` is the place of the field itself."""
        if self._meaning is None or not isinstance(schema, dict) or "enum" in schema or "const" in schema:
            return None
        typed = self._meaning.field(place.field_path(name), schema)
        if typed is None:
            return None
        role = folded(name) if typed.rule == "role" else ""
        if kind_of(schema) != "array":
            return Node(
                Reference(
                    identity_of(typed.entity, schema, role),
                    role=bool(role) or place.within,
                    lasting=lasting and not role,
                )
            )
        items = schema.get("items")
        if not isinstance(items, dict) or kind_of(items) not in ("string", "integer") or "enum" in items:
            return None
        return self._array(
            schema, inner, Node(Reference(identity_of(typed.entity, items, role), role=True, lasting=False))
        )

    def _listing(self, shown: dict[str, Any]) -> str | None:
        """The field that holds what the tool lists."""
        arrays = [name for name, field in shown.items() if isinstance(field, dict) and kind_of(field) == "array"]
        about = [name for name in arrays if self._meaning is not None and self._meaning.is_about(name)]
        if about:
            return about[0]
        paged = self._lists is not None and (self._lists.pages or self._lists.limit)
        return arrays[0] if len(arrays) == 1 and paged else None

    def _is_members(self, place: Place) -> bool:
        return self._lists is not None and place.members and self.list_path is None

    def _is_same(self, name: str, schema: Any, wrapper: bool) -> bool:
        """Whether an object in a field is what the whole result is about."""
        named = wrapper or folded(name) in _WRAPPERS or (self._echo is not None and folded(name) in self._echo.entities)
        named = named or (self._meaning is not None and self._meaning.is_named(name))
        return named and isinstance(schema, dict) and kind_of(schema) == "object"

    def _shown(self, properties: dict[str, Any], required: set[str], depth: int) -> dict[str, Any]:
        """The fields that results hold: all required ones, then the most telling, in the schema's order."""
        room = 0 if self._sparse or depth >= len(_OPTIONAL_FIELDS) else _OPTIONAL_FIELDS[depth]
        optional = [name for name, field in properties.items() if name not in required and field is not False]
        if len(optional) > room:
            order = sorted(
                range(len(optional)), key=lambda index: (_rank(optional[index], properties[optional[index]]), index)
            )
            optional = [optional[index] for index in order[:room]]
        keep = required | set(optional)
        return {name: field for name, field in properties.items() if name in keep}

    def _field(self, name: str, schema: Any, place: Place, wrapper: bool) -> Node:
        inner = place.inside(name, self._is_same(name, schema, wrapper))
        if place.primary and self._lists is not None and self.list_path is None:
            inner.members = name == place.listing
        generator = self._reference(name, schema, place, inner, lasting=False) or self._compile(schema, inner)
        if self._echo is None or place.within or isinstance(generator.make, Thing):  # a thing keeps what it was given
            return generator
        sources = tuple(map(folded, self._echo.sources(name, place.owner, primary=place.primary)))
        if not sources:
            return generator
        valid = check_of(schema)

        def echo(key: int, now: int, scene: Scene) -> Any:
            for source in sources:
                value = scene.given.get(source)
                if value is not None and valid(value):
                    return value
            return generator(key, now, scene)

        return Node(echo)

    def _members(self, schema: Schema, place: Place) -> Node:
        """What the tool lists."""
        assert self._lists is not None
        self.list_path = tuple(place.path.split(".")[1:])
        inner = place.element(None)
        inner.member = True
        item = self._compile(schema.get("items", {}), inner)
        return members(item, self._lists, _fewest(schema, place), schema.get("maxItems", MANY))

    def _is_written(self, place: Place) -> bool:
        return place.members and self._meaning is not None and self._lists is None

    def _written(self, schema: Schema, place: Place) -> Node:
        """An array that a writing tool answers: what it wrote, alone, where the schema allows that."""
        inner = place.element(None)
        inner.member = True
        thing, several = self._compile(schema.get("items", {}), inner).make, self._array(schema, place)
        if not isinstance(thing, Thing) or not schema.get("minItems", 0) <= 1 <= schema.get("maxItems", 1):
            return several
        return written(thing, several)

    def _array(self, schema: Schema, place: Place, item: Node | None = None) -> Node:
        first = [self._compile(item, place.element(index)) for index, item in enumerate(schema.get("prefixItems", ()))]
        low, high = _ITEMS[min(place.level, len(_ITEMS) - 1)]
        least, limit = _fewest(schema, place), schema.get("maxItems", MANY)
        low, high = (least, least) if self._sparse else (min(max(low, least), limit), min(max(high, least), limit))
        if schema.get("items") is False:
            low = high = len(first)
        item = item or self._compile(schema.get("items", {}), place.element(None))
        return array(first, item, place.salt, low, high, unique=bool(schema.get("uniqueItems")))


def _aliases(name: str, noun: str) -> list[str]:
    """Folded names under which a field of a thing may have been written: `eventId` of an event is its `id`."""
    key, noun = folded(name), folded(noun.rpartition("/")[2])
    rest = key.removeprefix(noun)
    return [key, *([noun + key] if key in KEYS else []), *([rest] if rest != key and rest in KEYS else [])]


def _rank(name: str, schema: Any) -> int:
    """Lower is shown first: what identifies or tells most, then scalars, then nested things."""
    kind = kind_of(schema) if isinstance(schema, dict) else "string"
    if words(name)[-1:] and words(name)[-1] in _TELLING:
        return 0
    return 2 if kind in ("object", "array") else 1


def _fewest(schema: Schema, place: Place) -> int:
    """Elements that an array must have, as far as they are made."""
    return int(min(schema.get("minItems", 0), _FULL[min(place.path.count("["), len(_FULL) - 1)]))


def _never(key: int, now: int) -> bool:
    return False


def _truth(key: int, now: int) -> bool:
    return key & 1 == 1
