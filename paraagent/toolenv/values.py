"""Realistic scalars: which text or number a field holds, by its format, its name and the entity it belongs to.

A leaf is a pure function of a 64-bit key and the world's clock. People and organisations are invented, domains are
reserved (example.com), telephone numbers fictional (555-01xx), and dates keep their order: created, updated, due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.toolenv import words as w
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.leaves import Leaf, Text, date, date_time, mix, pair, pick
from paraagent.toolenv.numbers import is_number, whole_of
from paraagent.toolenv.patterns import compile_pattern
from paraagent.toolenv.texts import (
    BY_LAST,
    FORMATS,
    FULL_NAME,
    NOUN,
    SLUG,
    TITLE_PAIR,
    hexadecimal,
    identifier,
    sentence,
    url,
    user_name,
)
from paraagent.validators import compile_validator

_MOMENTS = frozenset(["at", "time", "timestamp", "datetime", "stamp"])
_HAPPENED = frozenset(
    ["created", "updated", "modified", "changed", "published", "submitted", "started", "finished", "expires"]
)
"""Last words of a moment that is named by what happened then, as in `lastModified`."""
_CLOCKS = frozenset(["utc", "gmt", "iso", "yyyymmdd"])
"""Words after a moment that say how it is written."""
_WHEN = w.PAST_EVENTS | w.RECENT_EVENTS | w.COMING_EVENTS | w.LATER_EVENTS
_ASKING = frozenset(["is", "has", "can", "should", "allow", "allows"])
_SECRET = frozenset(["primary", "secondary", "access", "api", "secret", "private", "public", "shared", "account"])
"""Words before a key that nobody is meant to read."""
_LINKS = frozenset(["url", "uri", "link", "href", "website", "homepage", "webpage", "self", "permalink", "iri"])
_PICTURES = frozenset(["image", "avatar", "logo", "photo", "picture", "thumbnail", "icon"])


@lru_cache(maxsize=65_536)
def _natural_text(name: str, entity: tuple[str, ...], kind: str) -> Text:
    """By format, else by name; shared by all fields of one name, which keeps what runs together close in memory."""
    return FORMATS[kind](frozenset(words(name)), entity) if kind in FORMATS else _text(name, entity)


def _text(name: str, entity: Sequence[str]) -> Text:
    """By the field's name; `entity` is the words of the thing it belongs to."""
    parts = words(name) or ("value",)
    if len(parts) > 1 and parts[-1] in _CLOCKS:
        parts = parts[:-1]
    names, last, before = frozenset(parts), parts[-1], parts[:-1]
    if last in _LINKS or last in _PICTURES:
        return url(before or entity, ".png" if names & _PICTURES else "")
    if parts[0] in _ASKING and len(parts) > 1:
        return pick(("true", "false"))
    if last in _MOMENTS or last in _HAPPENED or (last == "on" and before):
        return date_time(names)
    if (
        last in ("date", "dob")
        or parts in (("start",), ("end",), ("last", "update"))
        or "birthday" in names
        or names >= {"date", "birth"}
        or ("date" in names and names & _WHEN)
    ):
        return date(names)
    if "time" in names and names & _WHEN:
        return date_time(names)
    if last in ("expiry", "expiration") and not before:
        return date_time(names)
    if (last == "by" and before) or last in w.PEOPLE:
        return FULL_NAME
    if last in ("id", "identifier", "ref", "reference", "ids"):
        return identifier(before or entity)
    if last.endswith("id") and len(last) > 3 and last not in ("paid", "valid", "grid", "uuid", "guid", "void", "bid"):
        return identifier((last.removesuffix("id"),))
    if last == "title" and "job" in names:
        return pick(w.ROLES)
    if last == "name" or last == "names":
        own = tuple(word for word in before if word not in ("display", "full"))
        return _name(own or entity, joined="".join(parts))
    if last in w.PROSE:
        return sentence
    if last == "code":
        if "country" in names:
            return pick(w.COUNTRY_CODES)
        if names & {"currency", "lang", "language"}:
            return pick(w.CURRENCIES if "currency" in names else w.LANGUAGE_CODES)
        if names & {"zip", "postal", "post"}:
            return BY_LAST["zip"]
        if names & {"airport", "iata"}:
            return BY_LAST["airport"]
    if last in ("state", "region") and set(entity) & {"address", "location", "billing", "shipping"}:
        return pick(w.STATES)
    if last == "sid":
        mark = (("".join(before) or "".join(entity[-1:]) or "resource") + "x")[:2].upper()
        return lambda key, now: f"{mark}{key:016x}{mix(key):016x}"
    if last in ("key", "secret") and names & _SECRET:
        return hexadecimal(32)
    if last == "arn":
        thing = "-".join(before or entity) or "resource"
        return lambda key, now: f"arn:aws:service:{w.CLOUD_REGIONS[key % 8]}:123456789012:{thing}/{SLUG(key >> 8, now)}"
    if last == "address" and "ip" in names:
        return BY_LAST["ip"]
    if last == "type" and names & {"mime", "content", "media"}:
        return pick(w.MIME_TYPES)
    if last == "zone" and "time" in names:
        return pick(w.TIMEZONES)
    found = BY_LAST.get(last) or BY_LAST.get(singular(last))
    if found is None and is_number(frozenset({last})):
        whole = whole_of(frozenset({last}))
        return lambda key, now: str(whole(key, now))
    return found or (SLUG if last in w.RESOURCES else NOUN)


