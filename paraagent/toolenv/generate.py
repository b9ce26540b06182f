"""A JSON Schema compiled into a function from (key, clock, arguments) to a value that validates.

Compiling chooses everything that does not depend on the call: branches of unions, bounds, names, echoes. Running only
mixes keys. A field's value depends on the key and the field's place alone, so equal keys give equal entities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.files import canonical_json
from paraagent.seeds import derive
from paraagent.toolenv.echo import EchoPlan
from paraagent.toolenv.identifiers import folded, singular, words
from paraagent.toolenv.validators import compile_validator
from paraagent.toolenv.values import MASK, mix, number_leaf, text_leaf
from paraagent.toolenv.words import TOPICS

Generator = Callable[[int, int, Mapping[str, Any]], Any]
"""(key, now in seconds since 1970, arguments) -> JSON value."""

_MISSING: Any = object()
_OPTIONAL_FIELDS = (24, 16, 10, 6)
"""Optional fields shown of an object, by its depth; deeper ones show the required fields alone."""
_ITEMS = ((2, 4), (2, 3), (1, 2))
"""Fewest and most elements of an array where the schema leaves it open, by depth."""
_STEP = 0x9E3779B97F4A7C15
_TELLING = ("id", "name", "status", "state", "title")
_WRAPPERS = frozenset({"data", "result", "response", "item", "object", "body"})
_TRIALS = 3


def validator(schema: Any) -> Callable[[Any], bool]:
    """Whether a value satisfies the schema; compiled once."""
    return compile_validator(schema).is_valid


class Compiler:
    """Compiles the schemas of one tool. `sparse` leaves out optional fields and echoes, where the full form fails."""

    def __init__(self, echo: EchoPlan | None = None, *, sparse: bool = False) -> None:
        self._echo = None if sparse else echo
        self._sparse = sparse

    def compile(self, schema: Any, entity: Sequence[str] = ()) -> Generator:
        """The generator of a result's schema; `entity` is the words of what the result is about."""
        return self._compile(schema, _Place("", (), tuple(entity)))

    def compile_field(self, name: str, schema: Any, entity: Sequence[str] = ()) -> Generator:
        """The generator of one named value of `entity`, such as an argument."""
        return self._compile(schema, _Place("", (), tuple(entity)).inside(name, same=False))

    def _compile(self, schema: Any, place: _Place) -> Generator:
        if not isinstance(schema, dict):
            schema = {}
        schema = _merged(schema)
        if "const" in schema:
            constant = schema["const"]
            return lambda key, now, arguments: constant
        for union in ("oneOf", "anyOf"):
            if schema.get(union):
                return self._union(schema, union, place)
        if schema.get("enum"):
            return self._leaf(_choice(schema), place)
        kind = _kind(schema)
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            return self._array(schema, place)
        if kind == "string":
            return self._leaf(text_leaf(place.name, place.entity, schema, validator(schema)), place)
        if kind in ("integer", "number"):
            return self._leaf(number_leaf(place.name, schema, kind == "integer"), place)
        if kind == "boolean":
            return self._leaf(lambda key, now: key & 1 == 1, place)
        return lambda key, now, arguments: None

    def _leaf(self, leaf: Callable[[int, int], Any], place: _Place) -> Generator:
        salt = place.salt
        return lambda key, now, arguments: leaf(mix(key ^ salt), now)

    def _union(self, schema: Schema, union: str, place: _Place) -> Generator:
        """The first branch whose values satisfy the whole schema; null only where nothing else does."""
        base = {key: value for key, value in schema.items() if key != union}
        branches = [branch for branch in schema[union] if isinstance(branch, dict)]
        branches.sort(key=lambda branch: branch.get("type") == "null")
        valid, made = validator(schema), None
        for branch in branches:
            generator = self._compile(_merged({**base, "allOf": [*base.get("allOf", []), branch]}), place)
            made = made or generator
            if all(valid(generator(mix(trial), 1_780_000_000, {})) for trial in range(_TRIALS)):
                return generator
        return made or self._compile(base, place)

    def _object(self, schema: Schema, place: _Place) -> Generator:
        properties: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        shown = self._shown(properties, required, place.depth)
        extra = schema.get("additionalProperties")
        for name in sorted(required - properties.keys()):
            shown[name] = extra if isinstance(extra, dict) else {}
        least = schema.get("minProperties", 0)
        if not properties and not self._sparse and extra is not False:
            least = max(least, 2)
        most = schema.get("maxProperties", 1 << 20)
        while len(shown) > max(most, len(required)):
            shown.pop(next(name for name in reversed(shown) if name not in required))
        for topic in TOPICS[place.salt % 4 :]:
            if len(shown) >= min(least, most) or extra is False:
                break
            shown.setdefault(topic, extra if isinstance(extra, dict) else {"type": "string"})
        wrapper = place.primary and len(properties) == 1
        fields = [(name, self._field(name, field, place, wrapper)) for name, field in shown.items()]
        return lambda key, now, arguments: {name: generator(key, now, arguments) for name, generator in fields}

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

    def _field(self, name: str, schema: Any, place: _Place, wrapper: bool) -> Generator:
        same = wrapper or folded(name) in _WRAPPERS or (self._echo is not None and folded(name) in self._echo.entities)
        inner = place.inside(name, same)
        generator = self._compile(schema, inner)
        sources = self._echo.sources(name, place.owner, primary=place.primary) if self._echo else ()
        if not sources:
            return generator
        valid = validator(schema)
        if len(sources) == 1:
            source = sources[0]

            def echo_one(key: int, now: int, arguments: Mapping[str, Any]) -> Any:
                value = arguments.get(source, _MISSING)
                return value if value is not _MISSING and valid(value) else generator(key, now, arguments)

            return echo_one

        def echo(key: int, now: int, arguments: Mapping[str, Any]) -> Any:
            for source in sources:
                value = arguments.get(source, _MISSING)
                if value is not _MISSING and valid(value):
                    return value
            return generator(key, now, arguments)

        return echo

    def _array(self, schema: Schema, place: _Place) -> Generator:
        first = [self._compile(item, place.element(index)) for index, item in enumerate(schema.get("prefixItems", ()))]
        low, high = _ITEMS[min(place.depth, len(_ITEMS) - 1)]
        least, limit = schema.get("minItems", 0), schema.get("maxItems", 1 << 20)
        low, high = (least, least) if self._sparse else (min(max(low, least), limit), min(max(high, least), limit))
        if schema.get("items") is False:
            low = high = len(first)
        item = self._compile(schema.get("items", {}), place.element(None))
        salt, span, unique = place.salt, high - low + 1, bool(schema.get("uniqueItems"))

        def array(key: int, now: int, arguments: Mapping[str, Any]) -> list[Any]:
            size = low + mix(key ^ salt) % span
            found: list[Any] = [generator(key, now, arguments) for generator in first[: size or len(first)]]
            seen = {canonical_json(value) for value in found} if unique else set()
            position = 0
            while len(found) < size and position < 8 * size:
                position += 1
                value = item((key + position * _STEP) & MASK, now, arguments)
                if unique:
                    text = canonical_json(value)
                    if text in seen:
                        continue
                    seen.add(text)
                found.append(value)
            return found

        return array


