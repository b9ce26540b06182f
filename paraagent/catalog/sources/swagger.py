"""Swagger 2 in OpenAPI 3's words: bodies, forms, responses and security schemes; schemas stay where they stand.

`collectionFormat` says how a list is written into a URL and changes no schema; `type: file` is text.
"""

from __future__ import annotations

from typing import Any

from paraagent.catalog.sources.openapi_document import NOTHING, Document

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


def modernised(raw: dict[str, Any]) -> dict[str, Any]:
    """A document whose operations read as OpenAPI 3; `#/definitions/…` resolves as before."""
    document = Document(raw)
    paths = document.mapping(raw.get("paths"))
    components = {"securitySchemes": document.mapping(raw.get("securityDefinitions"))}
    return {
        **raw,
        "openapi": "3.0.0",
        "paths": {path: _item(document, document.follow(item)) for path, item in paths.items()},
        "components": components,
    }


def _item(document: Document, item: dict[str, Any]) -> dict[str, Any]:
    shared = _parameters(document, item)
    found = {key: value for key, value in item.items() if key not in _METHODS}
    found["parameters"] = [p for p in shared if not _in_body(p)]
    for method in _METHODS:
        if isinstance(operation := item.get(method), dict):
            found[method] = _operation(document, operation, shared)
    return found


def _operation(document: Document, operation: dict[str, Any], shared: list[dict[str, Any]]) -> dict[str, Any]:
    own = _parameters(document, operation)
    named = {(p.get("in"), p.get("name")) for p in own}
    every = [*(p for p in shared if (p.get("in"), p.get("name")) not in named), *own]
    changed = {**operation, "parameters": [p for p in own if not _in_body(p)]}
    body = next((p for p in every if p.get("in") == "body"), None)
    form = [p for p in every if p.get("in") == "formData" and isinstance(p.get("name"), str)]
    if body is not None:
        changed["requestBody"] = {
            "description": body.get("description"),
            "required": body.get("required") is True,
            "content": {"application/json": {"schema": body.get("schema")}},
        }
    elif form:
        schema = {
            "type": "object",
            "properties": {
                p["name"]: {k: v for k, v in p.items() if k not in ("in", "name", "required")} for p in form
            },
            "required": [p["name"] for p in form if p.get("required") is True],
        }
        changed["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": schema}}}
    if isinstance(responses := operation.get("responses"), dict):
        changed["responses"] = {str(code): _response(document.follow(r)) for code, r in responses.items()}
    return changed


def _response(response: dict[str, Any]) -> dict[str, Any]:
    if "schema" not in response:
        return response
    return {**response, "content": {"application/json": {"schema": response["schema"]}}}


def _parameters(document: Document, node: dict[str, Any]) -> list[dict[str, Any]]:
    listed = node.get("parameters")
    found = [document.follow(raw) for raw in (listed if isinstance(listed, list) else ())]
    return [p for p in found if p is not NOTHING]


def _in_body(parameter: dict[str, Any]) -> bool:
    return parameter.get("in") in ("body", "formData")
