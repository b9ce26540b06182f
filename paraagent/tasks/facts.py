"""Facts worth asking for: scalars of a result that a person would want to know, each with words that name it alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from paraagent.toolenv.identifiers import singular, words


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TELLING = _words(
    "status state name title subject email phone amount balance total price cost count currency city country "
    "region address start end due created updated modified expires expiry expiration date time timestamp version "
    "owner author role plan tier score rating language timezone zone quantity duration size capacity number "
    "location place category priority severity level percent temperature height weight year company organization "
    "manager assignee customer username login color brand model engine type kind rank age limit at by days hours "
    "minutes seconds population distance speed port host domain humidity wind pressure conditions eta platform "
    "protocol mode phase"
)
_DULL = _words(
    "id ids etag kind self href link links token cursor page next previous offset hash sha digest checksum "
    "fingerprint uuid guid arn url uri request trace schema nonce signature secret key password api metadata html "
    "raw xml json icon image avatar thumbnail revision resource pages elements"
)
_BARE = (("limit",), ("size",), ("at",), ("by",), ("time", "at"))
"""Names that say nothing alone."""
_PLUMBING = frozenset({"pages", "pagination", "paging", "meta", "metadata", "links", "error", "errors"})
_VERSIONLIKE = re.compile(r"\d")
_LONGEST_VALUE = 40
_DEEPEST = 3
_MOST_WORDS = 4
_WRAPPER_FIELDS = 3


_WRAPPERS = frozenset(
    {"data", "result", "response", "item", "object", "body", "attributes", "properties", "output", "details", "spec"}
)


_ADJECTIVES = _words(
    "public private active inactive current new old recent available last shared allowed external internal all total "
    "following upcoming pending"
)
"""Names of lists that say no more than which things are in them."""


_ANYTHING = _words("item value data datum content element record row")
"""Names of lists that do not say what is in them."""


class Fact(NamedTuple):
    """One scalar of a result."""

    path: str
    """Dotted, list positions as numbers."""
    label: str
    """How a request names it, with its article: `the start time`."""
    rank: int
    """Lower is asked for sooner."""


def facts_of(result: Any) -> list[Fact]:
    """The facts of one result that can be asked for without doubt, best first."""
    leaves = list(_leaves(result, ()))
    wrapper = _wrapper(result)
    folded = Counter(_place(path) for path, _ in leaves)
    found: dict[str, Fact] = {}
    labels: Counter[str] = Counter()
    for path, value in leaves:
        label = _label(path, wrapper)
        if label is None:
            continue
        labels[label] += 1
        if folded[_place(path)] and _worth(path, value):
            rank = 2 * len(path) + (6 if any(isinstance(part, int) for part in path) else 0)
            found.setdefault(label, Fact(".".join(map(str, path)), label, rank))
    return sorted(
        (fact for label, fact in found.items() if labels[label] == 1), key=lambda fact: (fact.rank, fact.path)
    )


def value_at(result: Any, path: str) -> Any:
    """The value at a dotted path.

    Raises:
        LookupError: the result has no such place.
    """
    for part in path.split("."):
        if isinstance(result, list):
            result = result[int(part)]
        elif isinstance(result, dict):
            result = result[part]
        else:
            raise LookupError(path)
    return result


def answerable(value: Any) -> bool:
    """Whether a value is one that an answer can state: short text or a number; yes and no are too easily guessed."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return not isinstance(value, str) or (2 <= len(value) <= _LONGEST_VALUE and "\n" not in value)


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value[:1]):
            yield from _leaves(inner, (*path, position))
    else:
        yield path, value


def _place(path: tuple[str | int, ...]) -> tuple[str, ...]:
    return tuple(str(part) for part in path)


def _worth(path: tuple[str | int, ...], value: Any) -> bool:
    names = [part for part in path if isinstance(part, str)]
    if not names or len(path) > _DEEPEST or not answerable(value) or any("." in name or not name for name in names):
        return False
    parts = words(names[-1])
    holders = {word for name in names[:-1] for word in words(name)}
    if (
        parts in _BARE
        or set(parts) & _DULL
        or holders & _PLUMBING
        or not set(parts) & _TELLING
        or (parts[-1] == "status" and not isinstance(value, str))
        or sum(isinstance(part, int) for part in path) > 1
    ):
        return False
    return not any(_VERSIONLIKE.search(part) for part in parts)


def _wrapper(result: Any) -> str | None:
    """The one field of a result that holds everything else, so that its name adds nothing."""
    if not isinstance(result, dict):
        return None
    inner = [name for name, value in result.items() if isinstance(value, dict)]
    return inner[0] if len(inner) == 1 and len(result) <= _WRAPPER_FIELDS else None


def _label(path: tuple[str | int, ...], wrapper: str | None) -> str | None:
    """`("items", 0, "dueDate")` -> `the due date of the first item`; None where the names are no words."""
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return None
    leaf = words(names[-1])
    if leaf == ("created", "by"):
        leaf = ("creator",)
    if not leaf or len(leaf) > _MOST_WORDS or leaf[0] in ("to", "from", "is", "has") or leaf[-1] == "by":
        return None
    text = _spoken(leaf)
    if isinstance(path[-1], int):
        return f"the first {_spoken((*leaf[:-1], singular(leaf[-1])))}"
    if len(path) > 1 and isinstance(path[-2], int):
        holder = words(names[-2]) if len(names) > 1 else ("result",)
        if not holder or len(holder) > 3 or holder[-1] in _ADJECTIVES:
            return None
        if holder[-1] in ("list", "set", "detail", "details", "info") and len(holder) > 1:
            holder = holder[:-1]
        thing = _spoken((*holder[:-1], singular(holder[-1])))
        thing = "result" if thing in _ANYTHING else thing
        return f"the {_without(text, thing)} of the first {thing}"
    if len(names) > 1 and names[-2] != wrapper:
        holder = words(names[-2])
        if "by" in holder or (holder[-1:], leaf) == (("status",), ("version",)):
            return None
        if holder and holder[-1] not in _WRAPPERS:
            return f"the {_spoken(holder)} {_without(text, _spoken(holder))}"
    return f"the {text}"


def _without(text: str, thing: str) -> str:
    """`order status` of an order is its `status`."""
    shorter = text.removeprefix(thing + " ")
    return shorter if shorter else text


def _spoken(parts: tuple[str, ...]) -> str:
    spelled = {
        "id": "ID",
        "ip": "IP",
        "url": "URL",
        "num": "number of",
        "cpu": "CPU",
        "utc": "UTC",
        "dns": "DNS",
        "qty": "quantity",
        "tv": "TV",
        "gb": "GB",
        "mb": "MB",
        "vm": "VM",
        "sms": "SMS",
        "sku": "SKU",
    }
    if len(parts) > 1 and parts[0] in ("min", "max"):
        parts = (f"{parts[0]}imum", *parts[1:])
    if len(parts) == 2 and parts[0] == "date" and parts[1].endswith("ed"):
        parts = (parts[1], "date")
    if parts[-1] == "at" and len(parts) > 1:
        parts = (*parts[:-1], "time")
    if len(parts) > 1 and parts[-2] == "expires" and parts[-1] in ("time", "date"):
        parts = (*parts[:-2], "expiry", parts[-1])
    if parts[-1] == "expires":
        parts = (*parts[:-1], "expiry")
    if parts[-1] in ("created", "updated", "modified", "expiry"):
        parts = (*parts, "time")
    return " ".join(spelled.get(part, part) for part in parts)
