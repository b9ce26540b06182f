"""Families of tools about one kind of thing: events of a calendar, maps of a cluster, repositories known by name."""

from __future__ import annotations

from typing import Any

from paraagent.catalog.interface import ToolInterface
from tests.toolenv.interfaces import tool

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
STATUS: dict[str, Any] = {"enum": ["open", "done"]}


def fields(names: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": names, "required": required or []}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def made(plural: str, verb: str, effect: str, path: str, given: dict[str, Any], returns: Any) -> ToolInterface:
    """A tool of a made-up service; what its path names is required."""
    required = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    methods = {"read": "GET", "create": "POST", "update": "PATCH", "delete": "DELETE"}
    return tool(
        tool_id=f"acme.example/office/{plural}.{verb}",
        name=f"office_{plural}_{verb}",
        source_name=f"{plural}.{verb}",
        service="office",
        effect=effect,
        http_method=methods[effect],
        path=path,
        parameters=fields({**dict.fromkeys(required, TEXT), **given}, required),
        returns=returns,
    )


def family(plural: str, path: str, own: str, thing: Any, writes: Any, choices: Any, listed: Any) -> list[ToolInterface]:
    """The tools that get, list, create, update and delete things of one kind, in this order."""
    one = f"{path}/{{{own}}}"
    return [
        made(plural, "get", "read", one, {}, thing),
        made(plural, "list", "read", path, choices, listed),
        made(plural, "insert", "create", path, writes, thing),
        made(plural, "patch", "update", one, writes, thing),
        made(plural, "delete", "delete", one, {}, fields({})),
    ]


EVENT = fields(
    {"id": TEXT, "calendarId": TEXT, "summary": TEXT, "status": STATUS}, ["id", "calendarId", "summary", "status"]
)
CALENDAR = family(
    "events",
    "/calendars/{calendarId}/events",
    "eventId",
    EVENT,
    {"summary": TEXT},
    {"maxResults": NUMBER, "pageToken": TEXT, "status": STATUS},
    fields({"items": array(EVENT), "nextPageToken": TEXT, "totalItems": NUMBER}),
)
_MAP = fields(
    {
        "metadata": fields({"name": TEXT, "namespace": TEXT}),
        "data": fields({"color": TEXT}),
        "immutable": {"type": "boolean"},
    }
)
CLUSTER = family(
    "configmaps",
    "/namespaces/{namespace}/configmaps",
    "name",
    _MAP,
    {"immutable": {"type": "boolean"}},
    {"limit": NUMBER, "offset": NUMBER},
    fields({"items": array(_MAP)}),
)
"""What identifies a thing stands in a part of it."""
_REPOSITORY = fields(
    {"name": TEXT, "description": TEXT, "stars": NUMBER, "owner": fields({"id": NUMBER, "login": TEXT})}
)
REPOSITORIES = [
    *family(
        "repos",
        "/users/{owner}/repos",
        "repoName",
        _REPOSITORY,
        {"description": TEXT},
        {"page": NUMBER, "per_page": NUMBER},
        array(_REPOSITORY),
    ),
    made("repos", "listForOrg", "read", "/orgs/{org}/repos", {}, array(_REPOSITORY)),
]
"""Names that are told apart only by their owners, who have two names themselves."""
