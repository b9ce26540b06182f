"""Train, validation and test hold different *service families*: no held-out tool was seen, not even in another version.

A family is a service with its versions, dates and regions folded away: `ghes-2.18` and `ghes-3.0` of github.com,
`sheets:v4` and `sheets:v5`, `wafv2` and `waf-regional` are one family each.
"""

from __future__ import annotations

import re
from functools import lru_cache

from paraagent.seeds import derive
from paraagent.task import Split

_SEPARATORS = re.compile(r"[^a-z0-9.]+")
_VERSION = re.compile(r"v?\d[\d.]*(?:(?:alpha|beta|preview|p|rc)\d*)*|v\d.*|alpha|beta|preview|stable|latest")
_TRAILING_VERSION = re.compile(r"(?:(?<=[a-z])\.?v\d+|(?<=[a-z])\.\d+)(?:[._]\d+)*$")
_REGION = re.compile(
    r"(?:us|eu|ap|sa|ca|me|af|cn|il|uk|emea|apac|latam|na|global|regional|region|"
    r"(?:north|south|east|west|central)(?:north|south|east|west|central|europe|us|asia)?)"
)
_SAME_API = {"github.com/api.github.com": "github.com/ghes", "github.com/ghec": "github.com/ghes"}
"""Products of one provider that publish one and the same interface under several names."""

_PERCENT = 100
_TRAIN = 80
_VALIDATION = 90


def _fold(text: str, separator: str) -> str:
    """`text` without version and region words; unchanged where nothing else would be left."""
    words = [_TRAILING_VERSION.sub("", word.strip(".")) for word in _SEPARATORS.split(text.lower())]
    kept = [word for word in words if word and not _VERSION.fullmatch(word) and not _REGION.fullmatch(word)]
    return separator.join(kept)


@lru_cache(maxsize=16_384)
def service_family(provider: str, service: str) -> str:
    """The family's name, `<provider>/<folded service>`; a service that is only a version belongs to its provider."""
    family = _fold(service, "-")
    name = f"{provider.lower()}/{family}" if family else provider.lower()
    return _SAME_API.get(name, name)


def method_family(provider: str, service: str, source_name: str) -> str:
    """What a tool shares with the same method in another version of its service."""
    return f"{service_family(provider, service)} {_fold(source_name, '-')}"


@lru_cache(maxsize=16_384)
def split_of(provider: str, service: str) -> Split:
    """80 % of families are train, 10 % validation, 10 % test, by a hash of the family: the same in every catalog."""
    share = derive(0, "split", service_family(provider, service)) % _PERCENT
    if share < _TRAIN:
        return "train"
    return "validation" if share < _VALIDATION else "test"
