"""What one world remembers of its session: the things it has shown or made, and what was changed about them.

A thing that nobody has changed needs no memory: its fields follow from its key. Kept are its identifying values, so
that they are known again, where it lies, and what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paraagent.catalog.entities import Entity
from paraagent.files import canonical_json
from paraagent.seeds import derive
from paraagent.toolenv.meaning import STANDING, WEAK, Kind

Place = Mapping[str, Any]
"""Where a thing lies, by what says so."""
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
        self._known: dict[tuple[Entity, str], list[tuple[Place, Record | None]]] = {}
        """By value: the things that it identifies, each in its place; None for one that was only referred to."""
        self._made: dict[Kind, list[Record]] = {}
        self._single: dict[int, Record] = {}
        self.written: dict[int, Written] = {}
        """By the key of the thing, in the order in which they were first written."""

    def find(self, entity: Entity, value: Any, place: Place = _NOTHING) -> Record | None:
        """The thing that a value identifies, None where this world and the task never issued the value."""
        found = self._look(entity, value, place)
        if found is not None:
            return found[1] or self._make(entity, value, place)
        text = str(value)
        if self._given is not None and text not in self._given and text.lower() not in STANDING:
            return None
        return self._make(entity, value, place)

    def give(self, values: Iterable[Any]) -> None:
        """Note values that something other than this world showed."""
        if self._given is not None:
            self._given.update(map(str, values))

    def issue(self, entity: Entity, value: Any) -> None:
        """Note that a value was shown."""
        if (entity, str(value)) not in self._known:
            self._known[entity, str(value)] = [(_NOTHING, None)]

    def identify(self, record: Record, entity: Entity, value: Any, place: Place = _NOTHING) -> None:
        """Note that a value was shown as one that identifies this thing."""
        record.ids[entity] = value
        known = self._known.setdefault((entity, str(value)), [])
        if entity.attribute not in WEAK:
            known[:] = [(_NOTHING, record)]
        else:
            known[:] = [each for each in known if each[0] != place]
            known.append((place, record))

    def seen(self, entity: Entity, value: Any, place: Place) -> Record:
        """The thing with this value, made where it is new: for values that the world itself gives."""
        found = self._look(entity, value, place)
        return (found and found[1]) or self._make(entity, value, place)

    def is_free(self, entity: Entity, value: Any, place: Place, record: Record) -> bool:
        """Whether a value identifies nothing, or this very thing."""
        found = self._look(entity, value, place)
        return found is None or found[1] is None or found[1] is record

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

    def _look(self, entity: Entity, value: Any, place: Place) -> tuple[Place, Record | None] | None:
        """What is known of a value: in this very place, else in one that may be the same, said in other words."""
        known = self._known.get((entity, str(value)))
        if known is None or entity.attribute not in WEAK:
            return known[0] if known else None
        same = next((each for each in known if each[0] == place), None)
        return same or next((each for each in known if _may_be_one(each[0], place)), None)

    def _make(self, entity: Entity, value: Any, place: Place) -> Record:
        weak = entity.attribute in WEAK
        where = canonical_json(place).decode() if weak and place else ""
        record = Record(derive(self.seed, *entity, str(value), where))
        self.identify(record, entity, value, place)
        return record


def _may_be_one(first: Place, second: Place) -> bool:
    """Whether nothing that both places say differs."""
    return all(str(first[name]) == str(second[name]) for name in first.keys() & second.keys())