def _name(entity: Sequence[str], joined: str) -> Text:
    noun = singular(entity[-1]) if entity else ""
    if joined in ("firstname", "givenname"):
        return pick(w.FIRST_NAMES)
    if joined in ("lastname", "familyname"):
        return pick(w.LAST_NAMES)
    if joined == "packagename":
        return pair(w.TOPICS, w.NOUNS, "com.example.{}.{}")
    if joined == "fullname" or ((noun in w.PEOPLE or entity[-1:] == ("by",)) and joined != "username"):
        return FULL_NAME
    if joined in ("username", "screenname"):
        return user_name
    if noun in w.ORGANISATIONS:
        return pick(w.COMPANIES)
    if noun in ("city", "country", "host", "domain", "region", "file", "currency", "language"):
        return BY_LAST["filename" if noun == "file" else noun]
    return SLUG if noun in w.RESOURCES or not noun else TITLE_PAIR


_LIMITS = frozenset({"minLength", "maxLength", "pattern", "format", "allOf", "not", "if"})
"""Keywords without which a schema allows any string."""


def text_leaf(name: str, entity: Sequence[str], schema: Schema) -> Leaf:
    """A string that the schema allows: by format, by name, by pattern, else by name cut or padded to length."""
    natural = _natural_text(name, tuple(entity), schema.get("format", ""))
    if schema.keys().isdisjoint(_LIMITS):
        return natural
    valid = compile_validator(schema).is_valid
    shortest, longest, pattern = (
        min(schema.get("minLength", 0), _PADDED),
        schema.get("maxLength", 1 << 20),
        schema.get("pattern"),
    )
    trial = [mix(number) for number in range(12)]
    fits = all(valid(natural(key, 1_780_000_000)) for key in trial)
    if fits and not pattern and shortest <= 1 and longest >= _LONG:
        return natural
    if pattern:
        made = [found for least in (0, shortest) if (found := compile_pattern(pattern, least)) is not None]
        best = None if fits else max(made, key=lambda each: sum(valid(each(key)) for key in trial), default=None)
        return _retried(natural if best is None else lambda key, now: best(key), valid)

    def fitted(key: int, now: int) -> str:
        text = natural(key, now)
        if len(text) < shortest and text[-1:] == "Z":
            text = f"{text[:-1]}+00:00"  # a moment, spelled longer
        if len(text) < shortest:
            text += "".join(f"{mix(key + n):016x}" for n in range((shortest - len(text)) // 16 + 1))[
                : shortest - len(text)
            ]
        if len(text) > longest:
            text = text[:longest].rstrip() if len(text[:longest].rstrip()) >= shortest else text[:longest]
        return text

    return fitted


_PADDED = 2_000
"""Characters up to which a text is padded; a schema that asks for more has no answer."""
_LONG = 120
"""Characters that no value by name or format has."""


def _retried(leaf: Text, valid: Callable[[Any], bool], attempts: int = 24) -> Text:
    def retried(key: int, now: int) -> str:
        text = leaf(key, now)
        for _ in range(attempts):
            if valid(text):
                break
            key = mix(key + 1)
            text = leaf(key, now)
        return text

    return retried
