"""The type of a value as people mean it: not "a string called id" but "the id of the calendar's event".

An entity is a scope, a noun and an attribute, written `acme.example/calendar:event.id`. The scope is the service, the
provider where its services share the thing (`amazonaws.com:vpc.id`), or `world` for what means the same everywhere.
The noun comes from the name (`eventId`), else from what holds a bare `id`: the parent field, the path segment before
the placeholder, or what the tool is about.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from paraagent.catalog.interface import Schema, ToolInterface
from paraagent.catalog.normalize import FIELD_TEXT
from paraagent.catalog.nouns import container, is_catch_all, leaf, word_set
from paraagent.catalog.subject import Subject
from paraagent.catalog.text import clean
from paraagent.catalog.worldtypes import world_name, world_type

WORLD = "world"
_SCALARS = frozenset({"string", "integer", "number"})
_NO_FORMATS = word_set(
    """
    date-time date datetime time byte binary email uri url password double float duration unixtime unix-time
    boolean decimal timestamp iso-datetime
    """
)
_SHARED: dict[str, frozenset[tuple[str, str]]] = {
    "amazonaws.com": frozenset(
        {
            ("vpc", "id"),
            ("subnet", "id"),
            ("securitygroup", "id"),
            ("role", "arn"),
            ("kmskey", "arn"),
            ("kmskey", "id"),
            ("snstopic", "arn"),
            ("lambdafunction", "arn"),
            ("s3bucket", "name"),
            ("awsaccount", "id"),
            ("hostedzone", "id"),
        }
    ),
    "azure.com": frozenset({("subscription", "id"), ("resourcegroup", "name")}),
    "googleapis.com": frozenset({("project", "id")}),
}
"""What all services of a provider mean by the same words."""
_APART = frozenset(
    {("amazonaws.com/wickr", "securitygroup"), ("amazonaws.com/account-access-runtime", "role")}
    | {("googleapis.com/dfareporting", "project")}
)
"""Services that mean something of their own by them."""
_RENAMED: dict[tuple[str, str, str], tuple[str, str]] = {
    ("amazonaws.com/iam", "role", "arn"): ("role", "arn"),
    ("amazonaws.com", "iamrole", "arn"): ("role", "arn"),
    ("amazonaws.com/kms", "key", "arn"): ("kmskey", "arn"),
    ("amazonaws.com/kms", "key", "id"): ("kmskey", "id"),
    ("amazonaws.com/sns", "topic", "arn"): ("snstopic", "arn"),
    ("amazonaws.com/lambda", "function", "arn"): ("lambdafunction", "arn"),
    ("amazonaws.com/s3", "bucket", "name"): ("s3bucket", "name"),
    ("amazonaws.com/organizations", "account", "id"): ("awsaccount", "id"),
}
_DARK = re.compile(
    r"(?:^|[.\]])_?(errors?|warnings?|faults?|fail\w*|unprocessed\w*|invalid\w*|unsuccessful\w*|validation\w*|deleted\w*|links?"
    r"|paging|pagination|meta|request\w*|examples?|debug|exception\w*|rejected\w*|self|audit|tags?|filters?)(?:\[\])?\.",
    re.IGNORECASE,
)
"""Places in a result where an id is no result: errors, links, echoes."""
_WEAK = frozenset({"code", "number", "key", "slug"})
"""Attributes that only a path or the very thing's own name makes certain."""
_KEYS = frozenset({"id", "arn", "uuid"})
_PREFERRED = frozenset({"language", "email", "ip", "phone"})
"""Optional, these ask for a preference, for the caller's own, or for what one thing has."""
_ANYTHING = frozenset({"item", "resource", "object", "entity", "record", "element"})
"""What a placeholder may call any thing: `itemId` after `/notes/` is a note's."""
_VAGUE = frozenset({"group", "run"})
"""Of several kinds in one service; without the kind an id of these is of no use."""
_CONDITIONS = frozenset({"ifmatch", "ifnonematch"})
"""They ask for the state of a thing, whatever their descriptions say."""
_NOT_ASKED = re.compile(r"deprecated|.{0,60}\b(?:read[- ]only|output only)\b", re.IGNORECASE)
_IS_ID = re.compile(
    r"^(?i:(?:the |a |an |unique |optional\.? |required\.? )*(?:id|identifier)\b(?! token))"
    r"|\b(?:ID|identifier) (?:of|for) (?:the|a|an|this|that)\b"
)
_IS_NAME = re.compile(r"^(?:the |optional\.? |required\.? )*name (?:of|for) (?:the|a|an|this)\b", re.IGNORECASE)
_NEW = re.compile(
    r"\b(?:new|to create|being created|want to create|will be created|(?:is|must be|be) unique|choose|to assign|to give"
    r"|user-defined|user-supplied|client[- ]generated|client token|idempoten\w+|rename|friendly name|display name"
    r"|case[- ]insensitive search)\b",
    re.IGNORECASE,
)
_RESOURCE_NAME = re.compile(r"resource name|/|\bformat\b", re.IGNORECASE)


