"""Bounded results: a JSON value cut on its structure, so that what the model reads is always whole JSON.

Room is shared fairly: small parts stay whole, large ones are cut inside. What was left out is counted where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from paraagent.paraact.protocol import compact

LEFT_OUT = "_left_out"
"""Key of the count in a cut object; a cut array ends in an object with this key alone."""
_NOTE = len('{"_left_out":"100000 fields"},')
_SMALLEST = len('[{"_left_out":"1000000000 items"}]')
"""Characters to which any part can be cut."""
SMALLEST_ROOM = 40
"""Characters below which nothing can be cut."""


def fit_json(value: Any, max_chars: int) -> Any:
    """`value`, or as much of it as compact JSON of `max_chars` characters can say (from `SMALLEST_ROOM` on)."""
    return value if size(value) <= max_chars else _cut(value, max_chars)


def size(value: Any) -> int:
    """Characters of the value as an observation writes it."""
    return len(compact(value))


def _cut(value: Any, room: int) -> Any:
    if size(value) <= room:
        return value
    if isinstance(value, dict):
        return _cut_object(value, room)
    if isinstance(value, list):
        return _cut_array(value, room)
    if isinstance(value, str):
        return _cut_text(value, room)
    return f"({type(value).__name__} left out)"[: max(room - 2, 0)]


def _cut_object(value: dict[str, Any], room: int) -> dict[str, Any]:
    names = list(value)
    heads = [size(name) + 2 for name in names]
    sizes = [size(value[name]) for name in names]
    least = accumulate(head + min(part, _SMALLEST) for head, part in zip(heads, sizes, strict=True))
    kept = sum(used + 2 + _NOTE <= room for used in least)
    shares = _share(sizes[:kept], room - 2 - _NOTE - sum(heads[:kept]))
    result = {name: _cut(value[name], share) for name, share in zip(names[:kept], shares, strict=True)}
    if kept < len(names):
        result[LEFT_OUT] = f"{len(names) - kept} fields"
    return result


def _cut_array(value: list[Any], room: int) -> list[Any]:
    sizes = [size(item) for item in value]
    kept, used = 0, 2 + _NOTE
    while kept < len(value) and used + sizes[kept] + 1 <= room:
        used += sizes[kept] + 1
        kept += 1
    result: list[Any] = value[:kept]
    if not kept and room - 2 - _NOTE >= _SMALLEST and isinstance(value[0], dict | list | str):
        result = [_cut(value[0], room - 2 - _NOTE)]
    left = len(value) - len(result)
    return [*result, {LEFT_OUT: f"{left} items"}] if left else result


def _cut_text(value: str, room: int) -> str:
    note = f"… ({len(value)} characters)"
    keep = max(room - size(note), 0)
    text = value[:keep]
    while text and size(text) - 2 > keep:
        text = text[: len(text) - max((size(text) - 2 - keep) // 6, 1)]
    return text.rstrip() + note if room >= size(note) else "…"


def _share(sizes: Sequence[int], room: int) -> list[int]:
    """Room for each part: the small ones whole, the rest of the room even among the large ones."""
    shares, left = [0] * len(sizes), room
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        shares[index] = min(sizes[index], left // (len(sizes) - done))
        left -= shares[index]
    return shares
