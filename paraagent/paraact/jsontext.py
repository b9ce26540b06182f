"""Strict JSON inside model text: every fault has one sentence, and what passes can be stored, sent and compared.

The standard decoder accepts more than JSON (NaN, duplicate keys, half surrogates) and more than a trace can hold
(endless nesting, integers of any length); here each of these is a fault.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Levels of nesting; deeper values cannot pass every serializer."""

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonTextError(ValueError):
    """Why a text is not acceptable JSON, in words for the model."""


def decode_at(text: str, start: int, *, lenient: bool = False) -> tuple[Any, int]:
    """The JSON value that begins at `start` (leading white space allowed) and the position after it.

    `lenient`: strings may hold line breaks and tabs as they are, which JSON wants written as \\n and \\t.

    Raises:
        JsonTextError: the text there is not acceptable JSON.
    """
    begin = skip_space(text, start)
    try:
        value, end = (_LENIENT if lenient else _STRICT).raw_decode(text, begin)
    except json.JSONDecodeError as error:
        fault = error.msg.removesuffix(" at").removesuffix(" starting")  # the place is told before it
        raise JsonTextError(f"not valid JSON at character {error.pos - begin + 1}: {fault}") from None
    except RecursionError:
        raise JsonTextError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
    _check(value)
    return value, end


def decode(text: str, *, lenient: bool = False) -> Any:
    """The one JSON value that `text` holds; `lenient` as above.

    Raises:
        JsonTextError: not acceptable JSON, or something follows it.
    """
    value, end = decode_at(text, 0, lenient=lenient)
    if skip_space(text, end) != len(text):
        raise JsonTextError("more text follows the JSON value")
    return value


def skip_space(text: str, start: int) -> int:
    """The position of the first character from `start` on that is not JSON white space."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _check(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise JsonTextError(f"JSON nested deeper than {MAX_DEPTH} levels")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if _SURROGATE.search(item):
                    raise JsonTextError("a string holds half of a surrogate pair")
            elif isinstance(item, dict):
                inner.extend(item.keys())
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = inner


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonTextError(f"the key {_shown(key)} stands twice in one object")
            seen.add(key)
    return found


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**64:
        raise JsonTextError("an integer does not fit into 64 bits; write it as a string")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonTextError("a number is too large")
    return value


def _constant(name: str) -> NoReturn:
    raise JsonTextError(f"{name} is not JSON; use null or a string")


def _shown(key: str) -> str:
    return json.dumps(key if len(key) <= 40 else key[:39] + "…", ensure_ascii=bool(_SURROGATE.search(key)))


_STRICT, _LENIENT = (
    json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant, strict=strict
    )
    for strict in (True, False)
)
