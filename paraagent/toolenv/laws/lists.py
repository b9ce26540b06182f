"""Law 8: what a list shows under its limit, its pages and its filters, against the whole list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paraagent.files import canonical_json
from paraagent.toolenv.compiled import CompiledTool
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.shapes import check_of, merged

_PAGES = 12
_WHOLE = (1_000, 100, 50, 20, 10)
"""Limits under which the whole list is asked for: the largest that the tool takes."""

Ask = Callable[[Mapping[str, Any]], Any]
Found = tuple[bool, str]


def check_list(compiled: CompiledTool, arguments: Mapping[str, Any], ask: Ask) -> Iterator[Found]:
    """Whether each thing that the law says holds, and what was seen.

    Args:
        arguments: the required ones.
        ask: calls the tool; may raise `ToolError`.
    """
    lists, properties = compiled.lists, compiled.tool.properties

    def may(name: str | None, value: Any) -> bool:
        return name is not None and check_of(properties[name])(value)

    def items(more: Mapping[str, Any]) -> list[Any]:
        return _items(ask({**arguments, **more}), compiled.list_path)

    largest = next((size for size in _WHOLE if may(lists.limit, size)), None)
    if lists.limit in arguments or (lists.pages and largest is None) or _least(compiled):
        return
    wide = {} if largest is None or lists.limit is None else {lists.limit: largest}
    whole = items(wide)
    if lists.limit is not None:
        for size in (1, 2):
            if may(lists.limit, size):
                found = items({lists.limit: size})
                yield _same(found, whole[:size]), f"{lists.limit}={size}: {len(found)} of {len(whole)}"
        if may(lists.limit, 1) and (paged := _paged(compiled, arguments, ask)) is not None:
            yield _same(paged, whole), f"pages hold {len(paged)}, the list {len(whole)}"
    for name, key in lists.filters:
        for item in whole[:1]:
            held = (
                next((value for field, value in item.items() if folded(field) == key), None)
                if isinstance(item, dict)
                else None
            )
            if not isinstance(held, str | int) or not may(name, held) or name in arguments:
                continue
            found = items({**wide, name: held})
            wanted = [each for each in whole if _holds(each, key, held)]
            yield _same(found, wanted), f"{name}={held!r}: {len(found)} where {len(wanted)} are"


def _paged(compiled: CompiledTool, arguments: Mapping[str, Any], ask: Ask) -> list[Any] | None:
    """All pages of one element, one after the other; None where the tool has no way to turn them."""
    lists, found = compiled.lists, list[Any]()
    base: dict[str, Any] = {**arguments, str(lists.limit): 1}
    token = next((role.path for role in compiled.roles if role.part == "token"), None)
    if lists.token is not None and token is not None and lists.token not in arguments:
        turn: Any = None
        for _ in range(_PAGES):
            result = ask(base if not turn else {**base, lists.token: turn})
            found += _items(result, compiled.list_path)
            turn = _at(result, token)
            if not turn:
                return found
        return found
    name = lists.offset or lists.number
    if name is None:
        return None
    first = lists.first_offset if lists.offset else lists.first_number
    for number in range(first, first + _PAGES):
        if not check_of(compiled.tool.properties[name])(number):
            return None
        found += (page := _items(ask({**base, name: number}), compiled.list_path))
        if not page:
            break
    return found


def _items(result: Any, path: tuple[str, ...]) -> list[Any]:
    found = _at(result, path)
    return found if isinstance(found, list) else []


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _least(compiled: CompiledTool) -> int:
    """How many elements the schema wants at least, whatever the caller asks for."""
    schema: Any = merged(compiled.returns)
    for name in compiled.list_path:
        schema = merged(schema.get("properties", {}).get(name, {}))
    least: int = schema.get("minItems", 0)
    return least


def _holds(item: Any, key: str, value: Any) -> bool:
    fields = item.items() if isinstance(item, dict) else ()
    held = [each for name, each in fields if folded(name) == key]
    return not held or str(held[0]).casefold() == str(value).casefold()


def _same(first: list[Any], second: list[Any]) -> bool:
    return canonical_json(first) == canonical_json(second)
