"""What a tool is about, told from its operation name, its method id or its path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from paraagent.catalog.effects import is_verb
from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.nouns import is_catch_all, join, word_set
from paraagent.catalog.text import words

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_VERSION = re.compile(r"v?\d+([._-]?\w*\d*)*|api|rest|public|latest|beta\d*", re.IGNORECASE)
_JOINTS = word_set(
    """
    by for in with from to of on at using via per and as into
    """
)
_SAID = word_set(
    """
    all list lists search query count bulk batch find lookup details me self info get create update delete add
    set fetch remove edit show view read post put patch save insert new
    """
)
"""Words of a path that say what is done, or to how many, and not to what."""
_PLACES = word_set(
    """
    project location aggregated
    """
)
"""Segments under which the same things are listed as elsewhere."""
OPERATION = frozenset({"done", "operationType"})
"""A result with one of these fields is one of Google's long-running operations."""
_AWS = "pypi:botocore"
_GOOGLE = "pypi:google-api-python-client"


@dataclass(frozen=True, slots=True)
class Subject:
    """The parts of an interface that decide what its bare names mean."""

    provider: str
    service: str
    effect: str
    http_method: str
    noun: str
    """What the tool is about, singular; empty where nothing tells."""
    segments: dict[str, str]
    """The noun of the path segment before each placeholder; empty where another placeholder stands there."""
    trails: dict[str, str]
    """The nouns of all path segments up to each placeholder."""
    trail: str
    """The nouns of all path segments."""
    last: str
    """The placeholder that ends the path, if one does."""
    chain: str
    """Google's collections, as in `projects/locations/clusters`, where the path names things by them."""
    parameters: frozenset[str]
    """With AWS alone, where no path says which parameter is the tool's own."""
    is_aws: bool
    is_google: bool
    is_arm: bool
    """A bare `id` is the path of the thing with Azure's resource manager."""
    is_operation: bool
    """A long-running operation comes back, whose `name` is its own."""

    @property
    def kind(self) -> str:
        """The noun, with the nouns of the path that leads to it where it alone could mean anything."""
        return self.trail or self.noun if is_catch_all(self.noun) else self.noun

    def names(self, holder: str) -> bool:
        """Whether what holds something is called like this, perhaps at more length: `domain_record` of records."""
        return bool(self.noun) and join(words(holder), whole=True).endswith(self.noun)

    @classmethod
    def of(cls, tool: ToolInterface) -> Subject:
        fields = frozenset((tool.returns or {}).get("properties", {}))
        return subject(
            tool.provider,
            tool.service,
            tool.source,
            tool.source_name,
            tool.effect,
            tool.http_method,
            tool.path,
            frozenset(tool.properties),
            is_operation=bool(fields & OPERATION),
        )

    @classmethod
    def read(cls, row: Sequence[Any]) -> Subject:
        """From what SQL gives: the arguments of `subject` in their order."""
        provider, service, source, name, effect, method, path, parameters, is_operation = row
        given = frozenset(parameters)
        return subject(provider, service, source, name, effect, method, path, given, is_operation=is_operation)


def subject(
    provider: str,
    service: str,
    source: str,
    source_name: str,
    effect: str,
    http_method: str,
    path: str,
    parameters: frozenset[str],
    *,
    is_operation: bool,
) -> Subject:
    aws, google = source == _AWS, source == _GOOGLE
    literal, segments, trails, trail, last = _read_path(path)
    chain = _chain(path) if google else ""
    if aws:
        noun, segments, trails, trail, last = _of_words(source_name), {}, {}, "", ""
    elif google:
        parts = source_name.split(".")
        noun = join(words(parts[-2])) if len(parts) > 2 else ""
    else:
        noun = literal
    is_operation = google and is_operation
    return Subject(
        provider,
        service,
        effect,
        http_method,
        noun,
        segments,
        trails,
        trail,
        last,
        chain,
        parameters if aws else frozenset(),
        aws,
        google,
        provider == "azure.com" and ("/providers/" in path or path.lower().startswith("/subscriptions")),
        is_operation,
    )


@lru_cache(maxsize=50_000)
def _of_words(name: str) -> str:
    """`ListFunctionsByCodeSigningConfig` is about a function."""
    parts = words(name)
    if len(parts) > 2 and parts[0] == "batch":
        parts = parts[1:]
    if len(parts) > 1 and is_verb(parts[0]):
        parts = parts[1:]
    for i, word in enumerate(parts):
        if i and word in _JOINTS:
            parts = parts[:i]
            break
    return join(parts)


@lru_cache(maxsize=50_000)
def _segment(text: str) -> str:
    """The noun of one literal path segment; empty for versions and verbs."""
    text = text.split(":")[0]
    text = text.removesuffix(".json").removesuffix(".xml").removesuffix(".php")
    if not text or _VERSION.fullmatch(text):
        return ""
    parts = words(text)
    while len(parts) > 1 and parts[0] in _SAID:
        parts = parts[1:]
    while len(parts) > 1 and parts[-1] in _SAID:
        parts = parts[:-1]
    if not parts or parts[0] in _SAID or parts[0] in _JOINTS:
        return ""
    return join(parts)


def _read_path(path: str) -> tuple[str, dict[str, str], dict[str, str], str, str]:
    """The last noun of the path, the noun before each placeholder, the nouns up to each, all, and the placeholder
    that ends it."""
    noun, before, last, trail = "", "", "", ""
    segments: dict[str, str] = {}
    trails: dict[str, str] = {}
    for part in path.split("?")[0].strip("/").split("/"):
        names = _PLACEHOLDER.findall(part)
        if names:
            for name in names:
                segments[name.lstrip("+").rstrip("+*")] = before
                trails[name.lstrip("+").rstrip("+*")] = trail
            last, before = (names[-1] if len(names) == 1 else ""), ""
        elif part == "providers" and trail.startswith("subscription"):
            trail, before, last = "/", "", ""  # what follows is the whole type of a thing with Azure's resource manager
        else:
            found = _segment(part)
            noun, before, last = found or noun, found or before, ""
            if found and found not in _PLACES and not part.startswith("Microsoft."):
                trail = f"{trail}/{found}" if trail.strip("/") else trail + found
    return noun, segments, trails, trail, last


@lru_cache(maxsize=50_000)
def _chain(path: str) -> str:
    """`v1/projects/{projectsId}/zones/{zonesId}:stop` as `projects/zones`; empty where they have other names."""
    parts = path.split(":")[0].strip("/").split("/")
    literals = []
    for i, part in enumerate(parts):
        if part.startswith("{"):
            if i == 0 or part != f"{{{parts[i - 1]}Id}}":
                return ""
        elif not (i == 0 and _VERSION.fullmatch(part)):
            literals.append(part)
    return "/".join(literals)
