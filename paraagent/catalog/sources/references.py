"""`$ref` between the files of one folder: rewritten, so that every reference says from the root what it names."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote


def joined(name: str, root: Any, parts: Mapping[str, Any]) -> list[str]:
    """Rewrite the references of a document and of its parts in place: `#/…` into the root, `part.yaml#/…` into a part.

    Args:
        name: of the root, as the parts are named: relative to their folder.

    Returns:
        The references that lead elsewhere, out of the folder or to another host, each once; they lead nowhere now.
    """
    foreign: dict[str, None] = {}

    def target(base: str, link: str) -> str:
        file, mark, pointer = link.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(file))) if file else base
        if file.startswith("/") or "://" in file or (place != name and place not in parts):
            foreign[link] = None
            return "#!"
        return (mark or "#") + pointer if place == name else f"{place}#{pointer}"

    for base, document in ((name, root), *parts.items()):
        rewrite(document, partial(target, base))
    return list(foreign)


def rewrite(node: Any, change: Callable[[str], str]) -> None:
    """Change every `$ref` below a node in place, however deep and however often shared."""
    for found in _mappings(node):
        link = found.get("$ref")
        if isinstance(link, str):
            found["$ref"] = change(link)


def _mappings(node: Any) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        now = waiting.pop()
        if not isinstance(now, dict | list) or id(now) in seen:
            continue
        seen.add(id(now))
        if isinstance(now, dict):
            yield now
            waiting.extend(now.values())
        else:
            waiting.extend(now)
