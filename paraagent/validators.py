"""Compiled JSON Schema validators that always exist: a `pattern` that the regex engine cannot read is left out.

Interfaces come from many hands, and some patterns are written for another dialect (octal escapes, backreferences); such
a pattern says nothing that could be checked, and must not stop the call.
"""

from __future__ import annotations

from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError


def compile_validator(schema: Any) -> Draft202012Validator:
    """The validator of a schema, without what its patterns say where those cannot be read."""
    try:
        return Draft202012Validator(schema)
    except (ValidationError, ValueError):
        return Draft202012Validator(_readable(schema))


def _readable(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_readable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _readable(part) for key, part in schema.items() if key != "pattern" or _is_pattern(part)}


def _is_pattern(part: Any) -> bool:
    """Whether this is a pattern that can be read, or a property that happens to be called `pattern`."""
    if not isinstance(part, str):
        return True
    try:
        Draft202012Validator({"pattern": part})
    except (ValidationError, ValueError):
        return False
    return True
