"""Lists as services give them: limits, pages by number, offset or token, totals, and filters by a field's value.

Which parameter or field plays which part is told from its name and type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.catalog.nouns import word_set
from paraagent.paraact.executor import ToolError
from paraagent.toolenv.identifiers import folded
from paraagent.toolenv.meaning import Meaning, scalar_type
from paraagent.toolenv.shapes import Check, check_of
from paraagent.toolenv.words import PRESENTATION

PAGE = 3
"""Elements of a page where the caller does not say, of a tool that has pages."""
_LIMIT = word_set(
    """
    limit maxresults maxitems maxrecords pagesize perpage size count first take top rows numresults resultsperpage
    itemsperpage pagelimit maxpagesize maxcount
    """
)
_NUMBER = word_set("page pagenumber pageindex pagenum currentpage")
_OFFSET = word_set("offset skip start startindex startat")
_TOKEN = word_set(
    """
    pagetoken nexttoken nextpagetoken marker cursor continuationtoken paginationtoken startingtoken nextmarker
    nextcursor pagecursor
    """
)
_NEXT = _TOKEN | {"next", "nextpage", "nextlink"}
_MORE = word_set("hasmore hasnextpage hasnext istruncated truncated morerecords moreresults")
_TOTAL = word_set(
    """
    total totalcount totalitems totalresults totalsize totalelements totalrecords totalhits numfound totalnumber
    totalentries
    """
)
_SHOWN = word_set("count resultcount itemcount resultscount numberofresults numresults")
_UNIQUE = word_set("id name title key uuid slug query q type")
"""Names of a list's parameters that are too general to be a filter by the field of that name."""
_SCALARS = word_set("string integer number boolean")


class Page(NamedTuple):
    """Which elements a call asks for."""

    offset: int
    limit: int
    token: Any


class Window(NamedTuple):
    """Which elements a list shows."""

    offset: int
    size: int
    total: int
    next: str | None
    """Token of what follows; None on the last page."""


class Role(NamedTuple):
    """A field that speaks of the list."""

    path: tuple[str, ...]
    part: Literal["token", "next", "more", "total", "shown"]
    required: bool
    valid: Check


class ListPlan:
    """How the parameters of one tool page and filter."""

    def __init__(self, tool: ToolInterface, meaning: Meaning) -> None:
        kinds = {name: scalar_type(schema) for name, schema in tool.properties.items() if isinstance(schema, dict)}
        whole = [name for name, kind in kinds.items() if kind == "integer" or kind == "number"]
        self.limit = _first(whole, _LIMIT)
        self.number = _first(whole, _NUMBER)
        self.offset = _first(whole, _OFFSET)
        self.token = _first([name for name, kind in kinds.items() if kind in ("string", "any")], _TOKEN)
        self.first_offset = 1 if self.offset and tool.properties[self.offset].get("minimum") == 1 else 0
        self.first_number = 0 if self.number and _counts_from_nought(tool.properties[self.number]) else 1
        self._strict = self.token not in tool.required
        self.pages = bool(self.token or self.number or self.offset)
        taken = {each.name for each in meaning.taken}
        self.paging = frozenset(name for name in (self.limit, self.number, self.offset, self.token) if name)
        """Parameters that say how much of the list is shown."""
        self.filters = tuple(
            (name, folded(name))
            for name, kind in kinds.items()
            if (kind in _SCALARS or "enum" in tool.properties[name])
            and name not in taken
            and name not in self.paging
            and name not in tool.required
            and folded(name) not in _UNIQUE | PRESENTATION
        )
        """Parameters that choose among the elements, with their folded names."""

    def page(self, arguments: Mapping[str, Any]) -> Page:
        """What the arguments ask for; without a limit a page of `PAGE`, or everything where the tool has no pages."""
        limit = PAGE if self.pages else 1 << 20
        if self.limit is not None and _is_whole(arguments.get(self.limit)):
            limit = max(int(arguments[self.limit]), 0)
        offset = 0
        if self.offset is not None and _is_whole(arguments.get(self.offset)):
            offset = max(int(arguments[self.offset]) - self.first_offset, 0)
        elif self.number is not None and _is_whole(arguments.get(self.number)):
            offset = max(int(arguments[self.number]) - self.first_number, 0) * limit
        return Page(offset, limit, arguments.get(self.token) if self.token else None)

    def window(self, page: Page, total: int, least: int, name: Callable[[int], str]) -> Window:
        """Raises `ToolError` where the token is none that this list gave; `name` gives the token of an offset."""
        offset = page.offset
        if page.token not in (None, ""):
            found = next((at for at in range(total + 1) if name(at) == page.token), None)
            if found is None and self._strict:
                message = f"{self.token} is not one that this list gave; leave it out to get the first page"
                raise ToolError("InvalidRequestError", message)
            offset = found or 0
        size = max(min(page.limit, total - offset), 0)
        if size < least:
            size, offset = least, max(min(offset, total - least), 0)
        ended = offset + size >= total or not size
        return Window(offset, size, total, None if ended else name(offset + size))


def roles(holder: Schema, path: tuple[str, ...] = ()) -> Iterator[Role]:
    """Fields of a list's holder that speak of the list."""
    for name, schema in holder.get("properties", {}).items():
        if not isinstance(schema, dict):
            continue
        kind, key = scalar_type(schema), folded(name)
        bare = name in holder.get("required", ())
        if kind in ("string", "any") and key in _NEXT:
            yield Role((*path, name), "token" if key in _TOKEN else "next", bare, check_of(schema))
        elif kind == "boolean" and key in _MORE:
            yield Role((*path, name), "more", bare, check_of(schema))
        elif kind in ("integer", "number") and key in _TOTAL:
            yield Role((*path, name), "total", bare, check_of(schema))
        elif kind in ("integer", "number") and key in _SHOWN:
            yield Role((*path, name), "shown", bare, check_of(schema))
        elif kind == "object" and len(path) < 2:
            yield from roles(schema, (*path, name))


def fill(result: Any, found: Sequence[Role], window: Window, tokens: bool) -> None:
    """Let the fields that speak of a list say what it holds."""
    for (*above, name), role, required, valid in found:
        holder = result
        for part in above:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or name not in holder:
            continue
        if role == "more":
            holder[name] = window.next is not None
        elif role == "total":
            holder[name] = window.total
        elif role == "shown":
            holder[name] = max(min(window.size, window.total - window.offset), 0)
        elif window.next is None and not required:
            del holder[name]
        elif window.next is None:
            holder[name] = next((ending for ending in (None, "") if valid(ending)), holder[name])
        elif role == "token" and tokens:
            holder[name] = window.next


def matches(shown: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether an element, by folded names, has the values that the filters ask for."""
    return all(_same(shown[name], value) for name, value in wanted.items() if name in shown)


def _same(held: Any, wanted: Any) -> bool:
    return str(held).casefold() == str(wanted).casefold()


def _first(names: Sequence[str], known: frozenset[str]) -> str | None:
    return next((name for name in names if folded(name) in known), None)


def _counts_from_nought(schema: Mapping[str, Any]) -> bool:
    return schema.get("default") == 0 or (schema.get("minimum") == 0 and "default" not in schema)


def _is_whole(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
