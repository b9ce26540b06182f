"""Which argument a result field names: the same name, or `id` of an event <-> `eventId`.

A general name (`id`, `name`, `status`) belongs to the thing that it stands in, so it echoes only in the entity that the
call is about; a telling name (`projectId`) means the same thing wherever it stands.
"""

from __future__ import annotations

import re

from paraagent.catalog.interface import ToolInterface
from paraagent.toolenv.identifiers import folded, singular, words
from paraagent.toolenv.words import FUNCTION_WORDS, GENERAL_NAMES

KEYS = ("id", "name", "key", "code", "slug", "number", "uuid", "arn")
"""What identifies an entity: `<entity>Id` outside is `id` inside."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class EchoPlan:
    """For one tool: which of its parameters a field of the result repeats."""

    def __init__(self, tool: ToolInterface) -> None:
        self._parameters = {folded(name): name for name in sorted(tool.properties, reverse=True)}
        self.entities = _entities(tool)

    def sources(self, field: str, owner: str, *, primary: bool) -> tuple[str, ...]:
        """Names of the parameters that `field` repeats, best first.

        `owner` is the folded name of the thing that holds the field, empty at the top; `primary` says that it is the
        entity that the call is about.
        """
        name = folded(field)
        found: list[str] = []
        if name in self._parameters and (primary or name not in GENERAL_NAMES):
            found.append(name)
        owners = {owner} if owner else set()
        if primary:
            owners |= self.entities
        for thing in sorted(owners):
            if name in KEYS and thing + name in self._parameters:
                found.append(thing + name)
            key = name.removeprefix(thing)
            if primary and key != name and key in KEYS and key in self._parameters:
                found.append(key)
        return tuple(dict.fromkeys(self._parameters[key] for key in found))


def _entities(tool: ToolInterface) -> frozenset[str]:
    """Folded singular nouns of what the call is about, from its path and its name."""
    found: set[str] = set()
    noun = [word for word in words(re.split(r"[./:]", tool.source_name)[-1]) if word not in FUNCTION_WORDS]
    if noun:
        found.add("".join([*noun[:-1], singular(noun[-1])]))
    segments = [segment for segment in tool.path.split("/") if segment]
    if len(segments) > 1 and _PLACEHOLDER.fullmatch(segments[-1]):
        before = words(segments[-2])
        if before:
            found.add("".join([*before[:-1], singular(before[-1])]))
        inside = folded(segments[-1])
        for key in KEYS:
            if inside.endswith(key) and inside != key:
                found.add(inside.removesuffix(key))
    return frozenset(found)