class Entity(NamedTuple):
    """What a value identifies."""

    scope: str
    noun: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.scope}:{self.noun}.{self.attribute}"


class Typed(NamedTuple):
    """An entity and how it was told."""

    entity: Entity
    rule: str
    """place: by where it stands · compound: by its own name · role: by that without a word such as `source` ·
    described: by its description · resource: a Google resource name · world: by format or description."""
    is_own: bool
    """It identifies what the tool is about."""
    trail: str
    """The nouns of the path that leads to it, where a path told it: hooks of `orgs/hook` and `repos/hook` differ."""


def entity_of_parameter(tool: ToolInterface, name: str) -> Entity | None:
    """What a parameter takes, None where it identifies nothing."""
    schema: Schema = tool.properties[name]
    kind, text, format = _facts(schema)
    found = type_of_parameter(Subject.of(tool), name, kind, text, format, name in tool.required)
    return found.entity if found else None


def entity_of_field(tool: ToolInterface, path: str) -> Entity | None:
    """What a field of the result holds; its path as in the table `fields`. Raises `KeyError` where there is none."""
    kind, text, format = _facts(_at(tool.returns or {}, path))
    found = type_of_field(Subject.of(tool), path, kind, clean(text, FIELD_TEXT), format)
    return found.entity if found else None


def _at(schema: Schema, path: str) -> Schema:
    """The schema at a path; names may hold dots themselves."""
    if not path:
        return schema
    if path.startswith("[]"):
        return _at(schema["items"], path[2:].removeprefix("."))
    for name, field in schema.get("properties", {}).items():
        rest = path[len(name) :]
        if path.startswith(name) and (not rest or rest[0] in ".["):
            try:
                return _at(field, rest.removeprefix("."))
            except KeyError:
                continue
    raise KeyError(path)


def type_of_parameter(
    subject: Subject,
    name: str,
    type: str,
    description: str,
    format: str | None,
    required: bool,
    *,
    locally: bool = False,
) -> Typed | None:
    """As `entity_of_parameter`, over one row of the table `parameters`.

    Args:
        locally: type also what a catch-all noun such as `member` names, by the path that leads to it: good enough
            for what tools of one path do to each other, too little for an edge of the graph.
    """
    if _NOT_ASKED.match(description):
        return None
    if (world := _world(name, type, description, format)) is not None:
        return world if required or (subject.effect == "read" and world.entity.noun not in _PREFERRED) else None
    if subject.chain and (resource := _resource_parameter(subject, name, type)) is not None:
        return resource
    noun, attribute, many, role = leaf(name)
    if not _may_identify(type, format, many) or "." in name or noun in _CONDITIONS:
        return None
    placed, segment = name in subject.segments, subject.segments.get(name, "")
    rule = "compound"
    if not attribute:
        attribute, rule = _described(description) if noun else "", "described"
    if not noun:
        if subject.is_arm and attribute == "id":
            return None
        if subject.is_aws and _names_itself(subject, name):
            return None
        noun, rule = segment if placed else subject.noun, "place"
    elif subject.is_aws:
        noun = _kind_of(noun, subject.noun)
    elif (
        placed
        and segment
        and (
            segment == noun
            or _abbreviates(noun, segment)
            or (locally and (noun in _ANYTHING or noun == f"{segment}list"))
        )
    ):
        noun, rule = segment, "place" if rule == "compound" else rule
    if not attribute:
        return None
    if not placed and not _may_be_given(subject, noun, attribute, rule, description, required, locally=locally):
        return None
    is_own = noun == subject.noun
    if is_own and subject.effect == "create" and (not placed or subject.http_method == "PUT"):
        return None
    trail = (
        subject.trails[name] if placed and segment == noun else subject.trail if not placed and rule == "place" else ""
    )
    if locally and is_catch_all(noun) and (is_own or (placed and segment == noun)):
        noun = subject.trails.get(name, "") if placed else subject.kind
        return _by_trail(subject, noun, attribute, rule, is_own) if noun else None
    return _typed(subject, noun, attribute, "role" if role else rule, is_own, trail)


