"""What a JSON Schema asks for: its type, its choices, and its `allOf` folded into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.validators import compile_validator

Check = Callable[[Any], bool]


def check_of(schema: Any) -> Check:
    """Whether a value satisfies the schema. Most are never asked, so validators are compiled at the first question."""
    if isinstance(schema, dict) and schema.get("type") == "string" and schema.keys() <= _SAYS_NO_MORE:
        return _is_text
    return _Check(schema).valid


_SAYS_NO_MORE = frozenset({"type", "description", "title"})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class _Check:
    __slots__ = ("_is_valid", "_schema")

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._is_valid: Check | None = None

    def valid(self, value: Any) -> bool:
        if self._is_valid is None:
            self._is_valid = compile_validator(self._schema).is_valid
        return self._is_valid(value)


def kind_of(schema: Schema) -> str:
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


def choice(schema: Schema) -> Callable[[int, int], Any]:
    """One of the values that are allowed; the telling ones where there are some."""
    valid = check_of(schema)
    allowed = [value for value in schema["enum"] if valid(value)] or list(schema["enum"])
    telling = [
        value
        for value in allowed
        if not (isinstance(value, str) and "unspecified" in value.lower()) and value is not None
    ]
    choices = telling or allowed
    return lambda key, now: choices[key % len(choices)]


def merged(schema: Schema) -> Schema:
    """`allOf` folded into its holder: properties united, bounds tightened, the rest overwritten by the later part."""
    parts = schema.get("allOf")
    if not parts:
        return schema
    result = {key: value for key, value in schema.items() if key != "allOf"}
    for part in parts:
        if not isinstance(part, dict):
            continue
        for key, value in merged(part).items():
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
    return merged({"allOf": [old, new]}) if isinstance(old, dict) and isinstance(new, dict) else new
