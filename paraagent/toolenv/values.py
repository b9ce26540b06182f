"""Realistic scalars: which text or number a field holds, by its format, its name and the entity it belongs to.

A leaf is a pure function of a 64-bit key and the world's clock. People and organisations are invented, domains are
reserved (example.com), telephone numbers fictional (555-01xx), and dates keep their order: created, updated, due.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.toolenv import words as w
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.leaves import Leaf, Text, date, date_time, mix, pair, pick
from paraagent.toolenv.numbers import is_number, whole_of
from paraagent.toolenv.patterns import compile_pattern
from paraagent.validators import compile_validator

_PREFIXES = {
    "event": "evt",
    "customer": "cus",
    "user": "usr",
    "message": "msg",
    "id": "ref",
    "account": "acc",
    "image": "img",
}
_VOWELS = frozenset("aeiou")


def _sentence(key: int, now: int) -> str:
    return w.SENTENCES[key % len(w.SENTENCES)].format(
        a=w.ADJECTIVES[(key >> 8) % len(w.ADJECTIVES)],
        n=w.NOUNS[(key >> 16) % len(w.NOUNS)],
        t=w.TOPICS[(key >> 24) % len(w.TOPICS)],
        c=w.CITIES[(key >> 32) % len(w.CITIES)],
        f=w.FIRST_NAMES[(key >> 40) % len(w.FIRST_NAMES)],
    )


def _hexadecimal(length: int) -> Text:
    def text(key: int, now: int) -> str:
        digits = f"{key:016x}"
        while len(digits) < length:
            key = mix(key)
            digits += f"{key:016x}"
        return digits[:length]

    return text


def _uuid(key: int, now: int) -> str:
    first, second = f"{key:016x}", f"{mix(key):016x}"
    return f"{first[:8]}-{first[8:12]}-4{first[13:16]}-a{second[1:4]}-{second[4:16]}"


def _identifier(entity: Sequence[str]) -> Text:
    """`evt_8f3a2c`: the skeleton of the entity's word and six hexadecimal digits."""
    noun = singular(entity[-1]) if entity else "id"
    prefix = _PREFIXES.get(noun) or (noun[:1] + "".join(c for c in noun[1:] if c.isalpha() and c not in _VOWELS))[:3]
    return lambda key, now: f"{prefix}_{key & 0xFFFFFF:06x}"


def _url(entity: Sequence[str], suffix: str = "") -> Text:
    place = entity[-1] if entity else "pages"
    return lambda key, now: f"https://www.example.com/{place}/{key & 0xFFFFFF:06x}{suffix}"


_REGION = pick(w.CLOUD_REGIONS)
_FULL_NAME = pair(w.FIRST_NAMES, w.LAST_NAMES, "{} {}")
_NOUN = pick(w.NOUNS)
_SLUG = pair(w.TOPICS, w.NOUNS, "{}-{}")
_TITLE_PAIR: Text = lambda key, now: f"{w.ADJECTIVES[key % 24].capitalize()} {w.NOUNS[(key >> 16) % 24].capitalize()}"  # noqa: E731


def _email(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}@example.com"


def _user_name(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}"


def _phone(key: int, now: int) -> str:
    return f"+1 202-555-01{key % 100:02d}"


_FORMATS: dict[str, Callable[[frozenset[str], Sequence[str]], Text]] = {
    "date-time": lambda names, entity: date_time(names),
    "google-datetime": lambda names, entity: date_time(names),
    "date": lambda names, entity: date(names),
    "full-date": lambda names, entity: date(names),
    "time": lambda names, entity: lambda key, now: f"{key % 24:02d}:{(key >> 8) % 4 * 15:02d}:00Z",
    "duration": lambda names, entity: lambda key, now: f"PT{key % 90 + 1}M",
    "google-duration": lambda names, entity: lambda key, now: f"{(key % 60 + 1) * 30}s",
    "email": lambda names, entity: _email,
    "uri": lambda names, entity: _url(entity),
    "url": lambda names, entity: _url(entity),
    "uri-reference": lambda names, entity: _url(entity),
    "uuid": lambda names, entity: _uuid,
    "ipv4": lambda names, entity: lambda key, now: f"203.0.113.{key % 254 + 1}",
    "ipv6": lambda names, entity: lambda key, now: f"2001:db8::{key & 0xFFFF:x}",
    "hostname": lambda names, entity: pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "byte": lambda names, entity: lambda key, now: base64.b64encode(_SLUG(key, now).encode()).decode(),
    "phone": lambda names, entity: _phone,
    "int64": lambda names, entity: lambda key, now: str(whole_of(names)(key, now)),
    "uint64": lambda names, entity: lambda key, now: str(whole_of(names)(key, now)),
    "decimal": lambda names, entity: lambda key, now: f"{key % 500_000 / 100 + 5:.2f}",
}

