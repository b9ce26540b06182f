"""Secrets in source specs: named as `$NAME`, taken from the environment when needed, and never written down."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, urlsplit

from paraagent.errors import UsageError

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_SECRET = re.compile(
    r"(?:^|[-_.])(?:api[-_]?key|access[-_]?key|key|token|secret|password|passwd|pwd|credentials?|authorization|bearer)$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"^(?:--?)?([\w.-]+)=(.+)$", re.DOTALL)


def expanded(text: str) -> str:
    """The text with the values of the environment variables it names. Raises UsageError for one that is not set."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            raise UsageError(f"The environment variable {name}, which the source names, is not set: export {name}=…")
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def refuse_in_words(words: list[str]) -> None:
    """Raises UsageError where a command holds what looks like a secret: specs stand in manifests and in the home."""
    before = ""
    for word in words:
        assigned = _ASSIGNED.match(word)
        name, value = (assigned[1], assigned[2]) if assigned else (before, word)
        if name and _SECRET.search(name) and not value.startswith(("-", "$")):
            raise _written(name)
        before = word.lstrip("-") if word.startswith("-") and not assigned else ""


def refuse_in_address(url: str) -> None:
    """The same for an address with a password or a key in it."""
    parts = urlsplit(url)
    if parts.password and not parts.password.startswith("$"):
        raise _written("password")
    for name, value in parse_qsl(parts.query):
        if _SECRET.search(name) and not value.startswith("$"):
            raise _written(name)


def _written(name: str) -> UsageError:
    variable = re.sub(r"\W+", "_", name).strip("_").upper() or "SECRET"
    return UsageError(
        f"The value of {name} in the source looks like a secret, which would be written into the home: put it into an "
        f"environment variable and write '${variable}' instead, in single quotes"
    )
