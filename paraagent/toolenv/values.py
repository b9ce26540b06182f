"""Realistic scalars: which text or number a field holds, by its format, its name and the entity it belongs to.

A leaf is a pure function of a 64-bit key and the world's clock. People and organisations are invented, domains are
reserved (example.com), telephone numbers fictional (555-01xx), and dates keep their order: created, updated, due.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from paraagent.catalog.interface import Schema
from paraagent.toolenv import words as w
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.patterns import compile_pattern
from paraagent.validators import compile_validator

Leaf = Callable[[int, int], Any]
"""(key, now in seconds since 1970) -> value."""
Text = Callable[[int, int], str]

MASK = (1 << 64) - 1
_DAY = 86_400
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


def mix(key: int) -> int:
    """Scatter a 64-bit key (the finaliser of SplitMix64): neighbouring keys give unrelated values."""
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
    return key ^ (key >> 31)


@cache
def pick(pool: tuple[str, ...]) -> Text:
    size = len(pool)
    return lambda key, now: pool[key % size]


def _pair(first: Sequence[str], second: Sequence[str], pattern: str) -> Text:
    a, b = len(first), len(second)
    return lambda key, now: pattern.format(first[key % a], second[(key >> 16) % b], key >> 32 & 0xFFFF)


@lru_cache(maxsize=8_192)
def _iso(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(names: frozenset[str]) -> Callable[[int, int], int]:
    """Seconds since 1970 around the clock, ordered by what the name says happened."""
    if names & {"birth", "birthday", "birthdate", "born", "dob"}:
        return lambda key, now: key % 14_000 * _DAY - 5_000 * _DAY
    if names & w.RECENT_EVENTS:
        low, high = -29, -1
    elif names & w.PAST_EVENTS:
        low, high = -900, -30
    elif names & w.LATER_EVENTS:
        low, high = 21, 200
    elif names & w.COMING_EVENTS:
        low, high = 1, 20
    else:
        low, high = -60, 0
    span = (high - low) * 96
    return lambda key, now: (now // 900 + low * 96 + key % span) * 900


def _date_time(names: frozenset[str]) -> Text:
    moment = _moment(names)
    return lambda key, now: _iso(moment(key, now))


def _date(names: frozenset[str]) -> Text:
    moment = _moment(names)
    return lambda key, now: _iso(moment(key, now))[:10]


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
_FULL_NAME = _pair(w.FIRST_NAMES, w.LAST_NAMES, "{} {}")
_NOUN = pick(w.NOUNS)
_SLUG = _pair(w.TOPICS, w.NOUNS, "{}-{}")
_TITLE_PAIR: Text = lambda key, now: f"{w.ADJECTIVES[key % 24].capitalize()} {w.NOUNS[(key >> 16) % 24].capitalize()}"  # noqa: E731


def _email(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}@example.com"


def _user_name(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}"


def _phone(key: int, now: int) -> str:
    return f"+1 202-555-01{key % 100:02d}"


_FORMATS: dict[str, Callable[[frozenset[str], Sequence[str]], Text]] = {
    "date-time": lambda names, entity: _date_time(names),
    "google-datetime": lambda names, entity: _date_time(names),
    "date": lambda names, entity: _date(names),
    "full-date": lambda names, entity: _date(names),
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
    "hostname": lambda names, entity: _pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "byte": lambda names, entity: lambda key, now: base64.b64encode(_SLUG(key, now).encode()).decode(),
    "phone": lambda names, entity: _phone,
    "int64": lambda names, entity: lambda key, now: str(_whole(names)(key, now)),
    "uint64": lambda names, entity: lambda key, now: str(_whole(names)(key, now)),
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
    "domain": _pair(w.NOUNS, w.TOPICS, "{}-{}.example.com"),
    "host": _pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "hostname": _pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "ip": lambda key, now: f"203.0.113.{key % 254 + 1}",
    "airport": pick(w.AIRPORTS),
    "iata": pick(w.AIRPORTS),
    "mime": pick(w.MIME_TYPES),
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
    "date": _date(frozenset()),
    "day": _date(frozenset()),
    "year": lambda key, now: str(key % 26 + 2000),
}
_MOMENTS = frozenset(["at", "time", "timestamp", "datetime"])
_LINKS = frozenset(["url", "uri", "link", "href", "website", "homepage", "webpage"])
_PICTURES = frozenset(["image", "avatar", "logo", "photo", "picture", "thumbnail", "icon"])


@lru_cache(maxsize=65_536)
def _natural_text(name: str, entity: tuple[str, ...], kind: str) -> Text:
    """By format, else by name; shared by all fields of one name, which keeps what runs together close in memory."""
    return _FORMATS[kind](frozenset(words(name)), entity) if kind in _FORMATS else _text(name, entity)


def _text(name: str, entity: Sequence[str]) -> Text:
    """By the field's name; `entity` is the words of the thing it belongs to."""
    parts = words(name) or ("value",)
    names, last, before = frozenset(parts), parts[-1], parts[:-1]
    if last in _LINKS:
        return _url(before or entity, ".png" if names & _PICTURES else "")
    if last in _MOMENTS or (last == "on" and before):
        return _date_time(names)
    if last == "date" or last == "dob" or "birthday" in names:
        return _date(names)
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
    return _BY_LAST.get(last) or _BY_LAST.get(singular(last)) or (_SLUG if last in w.RESOURCES else _NOUN)


