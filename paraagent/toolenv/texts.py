"""Texts of one sort each: names, addresses, moments, identifiers; and which sort a format or a last word asks for.

Each is a pure function of a 64-bit key and the world's clock. People and organisations are invented, domains are
reserved (example.com), telephone numbers fictional (555-01xx), and no card, account or key can be a real one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from paraagent.toolenv import words as w
from paraagent.toolenv.identifiers import singular
from paraagent.toolenv.leaves import Text, date, date_time, mix, pair, pick
from paraagent.toolenv.numbers import whole_of

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


def sentence(key: int, now: int) -> str:
    return w.SENTENCES[key % len(w.SENTENCES)].format(
        a=w.ADJECTIVES[(key >> 8) % len(w.ADJECTIVES)],
        n=w.NOUNS[(key >> 16) % len(w.NOUNS)],
        t=w.TOPICS[(key >> 24) % len(w.TOPICS)],
        c=w.CITIES[(key >> 32) % len(w.CITIES)],
        f=w.FIRST_NAMES[(key >> 40) % len(w.FIRST_NAMES)],
    )


def hexadecimal(length: int) -> Text:
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


def identifier(entity: Sequence[str]) -> Text:
    """`evt_8f3a2c`: the skeleton of the entity's word and six hexadecimal digits."""
    noun = singular(entity[-1]) if entity else "id"
    prefix = _PREFIXES.get(noun) or (noun[:1] + "".join(c for c in noun[1:] if c.isalpha() and c not in _VOWELS))[:3]
    return lambda key, now: f"{prefix}_{key & 0xFFFFFF:06x}"


def url(entity: Sequence[str], suffix: str = "") -> Text:
    place = entity[-1] if entity else "pages"
    return lambda key, now: f"https://www.example.com/{place}/{key & 0xFFFFFF:06x}{suffix}"


FULL_NAME = pair(w.FIRST_NAMES, w.LAST_NAMES, "{} {}")
NOUN = pick(w.NOUNS)
SLUG = pair(w.TOPICS, w.NOUNS, "{}-{}")
TITLE_PAIR: Text = lambda key, now: f"{w.ADJECTIVES[key % 24].capitalize()} {w.NOUNS[(key >> 16) % 24].capitalize()}"  # noqa: E731


def _email(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}@example.com"


def user_name(key: int, now: int) -> str:
    return f"{w.FIRST_NAMES[key % 40].lower()}.{w.LAST_NAMES[(key >> 16) % 32].lower()}"


def _phone(key: int, now: int) -> str:
    return f"+1 202-555-01{key % 100:02d}"


FORMATS: dict[str, Callable[[frozenset[str], Sequence[str]], Text]] = {
    "date-time": lambda names, entity: date_time(names),
    "google-datetime": lambda names, entity: date_time(names),
    "date": lambda names, entity: date(names),
    "full-date": lambda names, entity: date(names),
    "time": lambda names, entity: lambda key, now: f"{key % 24:02d}:{(key >> 8) % 4 * 15:02d}:00Z",
    "duration": lambda names, entity: lambda key, now: f"PT{key % 90 + 1}M",
    "google-duration": lambda names, entity: lambda key, now: f"{(key % 60 + 1) * 30}s",
    "email": lambda names, entity: _email,
    "uri": lambda names, entity: url(entity),
    "url": lambda names, entity: url(entity),
    "uri-reference": lambda names, entity: url(entity),
    "uuid": lambda names, entity: _uuid,
    "ipv4": lambda names, entity: lambda key, now: f"203.0.113.{key % 254 + 1}",
    "ipv6": lambda names, entity: lambda key, now: f"2001:db8::{key & 0xFFFF:x}",
    "hostname": lambda names, entity: pair(w.NOUNS, w.TOPICS, "{}.{}.example.com"),
    "byte": lambda names, entity: lambda key, now: base64.b64encode(SLUG(key, now).encode()).decode(),
    "phone": lambda names, entity: _phone,
    "int64": lambda names, entity: lambda key, now: str(whole_of(names)(key, now)),
    "uint64": lambda names, entity: lambda key, now: str(whole_of(names)(key, now)),
    "decimal": lambda names, entity: lambda key, now: f"{key % 500_000 / 100 + 5:.2f}",
}

_PLACE: Text = lambda key, now: f"{key % 180 + 1} {w.STREETS[(key >> 16) % 8]}"  # noqa: E731
_MONEY: Text = lambda key, now: f"{key % 50_000 / 100 + 1:.2f}"  # noqa: E731
_LARGE_MONEY: Text = lambda key, now: f"{key % 500_000 / 100 + 5:.2f}"  # noqa: E731
_SMALL_MONEY: Text = lambda key, now: f"{key % 9_000 / 100 + 1:.2f}"  # noqa: E731
_POSTCODE: Text = lambda key, now: f"{key % 90_000 + 10_000}"  # noqa: E731
_TICKER: Text = lambda key, now: w.NOUNS[key % 24][:4].upper()  # noqa: E731
_BARCODE: Text = lambda key, now: f"200{key % 10_000_000_000:010d}"  # noqa: E731
_SCHEDULE: Text = lambda key, now: f"{key % 4 * 15} {(key >> 8) % 24} * * {(key >> 16) % 7}"  # noqa: E731

