"""Where a schema stands in a result: what it is called, what holds it, how deep, and what thing it belongs to."""

from __future__ import annotations

from paraagent.seeds import derive
from paraagent.toolenv.identifiers import folded, singular, words


class Place:
    """Where a schema stands: what it is called, what it belongs to, how deep."""

    __slots__ = (
        "depth",
        "entity",
        "level",
        "listing",
        "member",
        "members",
        "name",
        "owner",
        "part",
        "path",
        "primary",
        "relative",
        "salt",
        "thing",
        "within",
    )

    def __init__(
        self,
        name: str,
        entity: tuple[str, ...],
        thing: tuple[str, ...],
        path: str = "",
        depth: int = 0,
        primary: bool = True,
        relative: str = "",
        level: int = 0,
        within: bool = False,
    ) -> None:
        self.name = name
        self.entity = entity
        """Words of what holds it: `name` of a user is a person's."""
        self.thing = thing
        """Words of what it is itself, for the fields that it holds."""
        self.owner = "".join(thing) if path else ""
        self.path, self.depth, self.primary = path, depth, primary
        self.relative, self.level, self.within = relative, level, within
        """Place and depth within the thing that holds it, and whether one does."""
        self.members = not path
        """An array here is what the tool lists."""
        self.listing: str | None = None
        """The field that holds what the tool lists."""
        self.member = False
        """It is an element of what the tool lists."""
        self.part = False
        """It is a part of the thing that holds it."""
        self.salt = derive(0, "field", relative) | 1

    def inside(self, field: str, same: bool) -> Place:
        """The place of a field; what it holds is the entity of the call itself where `same`."""
        thing = words(field) or self.thing
        return Place(
            field,
            self.thing,
            thing,
            f"{self.path}.{field}",
            self.depth + 1,
            self.primary and same,
            f"{self.relative}.{folded(field) or field}",
            self.level + 1,
            self.within,
        )

    def element(self, index: int | None) -> Place:
        thing = (*self.thing[:-1], singular(self.thing[-1])) if self.thing else ()
        mark = f"[{'' if index is None else index}]"
        path, relative = f"{self.path}{mark}", f"{self.relative}{mark}"
        return Place(self.name, self.entity, thing, path, self.depth, False, relative, self.level, self.within)

    def thing_of(self, noun: str) -> Place:
        """The same place, seen from within the thing that stands here."""
        return Place(self.name, self.entity, (noun,), self.path, self.depth, self.primary, within=True)

    def field_path(self, field: str) -> str:
        """As in the catalog's table `fields`."""
        return f"{self.path}.{field}".removeprefix(".")
