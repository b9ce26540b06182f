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
_SHOWN_FAULTS = 20
_SHOWN_CHOICES = 12
_SHOWN_CHARS = 60
_LONGEST_NAME = 100
"""Characters of a name beyond which nothing is near it."""
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
    faults = [_unknown(name, tool) for name in unknown[:_SHOWN_FAULTS]]
    wrong = [error for error in validator.iter_errors(arguments) if not _is_unknown(error)]
    faults += [_fault(error, tool) for error in wrong[:_SHOWN_FAULTS]]
    left = max(len(unknown) - _SHOWN_FAULTS, 0) + max(len(wrong) - _SHOWN_FAULTS, 0)
    told = [*dict.fromkeys(faults), *([f"{left} more faults"] if left else [])]
    return ErrorInfo(type="InvalidRequestError", msg=f"{tool.name}: {'; '.join(told)}.")


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
    said = repr(_short(name))
    spellings = {folded(known): known for known in sorted(tool.properties)}
    near = get_close_matches(folded(name), list(spellings), n=1) if len(name) <= _LONGEST_NAME else []
    if near:
        return f"unknown parameter {said}, did you mean {spellings[near[0]]!r}?"
    if not tool.properties:
        return f"unknown parameter {said}, this tool takes none"
    return f"unknown parameter {said}, the parameters are {_listed(sorted(tool.properties))}"


def _fault(error: ValidationError, tool: ToolInterface) -> str:
    kind, where = error.kind, _where(error.instance_path)
    if isinstance(kind, ValidationErrorKind.Required):
        schema = {} if error.instance_path else tool.properties.get(kind.property)
        return f"missing required parameter {_where([*error.instance_path, kind.property])}{_expected(schema)}"
    got = f"got {_shown(error.instance)}"
    if isinstance(kind, ValidationErrorKind.Type):
        return f"parameter {where} must be of type {' or '.join(kind.types)}, {got}"
    if isinstance(kind, ValidationErrorKind.Enum):
        return f"parameter {where} must be one of {_listed(_nearest(error.instance, kind.options))}, {got}"
    if isinstance(kind, ValidationErrorKind.Pattern):
        return f"parameter {where} must match the pattern {_short(kind.pattern)}, {got}"
    if isinstance(kind, ValidationErrorKind.AdditionalProperties):
        return f"parameter {where} has no field {_listed(kind.unexpected)}"
    whole, shown = orjson.dumps(error.instance).decode(), _shown(error.instance)
    return f"parameter {where}: {error.message.replace(whole, shown) if len(whole) > _SHOWN_CHARS else error.message}"


def _expected(schema: Any) -> str:
    """What a missing parameter should be, as far as its schema says: ` (one of asc, desc)`, ` (integer)`."""
    if not isinstance(schema, dict):
        return ""
    if schema.get("enum"):
        return f" (one of {_listed(schema['enum'])})"
    kinds = schema.get("type", [])
    return f" ({' or '.join([kinds] if isinstance(kinds, str) else kinds)})" if kinds else ""


def _nearest(value: Any, choices: list[Any]) -> list[Any]:
    """The allowed values, those most like the wrong one first where not all can be named."""
    if len(choices) <= _SHOWN_CHOICES or not isinstance(value, str):
        return choices
    names = [choice for choice in choices if isinstance(choice, str)]
    near = get_close_matches(value[:_LONGEST_NAME], names, n=3)
    return [*near, *(choice for choice in choices if choice not in near)]


def _where(path: list[Any]) -> str:
    """`'filter.items[0]'`: the place of a fault as a person writes it."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return repr(text.lstrip(".")) if text else "list"


def _shown(value: Any) -> str:
    return f"{_NAMES.get(type(value), 'value')} {_short(orjson.dumps(value).decode())}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _listed(values: list[Any]) -> str:
    texts = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values[:_SHOWN_CHOICES]]
    shown = ", ".join(map(_short, texts))
    left = len(values) - _SHOWN_CHOICES
    return f"{shown} and {left} more" if left > 0 else shown
