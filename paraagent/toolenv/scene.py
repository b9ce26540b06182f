"""What the generators of one call look at: its arguments, the session, and the thing that is being shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paraagent.catalog.entities import Entity
from paraagent.toolenv.lists import Page, Window
from paraagent.toolenv.session import Place, Record, Session


class Scene:
    """One call, seen from inside."""

    __slots__ = (
        "context",
        "given",
        "links",
        "members",
        "only",
        "page",
        "place",
        "record",
        "session",
        "target",
        "token",
        "wanted",
        "window",
    )

    def __init__(self, session: Session, given: Mapping[str, Any], links: Mapping[Entity, Any], place: Place) -> None:
        self.session = session
        self.given = given
        """Arguments by folded name."""
        self.links = links
        """What the arguments identify."""
        self.place = place
        """Where the call's thing lies, for what is told apart only within its place."""
        self.target: Record | None = None
        """The thing that the call is about."""
        self.record: Record | None = None
        """The thing that is being shown."""
        self.context: Mapping[str, Any] = {}
        """What all elements of the list have in common, by folded name."""
        self.wanted: Mapping[str, Any] = {}
        """What elements are chosen by, by folded name."""
        self.members: Sequence[Record] = ()
        """Things made in this session that belong to the list."""
        self.only: Sequence[Record] | None = None
        """The elements that were asked for by their ids."""
        self.page = Page(0, 1 << 20, None)
        self.token: Callable[[int], str] = str
        self.window: Window | None = None
        """What the list came to show."""

    def known(self, entity: Entity) -> Any:
        """What the thing shown, or the call, says of this entity; None where nothing."""
        if self.record is not None:
            return self.record.links.get(entity)
        return self.links.get(entity)