def type_of_field(
    subject: Subject, path: str, type: str, description: str, format: str | None, *, locally: bool = False
) -> Typed | None:
    """As `entity_of_field`, over one row of the table `fields`; `locally` as of `type_of_parameter`."""
    *above, name = path.split(".")
    if name.endswith("[]") or _DARK.search(path):
        return None
    if (world := _world(name, type, description, format)) is not None:
        return world
    noun, attribute, many, role = leaf(name)
    if not _may_identify(type, format, many):
        return None
    holder = next((found for part in reversed(above) if (found := container(part.replace("[]", "")))), "")
    if locally and len(above) == 1 and subject.names(above[0].replace("[]", "")):
        holder = subject.noun
    at_home = not holder or holder == subject.noun
    if at_home and subject.is_operation:
        return None
    if name == "name" and subject.chain and at_home and _RESOURCE_NAME.search(description):
        return _resource(subject, subject.chain)
    rule = "compound"
    if not attribute:
        attribute, rule = _described(description) if noun else "", "described"
        if attribute != "id":
            return None
    if not noun:
        if subject.is_arm and attribute == "id":
            return None
        noun, rule = holder or subject.noun, "place"
    elif subject.is_aws:
        noun = _kind_of(noun, holder, subject.noun)
    is_own = noun == subject.noun
    if not is_own and not subject.is_aws and attribute == "name" and rule == "place":
        return None
    elsewhere = rule != "place" and noun not in (holder, subject.noun)
    if elsewhere and (attribute in _WEAK or (attribute == "name" and not at_home)):
        return None
    if locally and is_own and is_catch_all(noun):
        return _by_trail(subject, subject.kind, attribute, rule, is_own) if subject.kind else None
    return _typed(subject, noun, attribute, "role" if role else rule, is_own, subject.trail if is_own else "")


def may_type(name: str) -> bool:
    """Whether a name alone leaves it open that its value identifies something; the cheap test before the others."""
    return bool(leaf(name).attribute) or bool(world_name(name))


def _facts(schema: Schema) -> tuple[str, str, str | None]:
    kind: Any = schema.get("type", "any")
    return kind, schema.get("description", ""), schema.get("format")


def _may_identify(type: str, format: str | None, many: bool) -> bool:
    return (type in _SCALARS or (many and type == "array")) and (format or "").lower() not in _NO_FORMATS


def _world(name: str, type: str, description: str, format: str | None) -> Typed | None:
    found = world_type(name, type, description, format) if world_name(name) else ""
    if not found:
        return None
    noun, attribute = found.split(".")
    return Typed(Entity(WORLD, noun, attribute), "world", False, "")


def _described(description: str) -> str:
    if _IS_ID.search(description):
        return "id"
    return "name" if _IS_NAME.search(description) else ""


def _may_be_given(
    subject: Subject, noun: str, attribute: str, rule: str, description: str, required: bool, *, locally: bool
) -> bool:
    """Whether a parameter outside the path asks for a thing that is there, and not for what it is to be called."""
    reads = subject.effect == "read"
    if attribute in _WEAK:
        return reads and rule == "compound"
    if not reads and _NEW.search(description):
        return False
    if attribute != "name":
        return True
    if not required or rule == "described" or not (reads or subject.is_aws):
        return False
    keys = [found.noun for other in subject.parameters if (found := leaf(other)).attribute in _KEYS]
    return noun != subject.noun or not (set(keys) & {"", noun} if locally else keys)


def _names_itself(subject: Subject, name: str) -> bool:
    """Whether another parameter names what the tool is about, so that a bare `Identifier` is of something else."""
    others = (leaf(other) for other in subject.parameters if other != name)
    return any(other.noun == subject.noun and other.attribute in _KEYS for other in others)


def _kind_of(noun: str, *around: str) -> str:
    """The kind that AWS means, from what stands around: `RuleId` of `ListRateBasedRules` is a rate based rule's."""
    found = next((other for other in around if other.endswith(noun)), "")
    return found or ("" if noun in _VAGUE else noun)


def _abbreviates(noun: str, segment: str) -> bool:
    """`env` of `environment`, `vm` of `virtualmachine`, `pull` of `pullrequest`."""
    return (
        segment.startswith(noun)
        or segment.endswith(noun)
        or noun.endswith(segment)
        or (len(noun) <= 3 and segment[:1] == noun[:1] and noun[-1] in segment)
    )


def _resource_parameter(subject: Subject, name: str, type: str) -> Typed | None:
    if type != "string" or name in subject.segments or name not in ("name", "parent", "resource"):
        return None
    ends = bool(subject.last)
    if name == "parent":
        chain = subject.chain if ends else subject.chain.rpartition("/")[0]
    else:
        chain = subject.chain if ends else ""
    return _resource(subject, chain) if chain else None


def _resource(subject: Subject, chain: str) -> Typed:
    scope = f"{subject.provider}/{subject.service}"
    return Typed(Entity(scope, chain, "resource"), "resource", chain == subject.chain, "")


def _by_trail(subject: Subject, noun: str, attribute: str, rule: str, is_own: bool) -> Typed:
    return Typed(Entity(f"{subject.provider}/{subject.service}", noun, attribute), rule, is_own, noun)


def _typed(subject: Subject, noun: str, attribute: str, rule: str, is_own: bool, trail: str) -> Typed | None:
    if is_catch_all(noun):
        return None
    service = f"{subject.provider}/{subject.service}"
    for scope in (service, subject.provider):
        noun, attribute = _RENAMED.get((scope, noun, attribute), (noun, attribute))
    shared = (noun, attribute) in _SHARED.get(subject.provider, ()) and (service, noun) not in _APART
    shared = shared and not subject.service.startswith("azsadmin")  # Azure Stack is a cloud of its own
    return Typed(
        Entity(subject.provider if shared else service, noun, attribute), rule, is_own, "" if shared else trail
    )
