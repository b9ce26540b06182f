"""Values that mean the same everywhere: a currency by its ISO code, a country, an e-mail address, a latitude.

Each is told by its name together with its format or description: a field called `currency` alone is no proof.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from paraagent.catalog.text import words


class WorldType(NamedTuple):
    name: str
    """As it stands in an entity: `currency.iso4217`."""
    names: frozenset[str]
    """Last words, joined, of a name that may hold it."""
    formats: frozenset[str]
    says: re.Pattern[str] | None
    """What the description has to say where the format does not."""
    types: frozenset[str]


def _type(name: str, names: str, formats: str, says: str, types: str = "string") -> WorldType:
    return WorldType(
        name,
        frozenset(names.split()),
        frozenset(formats.split()),
        re.compile(says, re.IGNORECASE) if says else None,
        frozenset(types.split()),
    )


TYPES = (
    _type(
        "currency.iso4217",
        "currency currencycode isocurrencycode",
        "iso4217 currency currency-code iso-4217",
        r"\b(iso[- ]?4217|three[- ]letter (iso )?(currency )?(code|abbrev)|3[- ]letter (iso )?(currency )?code"
        r"|iso currency code)",
    ),
    _type(
        "country.alpha2",
        "country countrycode isocountry isocountrycode countryiso countrycodeiso2",
        "iso-country-code country-code iso-3166-1-alpha-2",
        r"3166-1[- ]alpha[- ]?2"
        r"|(two|2)[- ](letter|character|char|digit)s? (iso )?(3166(-1)? )?(alpha[- ]?2 )?country"
        r"|alpha-2 (country )?code"
        r"|iso 3166(-1)? (two|2)[- ]letter|(two|2)[- ]letter iso|country code[^.]{0,40}(two|2)[- ]letter",
    ),
    _type(
        "country.alpha3",
        "country countrycode isocountrycode countryiso countrycodeiso3",
        "country-code-3 iso-3166-1-alpha-3",
        r"3166-1[- ]alpha[- ]?3|(three|3)[- ](letter|character|char)s? (iso )?(3166(-1)? )?(alpha[- ]?3 )?country"
        r"|alpha-3 (country )?code",
    ),
    _type(
        "email.address",
        "email emailaddress useremail useremailaddress contactemail customeremail mail",
        "email",
        r"\be-?mail",
    ),
    _type("latitude.degrees", "latitude lat", "", r"latitude", "number string"),
    _type("longitude.degrees", "longitude lon lng long", "", r"longitude", "number string"),
    _type(
        "timezone.iana",
        "timezone timezoneid timezonename tz",
        "timezone iana-timezone",
        r"\b(iana|tzdata|tz database|olson|(america|europe|asia|australia|pacific)/[a-z]+)\b",
    ),
    _type("language.bcp47", "language languagecode locale lang languagetag", "bcp47 bcp-47", r"bcp[- ]?47"),
    _type(
        "language.iso639",
        "language languagecode lang isolanguage",
        "iso-639-1",
        r"639-1|(two|2)[- ]letter (iso )?(language )?code",
    ),
    _type(
        "ip.address",
        "ip ipaddress ipv4address clientip ipv4 publicip publicipaddress",
        "ip ipv4 ipvanyaddress",
        r"\bipv4\b",
    ),
    _type("phone.e164", "phone phonenumber mobile mobilenumber msisdn telephone", "e164 e.164", r"e\.?164"),
    _type(
        "airport.iata",
        "iata iatacode airport airportcode origin destination airportiata",
        "iata",
        r"\biata\b[^.]{0,30}\b(airport|code)|airport[^.]{0,20}\biata",
    ),
    _type("book.isbn", "isbn isbn13 isbn10", "isbn", r"\bisbn"),
    _type("vehicle.vin", "vin vehicleidentificationnumber", "vin", r"\bvin\b|vehicle identification number"),
    _type("security.isin", "isin", "isin", r"\bisin\b|securities identification"),
)
_BY_NAME: dict[str, list[WorldType]] = {}
for _known in TYPES:
    for _name in _known.names:
        _BY_NAME.setdefault(_name, []).append(_known)
WORLD_NAMES = frozenset(_BY_NAME)
"""Names, joined, that may hold such a value."""


@lru_cache(maxsize=200_000)
def world_name(name: str) -> str:
    """The name, joined, where it may hold such a value, else empty."""
    joined = "".join(words(name))
    return joined if joined in _BY_NAME else ""


def world_type(name: str, type: str, description: str, format: str | None) -> str:
    """`currency.iso4217`, or empty where name, type, format and description do not agree on one."""
    for known in _BY_NAME.get(world_name(name), ()):
        if type not in known.types:
            continue
        if (format or "").lower() in known.formats or (known.says is not None and known.says.search(description)):
            return known.name
    return ""
