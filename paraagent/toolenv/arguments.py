"""The arguments of a call against the tool's JSON Schema: every fault at once, each saying what would be right.

A parameter that the schema does not name is a fault too, unless it says `additionalProperties`: the nearest name is
given, so that a misspelt argument is never silently dropped.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import orjson
from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from paraagent.catalog.interface import ToolInterface
from paraagent.toolenv.identifiers import folded
from paraagent.trace import ErrorInfo
from paraagent.validators import compile_validator

_CACHED_TOOLS = 8_192
_SHOWN_CHOICES = 12
_SHOWN_CHARS = 60
_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}

_cache: dict[str, tuple[ToolInterface, Draft202012Validator]] = {}


def check_arguments(tool: ToolInterface, arguments: dict[str, Any]) -> ErrorInfo | None:
    """None where the call is right, else an `InvalidRequestError` that lists all of its faults."""
    validator, unknown = _validator(tool), []
    if not tool.parameters.get("additionalProperties"):
        unknown = [name for name in arguments if name not in tool.properties]
    if not unknown and validator.is_valid(arguments):
        return None
    faults = [_unknown(name, tool) for name in unknown]
    faults += [_fault(error) for error in validator.iter_errors(arguments) if not _is_unknown(error)]
    unique = list(dict.fromkeys(faults))
    return ErrorInfo(type="InvalidRequestError", msg=f"{tool.name}: {'; '.join(unique)}.")


def _validator(tool: ToolInterface) -> Draft202012Validator:
    entry = _cache.get(tool.tool_id)
    if entry is not None and (entry[0] is tool or entry[0] == tool):
        return entry[1]
    validator = compile_validator(tool.parameters)
    if len(_cache) >= _CACHED_TOOLS:
        _cache.pop(next(iter(_cache)), None)
    _cache[tool.tool_id] = (tool, validator)
    return validator


def _is_unknown(error: ValidationError) -> bool:
    return not error.instance_path and isinstance(error.kind, ValidationErrorKind.AdditionalProperties)


def _unknown(name: str, tool: ToolInterface) -> str:
    spellings = {folded(known): known for known in sorted(tool.properties)}
    near = get_close_matches(folded(name), list(spellings), n=1, cutoff=0.6)
    if near:
        return f"unknown parameter {name!r}, did you mean {spellings[near[0]]!r}?"
    if not tool.properties:
        return f"unknown parameter {name!r}, this tool takes none"
    return f"unknown parameter {name!r}, the parameters are {_listed(sorted(tool.properties))}"


def _fault(error: ValidationError) -> str:
    kind, where = error.kind, _where(error.instance_path)
    if isinstance(kind, ValidationErrorKind.Required):
        return f"missing required parameter {_where([*error.instance_path, kind.property])}"
    if isinstance(kind, ValidationErrorKind.Type):
        return f"parameter {where} must be of type {' or '.join(kind.types)}, got {_shown(error.instance)}"
    if isinstance(kind, ValidationErrorKind.Enum):
        return f"parameter {where} must be one of {_listed(kind.options)}, got {_shown(error.instance)}"
    if isinstance(kind, ValidationErrorKind.Pattern):
        return f"parameter {where} must match the pattern {kind.pattern}, got {_shown(error.instance)}"
    if isinstance(kind, ValidationErrorKind.AdditionalProperties):
        return f"parameter {where} has no field {_listed(kind.unexpected)}"
    return f"parameter {where}: {error.message}"


def _where(path: list[Any]) -> str:
    """`'filter.items[0]'`: the place of a fault as a person writes it."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return repr(text.lstrip(".")) if text else "list"


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    short = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return f"{_NAMES.get(type(value), 'value')} {short}"


def _listed(values: list[Any]) -> str:
    shown = ", ".join(
        value if isinstance(value, str) else orjson.dumps(value).decode() for value in values[:_SHOWN_CHOICES]
    )
    left = len(values) - _SHOWN_CHOICES
    return f"{shown} and {left} more" if left > 0 else shown
