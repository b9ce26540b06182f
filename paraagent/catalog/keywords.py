"""Keywords of a schema, repaired and written as JSON bytes: what the converters of all sources share.

A source's numbers may be strings, its enumerations of the wrong type, its bounds contradictory. What cannot be
repaired is left out, so that whatever is written is valid JSON Schema 2020-12 and can be satisfied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from paraagent.catalog.schemas import Shape

MAX_ENUM = 2_000
"""Bytes of an enumeration; a longer one is left out, and the value is free."""
MAX_PATTERN = 100
MAX_FORMAT = 40
MAX_EXAMPLE = 80
_FOREIGN = re.compile(r"\(\?|\\[pPuxhHRXGKQEZAz]|\\\d|&&|\[\[|[*+?}]\+|\[\^?\]")
"""Syntax that regular-expression engines read differently, or not at all."""

_BOUNDS = frozenset(
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"]
)

TYPES = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
    "file": "string",
    "date": "string",
    "datetime": "string",
    "date-time": "string",
    "uuid": "string",
    "str": "string",
    "text": "string",
    "enum": "string",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "list": "array",
    "map": "object",
    "dict": "object",
}
TYPE_FACT = {name: b'"type":' + orjson.dumps(name) for name in set(TYPES.values())} | {"any": b""}


@lru_cache(maxsize=4_096)
def plain(type: str, format: str | None) -> Shape | None:
    """The one shape of all scalars of a type and format that say no more, which most leaves of most documents are; None
    where the type is none of a scalar."""
    name = TYPES.get(type.lower())
    if name is None or name in ("array", "object"):
        return None
    format = format if format and len(format) <= MAX_FORMAT else None
    facts = TYPE_FACT[name]
    return Shape(name, facts=facts + b',"format":' + orjson.dumps(format) if format else facts, format=format)


def number(value: Any) -> int | float | None:
    """A finite number, also from a string (Google writes bounds so)."""
    if isinstance(value, str):
        try:
            value = float(value) if any(c in value for c in ".eE") else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if abs(value) < 2**63 else None


def scalar(value: Any, type: str) -> Any:
    """`value` as JSON type `type`, or None where it is something else."""
    if type == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
    if type == "boolean":
        return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())
    if type in ("integer", "number"):
        found = number(value)
        if type == "integer" and isinstance(found, float):
            return int(found) if found.is_integer() else None
        return found
    return value if type == "any" and isinstance(value, str | int | float | bool) else None


def enumeration(values: Any, type: str) -> list[Any] | None:
    """Distinct allowed values of the right type; None where there are none, or far too many to show."""
    if not isinstance(values, list) or not values:
        return None
    found: dict[tuple[str, Any], Any] = {}
    for value in values:
        if (repaired := scalar(value, type)) is not None:
            found[(repaired.__class__.__name__, repaired)] = repaired
    kept = list(found.values())
    return kept if kept and len(orjson.dumps(kept)) <= MAX_ENUM else None


def bounds(raw: Mapping[str, Any], type: str) -> bytes:
    """Limits of a number, string or list in OpenAPI's words; a contradictory pair is left out."""
    if _BOUNDS.isdisjoint(raw):
        return b""
    if type in ("integer", "number"):
        low, high = number(raw.get("minimum")), number(raw.get("maximum"))
        low_word, high_word = "minimum", "maximum"
        exclusive_low, exclusive_high = raw.get("exclusiveMinimum"), raw.get("exclusiveMaximum")
        if exclusive_low is True or (low is None and number(exclusive_low) is not None):
            low_word, low = "exclusiveMinimum", low if exclusive_low is True else number(exclusive_low)
        if exclusive_high is True or (high is None and number(exclusive_high) is not None):
            high_word, high = "exclusiveMaximum", high if exclusive_high is True else number(exclusive_high)
        strict = low_word != "minimum" or high_word != "maximum"
        return _pair(low_word, low, high_word, high, strict)
    if type == "string":
        return _pair("minLength", _count(raw.get("minLength")), "maxLength", _count(raw.get("maxLength")), False)
    if type == "array":
        return _pair("minItems", _count(raw.get("minItems")), "maxItems", _count(raw.get("maxItems")), False)
    return b""


def _count(value: Any) -> int | None:
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def _pair(low_word: str, low: int | float | None, high_word: str, high: int | float | None, strict: bool) -> bytes:
    if low is not None and high is not None and (low > high or (strict and low >= high)):
        return b""
    found = b""
    if low is not None and not (low == 0 and low_word in ("minLength", "minItems")):
        found += b',"' + low_word.encode() + b'":' + orjson.dumps(low)
    if high is not None:
        found += b',"' + high_word.encode() + b'":' + orjson.dumps(high)
    return found


@lru_cache(maxsize=16_384)
def pattern(text: Any) -> bytes:
    """`"pattern":…` where the expression is short and means the same to every engine, else nothing."""
    if not isinstance(text, str) or not text or len(text) > MAX_PATTERN or _FOREIGN.search(text):
        return b""
    if text in (".*", "^.*$", ".+", "[\\s\\S]*"):
        return b""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return b""
    return b'"pattern":' + orjson.dumps(text)


def example(value: Any, type: str) -> bytes:
    """`,"examples":[…]` for a short scalar of the right type, else nothing."""
    if value is None or isinstance(value, list | dict) or type in ("object", "array"):
        return b""
    found = scalar(value, type)
    if found is None or found == "" or (isinstance(found, str) and (len(found) > MAX_EXAMPLE or "<" in found)):
        return b""
    return b',"examples":[' + orjson.dumps(found) + b"]"


def default(value: Any, type: str) -> bytes:
    """`"default":…` for a short scalar of the right type, else nothing."""
    if value is None or isinstance(value, list | dict) or type in ("object", "array"):
        return b""
    found = scalar(value, type)
    if found is None or (isinstance(found, str) and len(found) > MAX_EXAMPLE):
        return b""
    return b'"default":' + orjson.dumps(found)
