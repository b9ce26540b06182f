"""The `mcpServers` file that MCP clients share: which servers there are, and how each is started or reached.

`${NAME}`, `${NAME:-otherwise}` and `$NAME` in a value stand for an environment variable. Values may be secrets, so no
message shows one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from paraagent.catalog.mcp_link import Endpoint
from paraagent.errors import UsageError

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})")
_SECRET = re.compile(
    r"(?:key|token|secret|password|passwd|pwd|credentials?|authorization|bearer|cookie)$", re.IGNORECASE
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAX_NAME = 64
_LEAST_SECRET = 6
"""Characters: what is shorter would be starred out of ordinary words."""
_TYPES = {"http": "http", "streamable-http": "http", "streamablehttp": "http", "streamable_http": "http"}

Word = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class ServerConfig(BaseModel):
    """One server: a command, or an address. What other clients also read of it is ignored."""

    model_config = ConfigDict(frozen=True, strict=True, hide_input_in_errors=True)

    command: Word = Field(default="", repr=False)
    args: tuple[Word, ...] = Field(default=(), repr=False, strict=False)
    env: dict[Word, Word] = Field(default={}, repr=False)
    """On top of the environment of this process."""
    cwd: Word | None = Field(default=None, repr=False)
    """Where it is started; by default where this process was."""
    url: str = Field(default="", repr=False)
    headers: dict[str, str] = Field(default={}, repr=False)
    """Sent with each request."""
    type: Literal["stdio", "http"] | None = None
    disabled: bool = False
    hidden: tuple[str, ...] = Field(default=(), repr=False)
    """Further values that must not be shown."""

    @field_validator("type", mode="before")
    @classmethod
    def _known(cls, kind: Any) -> Any:
        if kind == "sse":
            raise ValueError("the old SSE transport is not supported: give the server's streamable HTTP address")
        return _TYPES.get(kind.lower(), kind) if isinstance(kind, str) else kind

    @field_validator("env")
    @classmethod
    def _variables(cls, env: dict[str, str]) -> dict[str, str]:
        if any(not name or "=" in name for name in env):
            raise ValueError("the name of a variable should not be empty or hold '='")
        return env

    @field_validator("cwd")
    @classmethod
    def _folder(cls, cwd: str | None) -> str | None:
        if cwd is None:
            return None
        folder = Path(cwd).expanduser()
        if not folder.is_dir():
            raise ValueError("there is no such folder")
        return str(folder)

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("should be http(s)://HOST/PATH")
        return url

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or not value.isascii() or not value.isprintable():
                raise ValueError("names and values should be plain ASCII on one line")
        return headers

    @model_validator(mode="after")
    def _one_way(self) -> ServerConfig:
        if bool(self.command.strip()) == bool(self.url):
            raise ValueError("should have either a command or a url")
        if self.type is not None and (self.type == "http") != bool(self.url):
            raise ValueError(f"has the type {self.type}, which needs a {'url' if self.type == 'http' else 'command'}")
        return self

    def endpoint(self) -> Endpoint:
        """What the transports need."""
        secrets = tuple(sorted({text for text in self._secrets() if len(text) >= _LEAST_SECRET}, key=len, reverse=True))
        if self.url:
            return Endpoint(url=self.url, headers=self.headers, secrets=secrets)
        return Endpoint(command=(self.command, *self.args), env=self.env, cwd=self.cwd, secrets=secrets)

    def _secrets(self) -> list[str]:
        """What its name says is a secret."""
        found = [*self.hidden, *_named({**self.env, **self.headers})]
        before = ""
        for word in self.args:
            name, given, value = word.partition("=")
            found += _named({name: value} if given else {before: word})
            before = "" if given else word
        parts = urlsplit(self.url)
        return [*found, parts.password or "", *_named(dict(parse_qsl(parts.query)))]


def read_servers(path: Path) -> dict[str, ServerConfig]:
    """The servers that the file names and does not disable.

    Raises:
        UsageError: the file cannot be read, or a value in it is wrong: which, and where.
    """
    try:
        found = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{path} is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON file: write one as other MCP clients read it") from error
    except _TwiceError as error:
        raise UsageError(f"{path} gives {error.args[0]!r} twice in one object: keep one of them") from error
    named = found.get("mcpServers") if isinstance(found, dict) else None
    if not isinstance(named, dict):
        raise UsageError(f'{path} has no object mcpServers: write {{"mcpServers": {{"NAME": {{"command": …}}}}}}')
    servers: dict[str, ServerConfig] = {}
    for name, entry in named.items():
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
            raise UsageError(f"{path}: a name in mcpServers should have 1 to {_MAX_NAME} printable characters")
        if isinstance(entry, dict) and entry.get("disabled") is True:
            continue
        servers[name] = _server(entry, f"{path}: mcpServers.{name}")
    if not servers:
        raise UsageError(f"{path} names no server{' that is not disabled' if named else ''} in mcpServers: add one")
    return servers


def _server(entry: Any, where: str) -> ServerConfig:
    if not isinstance(entry, dict):
        raise UsageError(f"{where} should be an object with a command or a url")
    hidden: list[str] = []
    fields = (name for name in ServerConfig.model_fields if name in entry and name != "hidden")
    values = {name: _expanded(entry[name], f"{where}.{name}", hidden) for name in fields}
    try:
        return ServerConfig(**values, hidden=tuple(hidden))
    except ValidationError as error:
        _explain(error, where)


def _explain(error: ValidationError, where: str) -> NoReturn:
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join([where, *(str(part) for part in first["loc"] if part != "[key]")])
    said = first["msg"].removeprefix("Value error, ").removeprefix("Input ").replace("tuple", "list")
    if first["type"] == "string_pattern_mismatch":
        said = "holds a character that nothing can be given"
    raise UsageError(f"{place}{'' if said.startswith(('should', 'has', 'holds')) else ':'} {said}") from None


def _expanded(value: Any, where: str, hidden: list[str]) -> Any:
    """The value with what the variables in it stand for; those whose names say that they are secret go to `hidden`."""
    if isinstance(value, list):
        return [_expanded(item, f"{where}.{place}", hidden) for place, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: _expanded(item, f"{where}.{name}", hidden) for name, item in value.items()}
    if not isinstance(value, str):
        return value

    def stands_for(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        found = os.environ.get(name, match[3])
        if found is None:
            raise UsageError(f"{where} names the environment variable {name}, which is not set: export {name}=…")
        if _SECRET.search(name):
            hidden.append(found)
        return found

    return _VARIABLE.sub(stands_for, value)


def _named(values: Mapping[str, str]) -> list[str]:
    """Values whose names say that they are secret; of `Bearer …` also the second word."""
    found = [value for name, value in values.items() if _SECRET.search(name)]
    return found + [value.split()[-1] for value in found if value.split()]


class _TwiceError(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return found