_BY_LAST: dict[str, Text] = {
    "email": _email,
    "mail": _email,
    "phone": _phone,
    "telephone": _phone,
    "mobile": _phone,
    "fax": _phone,
    "city": pick(w.CITIES),
    "town": pick(w.CITIES),
    "location": pick(w.CITIES),
    "place": pick(w.CITIES),
    "country": pick(w.COUNTRIES),
    "province": pick(w.STATES),
    "region": pick(w.CLOUD_REGIONS),
    "zip": lambda key, now: f"{key % 90_000 + 10_000}",
    "zipcode": lambda key, now: f"{key % 90_000 + 10_000}",
    "postcode": lambda key, now: f"{key % 90_000 + 10_000}",
    "street": lambda key, now: f"{key % 180 + 1} {w.STREETS[(key >> 16) % 8]}",
    "address": lambda key, now: f"{key % 180 + 1} {w.STREETS[(key >> 16) % 8]}, {w.CITIES[(key >> 32) % 30]}",
    "timezone": pick(w.TIMEZONES),
    "currency": pick(w.CURRENCIES),
    "locale": pick(w.LOCALES),
    "lang": pick(w.LANGUAGE_CODES),
    "language": pick(w.LANGUAGES),
    "color": pick(w.COLORS),
    "colour": pick(w.COLORS),
    "company": pick(w.COMPANIES),
    "organization": pick(w.COMPANIES),
    "organisation": pick(w.COMPANIES),
    "vendor": pick(w.COMPANIES),
    "publisher": pick(w.COMPANIES),
    "brand": pick(w.COMPANIES),
    "status": pick(w.STATUSES),
    "state": pick(w.STATUSES),
    "phase": pick(w.STATUSES),
    "type": pick(w.TYPES),
    "kind": pick(w.TYPES),
    "tier": pick(w.PLANS),
    "plan": pick(w.PLANS),
    "category": pick(w.CATEGORIES),
    "genre": pick(w.CATEGORIES),
    "topic": pick(w.CATEGORIES),
    "priority": pick(w.LEVELS),
    "severity": pick(w.LEVELS),
    "level": pick(w.LEVELS),
    "role": pick(w.ROLES),
    "permission": pick(w.ROLES),
    "title": pick(w.TITLES),
    "subject": pick(w.TITLES),
    "headline": pick(w.TITLES),
    "username": _user_name,
    "login": _user_name,
    "nickname": _user_name,
    "firstname": pick(w.FIRST_NAMES),
    "lastname": pick(w.LAST_NAMES),
    "surname": pick(w.LAST_NAMES),
    "fullname": _FULL_NAME,
    "version": lambda key, now: f"{key % 6 + 1}.{(key >> 8) % 12}.{(key >> 16) % 20}",
    "uuid": _uuid,
    "guid": _uuid,
    "query": pick(w.QUERIES),
    "keyword": pick(w.QUERIES),
    "keywords": pick(w.QUERIES),
    "q": pick(w.QUERIES),
    "term": pick(w.QUERIES),
    "domain": pair(w.NOUNS, w.TOPICS, "{}-{}.example.com"),
    "host": pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "hostname": pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "ip": lambda key, now: f"203.0.113.{key % 254 + 1}",
    "airport": pick(w.AIRPORTS),
    "iata": pick(w.AIRPORTS),
    "mime": pick(w.MIME_TYPES),
    "mimetype": pick(w.MIME_TYPES),
    "filename": lambda key, now: f"{w.TOPICS[key % 20]}-{w.NOUNS[(key >> 8) % 24]}.{w.EXTENSIONS[(key >> 16) % 6]}",
    "path": lambda key, now: f"/{w.TOPICS[key % 20]}/{w.NOUNS[(key >> 8) % 24]}",
    "slug": _SLUG,
    "handle": _SLUG,
    "tag": pick(w.TOPICS),
    "label": pick(w.TOPICS),
    "number": lambda key, now: f"{key % 900_000 + 100_000}",
    "code": lambda key, now: f"{w.NOUNS[key % 24][:3].upper()}{(key >> 16) % 900 + 100}",
    "sku": lambda key, now: f"{w.NOUNS[key % 24][:3].upper()}-{(key >> 16) % 9000 + 1000}",
    "symbol": lambda key, now: w.NOUNS[key % 24][:4].upper(),
    "ticker": lambda key, now: w.NOUNS[key % 24][:4].upper(),
    "hash": _hexadecimal(12),
    "sha": _hexadecimal(40),
    "etag": _hexadecimal(12),
    "digest": _hexadecimal(32),
    "checksum": _hexadecimal(32),
    "fingerprint": _hexadecimal(32),
    "token": _hexadecimal(16),
    "cursor": _hexadecimal(12),
    "duration": lambda key, now: f"{key % 88 + 2} minutes",
    "amount": lambda key, now: f"{key % 500_000 / 100 + 5:.2f}",
    "price": lambda key, now: f"{key % 50_000 / 100 + 1:.2f}",
    "cost": lambda key, now: f"{key % 50_000 / 100 + 1:.2f}",
    "balance": lambda key, now: f"{key % 900_000 / 100:.2f}",
    "total": lambda key, now: f"{key % 500_000 / 100 + 5:.2f}",
    "date": date(frozenset()),
    "day": date(frozenset()),
    "year": lambda key, now: str(key % 26 + 2000),
    "month": lambda key, now: f"{key % 12 + 1:02d}",
    "latitude": lambda key, now: f"{key % 1_300_000 / 10_000 - 60:.4f}",
    "longitude": lambda key, now: f"{key % 3_400_000 / 10_000 - 170:.4f}",
    "gross": lambda key, now: f"{key % 50_000 / 100 + 1:.2f}",
    "net": lambda key, now: f"{key % 50_000 / 100 + 1:.2f}",
    "tax": lambda key, now: f"{key % 9_000 / 100 + 1:.2f}",
    "fee": lambda key, now: f"{key % 9_000 / 100 + 1:.2f}",
    "subtotal": lambda key, now: f"{key % 500_000 / 100 + 5:.2f}",
    "cidr": lambda key, now: f"203.0.113.{key % 16 * 16}/28",
    "mac": lambda key, now: f"02:00:5e:{key & 0xFF:02x}:{key >> 8 & 0xFF:02x}:{key >> 16 & 0xFF:02x}",
    "schedule": lambda key, now: f"{key % 4 * 15} {(key >> 8) % 24} * * {(key >> 16) % 7}",
    "cron": lambda key, now: f"{key % 4 * 15} {(key >> 8) % 24} * * {(key >> 16) % 7}",
    "gender": pick(("female", "male", "other")),
    "visibility": pick(("private", "team", "public")),
    "privacy": pick(("private", "team", "public")),
    "protocol": pick(("https", "tcp", "udp")),
    "platform": pick(("linux", "windows", "macos", "android", "ios")),
    "last4": lambda key, now: f"{key % 10_000:04d}",
    "barcode": lambda key, now: f"200{key % 10_000_000_000:010d}",
    "ean": lambda key, now: f"200{key % 10_000_000_000:010d}",
}
_MOMENTS = frozenset(["at", "time", "timestamp", "datetime"])
_HAPPENED = frozenset("created updated modified changed published submitted expires".split())
"""Last words of a moment that is named by what happened then, as in `lastModified`."""
_CLOCKS = frozenset(["utc", "gmt", "iso", "yyyymmdd"])
"""Words after a moment that say how it is written."""
_WHEN = w.PAST_EVENTS | w.RECENT_EVENTS | w.COMING_EVENTS | w.LATER_EVENTS
_ASKING = frozenset(["is", "has", "can", "should", "allow", "allows"])
_SECRET = frozenset(["primary", "secondary", "access", "api", "secret", "private", "public", "shared", "account"])
"""Words before a key that nobody is meant to read."""
_LINKS = frozenset(["url", "uri", "link", "href", "website", "homepage", "webpage"])
_PICTURES = frozenset(["image", "avatar", "logo", "photo", "picture", "thumbnail", "icon"])