_NAMED: tuple[tuple[str, Text], ...] = (
    ("email mail", _email),
    ("phone telephone mobile fax", _phone),
    ("city town location place locality county district", pick(w.CITIES)),
    ("country", pick(w.COUNTRIES)),
    ("province", pick(w.STATES)),
    ("region", pick(w.CLOUD_REGIONS)),
    ("zip zipcode postcode", _POSTCODE),
    ("street line1 address1", _PLACE),
    ("line2 address2", lambda key, now: f"Floor {key % 9 + 1}"),
    ("address", lambda key, now: f"{_PLACE(key, now)}, {w.CITIES[(key >> 32) % 30]}"),
    ("timezone", pick(w.TIMEZONES)),
    ("currency", pick(w.CURRENCIES)),
    ("locale", pick(w.LOCALES)),
    ("lang", pick(w.LANGUAGE_CODES)),
    ("language", pick(w.LANGUAGES)),
    ("color colour", pick(w.COLORS)),
    ("company organization organisation vendor publisher brand manufacturer supplier", pick(w.COMPANIES)),
    ("status state phase", pick(w.STATUSES)),
    ("type kind subtype", pick(w.TYPES)),
    ("tier plan", pick(w.PLANS)),
    ("category genre topic classification", pick(w.CATEGORIES)),
    ("priority severity level", pick(w.LEVELS)),
    ("role permission", pick(w.ROLES)),
    ("title subject headline caption", pick(w.TITLES)),
    ("username login nickname", user_name),
    ("firstname", pick(w.FIRST_NAMES)),
    ("lastname surname", pick(w.LAST_NAMES)),
    ("fullname", FULL_NAME),
    ("initials", lambda key, now: w.FIRST_NAMES[key % 40][0] + w.LAST_NAMES[(key >> 16) % 32][0]),
    ("version", lambda key, now: f"{key % 6 + 1}.{(key >> 8) % 12}.{(key >> 16) % 20}"),
    ("revision generation", lambda key, now: str(key % 40 + 1)),
    ("uuid guid", _uuid),
    ("uid gid oid", hexadecimal(12)),
    ("query keyword keywords q term", pick(w.QUERIES)),
    ("domain", pair(w.NOUNS, w.TOPICS, "{}-{}.example.com")),
    ("host hostname fqdn", pair(w.NOUNS, w.TOPICS, "{}.{}.example.com")),
    ("ip", lambda key, now: f"203.0.113.{key % 254 + 1}"),
    ("airport iata", pick(w.AIRPORTS)),
    ("mime mimetype", pick(w.MIME_TYPES)),
    ("extension", pick(w.EXTENSIONS)),
    ("filename", lambda key, now: f"{w.TOPICS[key % 20]}-{w.NOUNS[(key >> 8) % 24]}.{w.EXTENSIONS[(key >> 16) % 6]}"),
    ("path", lambda key, now: f"/{w.TOPICS[key % 20]}/{w.NOUNS[(key >> 8) % 24]}"),
    ("slug handle alias", SLUG),
    ("tag label", pick(w.TOPICS)),
    ("number serial", lambda key, now: f"{key % 900_000 + 100_000}"),
    ("code", lambda key, now: f"{w.NOUNS[key % 24][:3].upper()}{(key >> 16) % 900 + 100}"),
    ("sku", lambda key, now: f"{w.NOUNS[key % 24][:3].upper()}-{(key >> 16) % 9000 + 1000}"),
    ("symbol ticker abbreviation", _TICKER),
    ("hash etag cursor marker", hexadecimal(12)),
    ("token continue", hexadecimal(16)),
    ("digest checksum fingerprint signature", hexadecimal(32)),
    ("sha sha1 thumbprint", hexadecimal(40)),
    ("sha256", hexadecimal(64)),
    ("password", lambda key, now: "********"),
    ("duration", lambda key, now: f"{key % 88 + 2} minutes"),
    ("price cost gross net", _MONEY),
    ("amount total subtotal", _LARGE_MONEY),
    ("tax fee", _SMALL_MONEY),
    ("balance", lambda key, now: f"{key % 900_000 / 100:.2f}"),
    ("date day", date(frozenset())),
    ("year", lambda key, now: str(key % 26 + 2000)),
    ("month", lambda key, now: f"{key % 12 + 1:02d}"),
    ("latitude", lambda key, now: f"{key % 1_300_000 / 10_000 - 60:.4f}"),
    ("longitude", lambda key, now: f"{key % 3_400_000 / 10_000 - 170:.4f}"),
    ("cidr", lambda key, now: f"203.0.113.{key % 16 * 16}/28"),
    ("mac", lambda key, now: f"02:00:5e:{key & 0xFF:02x}:{key >> 8 & 0xFF:02x}:{key >> 16 & 0xFF:02x}"),
    ("schedule cron", _SCHEDULE),
    ("gender", pick(("female", "male", "other"))),
    ("visibility privacy", pick(("private", "team", "public"))),
    ("protocol scheme", pick(("https", "tcp", "udp"))),
    ("platform os", pick(("linux", "windows", "macos", "android", "ios"))),
    ("architecture", pick(("x86_64", "arm64"))),
    ("method", pick(("GET", "POST", "PUT", "DELETE"))),
    ("direction", pick(("inbound", "outbound"))),
    ("frequency interval", pick(("hourly", "daily", "weekly", "monthly"))),
    ("algorithm", pick(("sha256", "rsa-2048", "aes-256"))),
    ("unit units", pick(("count", "percent", "seconds", "bytes"))),
    ("format", pick(("json", "csv", "xml", "pdf"))),
    ("encoding", pick(("utf-8", "gzip", "base64"))),
    ("last4", lambda key, now: f"{key % 10_000:04d}"),
    ("barcode ean", _BARCODE),
)
BY_LAST = {word: text for words, text in _NAMED for word in words.split()}
"""What a field holds whose last word is this one."""
