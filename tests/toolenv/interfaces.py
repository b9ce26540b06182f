"""Hypothesis strategies: interfaces as wild as a catalog holds them, and arguments that satisfy them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from paraagent.catalog.interface import ToolInterface

NAMES = st.sampled_from(
    [
        "id",
        "name",
        "eventId",
        "event_id",
        "projectId",
        "status",
        "email",
        "createdTime",
        "price",
        "count",
        "title",
        "url",
        "latitude",
        "items",
        "data",
        "tags",
        "parent",
        "owner",
        "startDate",
        "isActive",
        "currency",
        "phone",
        "description",
        "version",
        "percent",
        "meta",
        "x-rate",
    ]
)
FORMATS = st.sampled_from(["date-time", "date", "email", "uri", "uuid", "int64", "ipv4", "byte", "made-up"])
PATTERNS = st.sampled_from(
    [
        "^[a-z]{3}-[0-9]{4}$",
        "^projects/[^/]+/locations/[^/]+$",
        "^arn:aws:[a-z]+:.*$",
        r"^\d{12}$",
        "^(red|green)+$",
        "",
    ]
)


@st.composite
def strings(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["string", ["string", "null"]]))}
    extra = draw(st.sampled_from(["none", "format", "pattern", "length", "enum"]))
    if extra == "format":
        schema["format"] = draw(FORMATS)
    elif extra == "pattern":
        schema["pattern"] = draw(PATTERNS)
    elif extra == "length":
        shortest = draw(st.integers(0, 40))
        schema |= {"minLength": shortest, "maxLength": shortest + draw(st.integers(0, 40))}
    elif extra == "enum":
        schema["enum"] = draw(st.lists(st.sampled_from(["ACTIVE", "DELETED", "a b", ""]), min_size=1, unique=True))
    return schema


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["integer", "number"]))
    schema: dict[str, Any] = {"type": kind}
    low = draw(st.integers(-1_000_000, 1_000_000))
    if draw(st.booleans()):
        schema["minimum"] = low
    if draw(st.booleans()):
        schema["maximum"] = low + draw(st.integers(0, 10_000))
    if draw(st.booleans()) and "maximum" not in schema:
        schema["exclusiveMinimum"] = low
    if kind == "integer" and not schema.keys() & {"maximum", "exclusiveMinimum"} and draw(st.booleans()):
        schema["multipleOf"] = draw(st.integers(1, 50))
    return schema


SCALARS = st.one_of(strings(), numbers(), st.just({"type": "boolean"}), st.just({"const": "fixed"}))


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def with_required(properties: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        chosen = st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([])
        return chosen.map(lambda required: {"type": "object", "properties": properties, "required": required})

    return st.dictionaries(NAMES, inner, max_size=6).flatmap(with_required)


def _arrays(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.sampled_from([{}, {"minItems": 1}, {"minItems": 2, "maxItems": 3}, {"maxItems": 0}])
    return st.builds(lambda items, more: {"type": "array", "items": items, **more}, inner, bounds)


def _unions(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    branches = st.lists(inner, min_size=1, max_size=2)
    return st.builds(lambda parts: {"anyOf": [{"type": "null"}, *parts]}, branches) | st.builds(
        lambda part: {"allOf": [part, {"description": "more"}]}, inner
    )


SCHEMAS = st.recursive(SCALARS, lambda inner: objects(inner) | _arrays(inner) | _unions(inner), max_leaves=12)


@st.composite
def interfaces(draw: st.DrawFn) -> ToolInterface:
    parameters = draw(objects(SCALARS))
    returns = draw(st.none() | objects(SCHEMAS) | _arrays(objects(SCALARS)))
    path = draw(st.sampled_from(["/events/{eventId}", "/projects/{projectId}/events", "/", ""]))
    return tool(parameters=parameters, returns=returns, path=path)


def tool(**changes: Any) -> ToolInterface:
    """A small calendar tool, with what a test is about changed."""
    values: dict[str, Any] = {
        "tool_id": "acme.example/calendar/events.get",
        "name": "calendar_events_get",
        "source_name": "events.get",
        "provider": "acme.example",
        "service": "calendar",
        "category": "productivity",
        "title": "Get event",
        "description": "Returns one event of a calendar, with its title, start and place.",
        "effect": "read",
        "http_method": "GET",
        "path": "/events/{eventId}",
        "parameters": {"type": "object", "properties": {"eventId": {"type": "string"}}, "required": ["eventId"]},
        "returns": {"type": "object", "properties": {"id": {"type": "string"}, "summary": {"type": "string"}}},
        "deprecated": False,
        "source": "openapi:test",
        "source_version": "1",
        "licence": "Apache-2.0",
        "quality": 1.0,
    }
    return ToolInterface(**(values | changes))