@lru_cache(maxsize=65_536)
def _natural_text(name: str, entity: tuple[str, ...], kind: str) -> Text:
    """By format, else by name; shared by all fields of one name, which keeps what runs together close in memory."""
    return _FORMATS[kind](frozenset(words(name)), entity) if kind in _FORMATS else _text(name, entity)


def _text(name: str, entity: Sequence[str]) -> Text:
    """By the field's name; `entity` is the words of the thing it belongs to."""
    parts = words(name) or ("value",)
    if len(parts) > 1 and parts[-1] in _CLOCKS:
        parts = parts[:-1]
    names, last, before = frozenset(parts), parts[-1], parts[:-1]
    if last in _LINKS:
        return _url(before or entity, ".png" if names & _PICTURES else "")
    if parts[0] in _ASKING and len(parts) > 1:
        return pick(("true", "false"))
    if last in _MOMENTS or last in _HAPPENED or (last == "on" and before):
        return date_time(names)
    if last == "date" or last == "dob" or "birthday" in names or ("date" in names and names & _WHEN):
        return date(names)
    if "time" in names and names & _WHEN:
        return date_time(names)
    if last in ("expiry", "expiration") and not before:
        return date_time(names)
    if (last == "by" and before) or last in w.PEOPLE:
        return _FULL_NAME
    if last in ("id", "identifier", "ref", "reference", "ids"):
        return _identifier(before or entity)
    if last.endswith("id") and len(last) > 3 and last not in ("paid", "valid", "grid", "uuid", "guid", "void", "bid"):
        return _identifier((last.removesuffix("id"),))
    if last == "title" and "job" in names:
        return pick(w.ROLES)
    if last == "name" or last == "names":
        own = tuple(word for word in before if word not in ("display", "full"))
        return _name(own or entity, joined="".join(parts))
    if last in w.PROSE:
        return _sentence
    if last == "code":
        if "country" in names:
            return pick(w.COUNTRY_CODES)
        if names & {"currency", "lang", "language"}:
            return pick(w.CURRENCIES if "currency" in names else w.LANGUAGE_CODES)
        if names & {"zip", "postal", "post"}:
            return _BY_LAST["zip"]
        if names & {"airport", "iata"}:
            return _BY_LAST["airport"]
    if last in ("state", "region") and set(entity) & {"address", "location", "billing", "shipping"}:
        return pick(w.STATES)
    if last == "sid":
        mark = (("".join(before) or "".join(entity[-1:]) or "resource") + "x")[:2].upper()
        return lambda key, now: f"{mark}{key:016x}{mix(key):016x}"
    if last in ("key", "secret") and names & _SECRET:
        return _hexadecimal(32)
    if last == "arn":
        thing = "-".join(before or entity) or "resource"
        return lambda key, now: (
            f"arn:aws:service:{w.CLOUD_REGIONS[key % 8]}:123456789012:{thing}/{_SLUG(key >> 8, now)}"
        )
    if last == "address" and "ip" in names:
        return _BY_LAST["ip"]
    if last == "type" and names & {"mime", "content", "media"}:
        return pick(w.MIME_TYPES)
    if last == "zone" and "time" in names:
        return pick(w.TIMEZONES)
    found = _BY_LAST.get(last) or _BY_LAST.get(singular(last))
    if found is None and is_number(frozenset({last})):
        whole = whole_of(frozenset({last}))
        return lambda key, now: str(whole(key, now))
    return found or (_SLUG if last in w.RESOURCES else _NOUN)


