"""Compiled JSON Schema validators that always exist: what of a schema cannot be read is left out.

Interfaces come from many hands. Some patterns are written for another dialect (octal escapes, backreferences), some
references lead nowhere; such a part says nothing that could be checked, and must not stop the call. Nothing is fetched.
"""

from __future__ import annotations

from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError


def compile_validator(schema: Any) -> Draft202012Validator:
    """The validator of a schema, without what cannot be read; where it is no schema at all, one that accepts all."""
    return _compiled(schema) or _compiled(_readable(schema)) or Draft202012Validator(True)


def _compiled(schema: Any) -> Draft202012Validator | None:
    try:
        return Draft202012Validator(schema, offline=True)
    except (ValidationError, ValueError):
        return None


def _readable(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_readable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _readable(part) for key, part in schema.items() if key not in ("pattern", "$ref") or _reads(key, part)}


def _reads(key: str, part: Any) -> bool:
    """Whether this is a pattern or reference that can be read, or a property that happens to be called so."""
    if not isinstance(part, str):
        return True
    if key == "$ref":
        return part == "#"
    return _compiled({"pattern": part}) is not None