class _Place:
    """Where a schema stands: what it is called, what it belongs to, how deep."""

    __slots__ = ("depth", "entity", "name", "owner", "path", "primary", "salt", "thing")

    def __init__(
        self,
        name: str,
        entity: tuple[str, ...],
        thing: tuple[str, ...],
        path: str = "",
        depth: int = 0,
        primary: bool = True,
    ) -> None:
        self.name = name
        self.entity = entity
        """Words of what holds it: `name` of a user is a person's."""
        self.thing = thing
        """Words of what it is itself, for the fields that it holds."""
        self.owner = "".join(thing) if path else ""
        self.path, self.depth, self.primary = path, depth, primary
        self.salt = derive(0, "field", path)

    def inside(self, field: str, same: bool) -> _Place:
        """The place of a field; what it holds is the entity of the call itself where `same`."""
        thing = words(field) or self.thing
        return _Place(field, self.thing, thing, f"{self.path}.{field}", self.depth + 1, self.primary and same)

    def element(self, index: int | None) -> _Place:
        thing = (*self.thing[:-1], singular(self.thing[-1])) if self.thing else ()
        return _Place(
            self.name, self.entity, thing, f"{self.path}[{'' if index is None else index}]", self.depth, False
        )


def _rank(name: str, schema: Any) -> int:
    """Lower is shown first: what identifies or tells most, then scalars, then nested things."""
    kind = _kind(schema) if isinstance(schema, dict) else "string"
    if words(name)[-1:] and words(name)[-1] in _TELLING:
        return 0
    return 2 if kind in ("object", "array") else 1


def _kind(schema: Schema) -> str:
    """The type to generate: the first that is not null, or what the other keywords imply."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((entry for entry in kind if entry != "null"), "null")
    if kind:
        return str(kind)
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    if any(
        keyword in schema for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    ):
        return "number"
    return "string"


def _choice(schema: Schema) -> Callable[[int, int], Any]:
    valid = validator(schema)
    allowed = [value for value in schema["enum"] if valid(value)] or list(schema["enum"])
    telling = [
        value
        for value in allowed
        if not (isinstance(value, str) and "unspecified" in value.lower()) and value is not None
    ]
    choices = telling or allowed
    return lambda key, now: choices[key % len(choices)]


def _merged(schema: Schema) -> Schema:
    """`allOf` folded into its holder: properties united, bounds tightened, the rest overwritten by the later part."""
    parts = schema.get("allOf")
    if not parts:
        return schema
    result = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        if not isinstance(part, dict):
            continue
        for key, value in _merged(part).items():
            result[key] = _combined(key, result[key], value) if key in result else value
    return result


def _combined(key: str, old: Any, new: Any) -> Any:
    if key == "properties":
        return {**old, **{name: _both(old[name], value) if name in old else value for name, value in new.items()}}
    if key == "required":
        return [*old, *(name for name in new if name not in old)]
    if key == "enum":
        return [value for value in old if value in new] or old
    if key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        return max(old, new)
    if key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
        return min(old, new)
    if key in ("description", "title"):
        return old
    if key == "additionalProperties" and (old is False or new is False):
        return False
    return new


def _both(old: Any, new: Any) -> Any:
    return _merged({"allOf": [old, new]}) if isinstance(old, dict) and isinstance(new, dict) else new