def _name(entity: Sequence[str], joined: str) -> Text:
    noun = singular(entity[-1]) if entity else ""
    if joined in ("firstname", "givenname"):
        return pick(w.FIRST_NAMES)
    if joined in ("lastname", "familyname"):
        return pick(w.LAST_NAMES)
    if joined == "fullname" or (noun in w.PEOPLE and joined != "username"):
        return _FULL_NAME
    if joined in ("username", "screenname"):
        return _user_name
    if noun in w.ORGANISATIONS:
        return pick(w.COMPANIES)
    if noun in ("city", "country", "host", "domain", "region", "file", "currency", "language"):
        return _BY_LAST["filename" if noun == "file" else noun]
    return _SLUG if noun in w.RESOURCES or not noun else _TITLE_PAIR


def _whole(names: frozenset[str]) -> Leaf:
    """An integer of the size that the name suggests."""
    if names & {"timestamp", "epoch", "at", "created", "updated", "modified"} and not names & {"count", "total", "by"}:
        moment = _moment(names)
        factor = 1000 if names & {"ms", "millis", "milliseconds"} else 1
        return lambda key, now: moment(key, now) * factor
    low, high = _natural(names)
    return lambda key, now: low + key % (high - low + 1)


def _natural(names: frozenset[str]) -> tuple[int, int]:
    for family, low, high in _RANGES:
        if names & family:
            return low, high
    return 1, 1_000


_COUNTED = frozenset(
    ["id", "ids", "number", "year", "month", "day", "hour", "count", "quantity", "port", "page", "size", "bytes"]
)
"""Words of numbers that are whole even where the schema allows fractions."""
_RANGES: tuple[tuple[frozenset[str], int, int], ...] = (
    (frozenset({"percent", "percentage", "progress", "pct"}), 1, 99),
    (frozenset({"lat", "latitude"}), -60, 70),
    (frozenset({"lon", "lng", "long", "longitude"}), -170, 170),
    (frozenset({"year"}), 2000, 2026),
    (frozenset({"month"}), 1, 12),
    (frozenset({"day"}), 1, 28),
    (frozenset({"hour", "hours"}), 0, 23),
    (frozenset({"minute", "minutes"}), 0, 59),
    (frozenset({"age"}), 18, 85),
    (frozenset({"rating", "stars"}), 1, 5),
    (frozenset({"score", "rank", "position"}), 1, 100),
    (frozenset({"port"}), 1_024, 49_151),
    (frozenset({"bytes", "capacity"}), 10_000, 90_000_000),
    (frozenset({"limit", "page", "per"}), 1, 50),
    (frozenset({"seconds", "duration", "timeout", "latency", "ttl"}), 5, 3_600),
    (frozenset({"price", "amount", "cost", "fee", "total", "balance", "salary", "revenue", "budget"}), 12, 9_500),
    (frozenset({"id", "number", "code"}), 1_000, 99_999),
    (frozenset({"temperature", "temp"}), -10, 36),
    (frozenset({"count", "quantity", "size", "length", "num"}), 1, 400),
)


def number_leaf(name: str, schema: Schema, whole: bool) -> Leaf:
    """A number within the schema's bounds; inside them, of the size that the name suggests."""
    whole = whole or not _COUNTED.isdisjoint(words(name)) or name.lower().endswith("id")
    return _number(name, whole, *_bounds(schema, whole), schema.get("multipleOf"), schema.get("format") == "int32")


@lru_cache(maxsize=16_384, typed=True)
def _number(name: str, whole: bool, low: Any, high: Any, step: Any, narrow: bool) -> Leaf:
    names = frozenset(words(name))
    if low is None and high is None and whole and not step:
        leaf = _whole(names)
        return (lambda key, now: leaf(key, now) & 0x7FFFFFFF) if narrow else leaf
    first, last = _natural(names)
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    if first > last:
        first, last = (high - 999 if low is None else low), (low + 999 if high is None else high)
    if step:
        bottom, top = -(-first // step), last // step
        span = max(int(top - bottom), 0) + 1
        digits = 10 if isinstance(step, float) else None
        if whole:
            return lambda key, now: int((bottom + key % span) * step)
        return lambda key, now: round((bottom + key % span) * step, digits)
    if whole:
        bottom_, span = int(first), int(last) - int(first) + 1
        return lambda key, now: bottom_ + key % max(span, 1)
    width = last - first
    digits = 2 if width >= 1 else 6
    return lambda key, now: round(first + width * ((key % 999_983 + 1) / 1_000_000), digits)


def _bounds(schema: Schema, whole: bool) -> tuple[Any, Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    margin = 1 if whole else 0.01
    if (strict := schema.get("exclusiveMinimum")) is not None:
        low = strict + margin if low is None else max(low, strict + margin)
    if (strict := schema.get("exclusiveMaximum")) is not None:
        high = strict - margin if high is None else min(high, strict - margin)
    if whole:
        low, high = (None if low is None else -int(-low // 1)), (None if high is None else int(high // 1))
    return low, high


_LIMITS = frozenset({"minLength", "maxLength", "pattern", "format", "allOf", "not", "if"})
"""Keywords without which a schema allows any string."""


def text_leaf(name: str, entity: Sequence[str], schema: Schema) -> Leaf:
    """A string that the schema allows: by format, by name, by pattern, else by name cut or padded to length."""
    natural = _natural_text(name, tuple(entity), schema.get("format", ""))
    if schema.keys().isdisjoint(_LIMITS):
        return natural
    valid = compile_validator(schema).is_valid
    trial = [mix(number) for number in range(12)]
    if all(valid(natural(key, 1_780_000_000)) for key in trial):
        return natural
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
    if pattern := schema.get("pattern"):
        made = [found for least in (0, shortest) if (found := compile_pattern(pattern, least)) is not None]
        best = max(made, key=lambda each: sum(valid(each(key)) for key in trial), default=None)
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
