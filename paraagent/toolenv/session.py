"""What one world remembers of its session: the things it has shown or made, and what was changed about them.

A thing that nobody has changed needs no memory: its fields follow from its key. Kept are its identifying values, so
that they are known again, where it lies, and what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paraagent.catalog.entities import Entity
from paraagent.seeds import derive
from paraagent.toolenv.meaning import STANDING, WEAK, Kind

_NOTHING: Mapping[Any, Any] = {}


class Record:
    """One thing of the world."""

    __slots__ = ("deleted", "fields", "ids", "key", "links")

    def __init__(self, key: int) -> None:
        self.key = key
        """From which every field follows that nobody wrote."""
        self.ids: dict[Entity, Any] = {}
        """Its identifying values, as they were shown."""
        self.links: Mapping[Entity, Any] = _NOTHING
        """What it lies in or refers to."""
        self.fields: Mapping[str, Any] = _NOTHING
        """What was written, by folded name."""
        self.deleted = False

    def link(self, links: Mapping[Entity, Any]) -> None:
        """Say what it lies in, where that is not known yet."""
        if links:
            self.links = {**links, **self.links}

    def write(self, fields: Mapping[str, Any], links: Mapping[Entity, Any]) -> None:
        """Change it for good."""
        self.fields = {**self.fields, **fields}
        self.links = {**self.links, **links}


class Written:
    """What the session wrote about one thing."""

    __slots__ = ("fields", "kind", "links", "made", "record")

    def __init__(self, kind: Kind, record: Record, made: bool) -> None:
        self.kind, self.record, self.made = kind, record, made
        self.fields: dict[str, Any] = {}
        self.links: dict[Entity, Any] = {}


class Session:
    """The things of one world by what identifies them."""

    def __init__(self, seed: int, issued: Iterable[Any] | None) -> None:
        self.seed = seed
        self._given = None if issued is None else set(map(str, issued))
        self._known: dict[tuple[Entity, str, str], Record | None] = {}
        self._made: dict[Kind, list[Record]] = {}
        self._single: dict[int, Record] = {}
        self.written: dict[int, Written] = {}
        """By the key of the thing, in the order in which they were first written."""

    def find(self, entity: Entity, value: Any, place: str = "") -> Record | None:
        """The thing that a value identifies, None where this world and the task never issued the value."""
        text, place = str(value), place if entity.attribute in WEAK else ""
        for key in ((entity, text, place), (entity, text, "")):
            if key in self._known:
                return self._known[key] or self._make(key, value)
        if self._given is not None and text not in self._given and text.lower() not in STANDING:
            return None
        return self._make((entity, text, place), value)

    def give(self, values: Iterable[Any]) -> None:
        """Note values that something other than this world showed."""
        if self._given is not None:
            self._given.update(map(str, values))

    def issue(self, entity: Entity, value: Any) -> None:
        """Note that a value was shown."""
        self._known.setdefault((entity, str(value), ""), None)

    def identify(self, record: Record, entity: Entity, value: Any, place: str = "") -> None:
        """Note that a value was shown as one that identifies this thing."""
        record.ids[entity] = value
        self._known[(entity, str(value), place if entity.attribute in WEAK else "")] = record

    def seen(self, entity: Entity, value: Any, place: str) -> Record:
        """The thing with this value, made where it is new: for values that the world itself gives."""
        key = (entity, str(value), place if entity.attribute in WEAK else "")
        return self._known.get(key) or self._make(key, value)

    def single(self, key: int) -> Record:
        """The one thing of a kind in its place, such as the settings of an account."""
        return self._single.setdefault(key, Record(key))

    def add(self, kind: Kind, record: Record) -> None:
        """A new thing, so that lists show it, the latest first."""
        self._made.setdefault(kind, []).insert(0, record)

    def note(self, kind: Kind, record: Record, fields: Mapping[str, Any], links: Mapping[Entity, Any]) -> None:
        """Remember that a thing was written."""
        made = any(record is each for each in self.made(kind))
        written = self.written.setdefault(record.key, Written(kind, record, made))
        written.fields |= fields
        written.links |= links

    def made(self, kind: Kind) -> list[Record]:
        return self._made.get(kind, [])

    @property
    def count(self) -> int:
        """How many things were made: the name of the next one."""
        return sum(map(len, self._made.values()))

    def _make(self, key: tuple[Entity, str, str], value: Any) -> Record:
        entity, text, place = key
        record = Record(derive(self.seed, *entity, text, place))
        record.ids[entity] = value
        self._known[key] = record
        return record
