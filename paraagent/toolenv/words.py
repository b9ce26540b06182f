"""Word lists of the grounded world, read from `words.toml`: invented people and things, real places."""

from __future__ import annotations

import tomllib
from importlib.resources import files

_LISTS = tomllib.loads(files("paraagent.toolenv").joinpath("words.toml").read_text("utf-8"))


def _list(name: str) -> tuple[str, ...]:
    return tuple(entry for entry in (" ".join(part.split()) for part in _LISTS[name].split("|")) if entry)


FIRST_NAMES, LAST_NAMES = _list("first_names"), _list("last_names")
CITIES, COUNTRIES, COUNTRY_CODES = _list("cities"), _list("countries"), _list("country_codes")
STATES, STREETS, CLOUD_REGIONS = _list("states"), _list("streets"), _list("cloud_regions")
TIMEZONES, CURRENCIES, LOCALES = _list("timezones"), _list("currencies"), _list("locales")
LANGUAGES, LANGUAGE_CODES = _list("languages"), _list("language_codes")
COMPANIES, TITLES, SENTENCES = _list("companies"), _list("titles"), _list("sentences")
ADJECTIVES, NOUNS, TOPICS = _list("adjectives"), _list("nouns"), _list("topics")
STATUSES, TYPES, LEVELS = _list("statuses"), _list("types"), _list("levels")
ROLES, PLANS, COLORS, CATEGORIES = _list("roles"), _list("plans"), _list("colors"), _list("categories")
QUERIES, AIRPORTS = _list("queries"), _list("airports")
MIME_TYPES, EXTENSIONS = _list("mime_types"), _list("extensions")

PAST_EVENTS, RECENT_EVENTS = frozenset(_list("past_events")), frozenset(_list("recent_events"))
"""Words that say when a moment lies, seen from the world's clock."""
COMING_EVENTS, LATER_EVENTS = frozenset(_list("coming_events")), frozenset(_list("later_events"))
PEOPLE, ORGANISATIONS = frozenset(_list("people")), frozenset(_list("organisations"))
RESOURCES = frozenset(_list("resources"))
"""Things that people name with a slug such as `orders-archive`."""
PROSE = frozenset(_list("prose"))
"""Fields that hold a sentence."""
GENERAL_NAMES = frozenset(_list("general_names"))
"""Field names that mean something only within the thing that holds them."""
FUNCTION_WORDS = frozenset(_list("function_words"))
"""Words of a tool's name that are no part of the thing it is about."""
PRESENTATION = frozenset(_list("presentation"))
"""Words of parameters that say how an answer is shown, not what it is about."""