def _name(entity: Sequence[str], joined: str) -> Text:
    noun = singular(entity[-1]) if entity else ""
    if joined in ("firstname", "givenname"):
        return pick(w.FIRST_NAMES)
    if joined in ("lastname", "familyname"):
        return pick(w.LAST_NAMES)
    if joined == "packagename":
        return pair(w.TOPICS, w.NOUNS, "com.example.{}.{}")
    if joined == "fullname" or ((noun in w.PEOPLE or entity[-1:] == ("by",)) and joined != "username"):
        return _FULL_NAME
    if joined in ("username", "screenname"):
        return _user_name
    if noun in w.ORGANISATIONS:
        return pick(w.COMPANIES)
    if noun in ("city", "country", "host", "domain", "region", "file", "currency", "language"):
        return _BY_LAST["filename" if noun == "file" else noun]
    return _SLUG if noun in w.RESOURCES or not noun else _TITLE_PAIR


_LIMITS = frozenset({"minLength", "maxLength", "pattern", "format", "allOf", "not", "if"})
"""Keywords without which a schema allows any string."""


def text_leaf(name: str, entity: Sequence[str], schema: Schema) -> Leaf:
    """A string that the schema allows: by format, by name, by pattern, else by name cut or padded to length."""
    natural = _natural_text(name, tuple(entity), schema.get("format", ""))
    if schema.keys().isdisjoint(_LIMITS):
        return natural
    valid = compile_validator(schema).is_valid
    shortest, longest, pattern = schema.get("minLength", 0), schema.get("maxLength", 1 << 20), schema.get("pattern")
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
        if len(text) < shortest:
            text += "".join(f"{mix(key + n):016x}" for n in range((shortest - len(text)) // 16 + 1))[
                : shortest - len(text)
            ]
        if len(text) > longest:
            text = text[:longest].rstrip() if len(text[:longest].rstrip()) >= shortest else text[:longest]
        return text

    return fitted


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
