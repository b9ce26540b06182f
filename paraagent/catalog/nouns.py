"""Identifiers read as a noun and the attribute that tells one such thing from another: `eventId` is an event's id."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from paraagent.catalog.text import words


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for the lists of words that rules are made of."""
    return frozenset(text.split())


_ATTRIBUTES = {
    "id": "id",
    "ids": "id",
    "identifier": "id",
    "identifiers": "id",
    "arn": "arn",
    "arns": "arn",
    "name": "name",
    "names": "name",
    "uuid": "uuid",
    "uuids": "uuid",
    "guid": "uuid",
    "guids": "uuid",
    "sid": "sid",
    "gid": "gid",
    "key": "key",
    "slug": "slug",
    "number": "number",
    "code": "code",
}
"""Last words that name one thing among its kind, in the spelling that stands for all of them."""
_IRREGULAR = {"people": "person", "children": "child", "indices": "index", "apis": "api"}
_MANY = frozenset({"ids", "identifiers", "arns", "names", "uuids", "guids"})
_ROLES = word_set(
    """
    source target destination src dst dest parent existing original current related associated attached selected
    """
)
"""Words before a noun that say what the thing is for, not what it is."""
_CATCH_ALL = word_set(
    """
    resource item object request result response data page next previous token idempotency tag external entity
    record source target status type error message trace correlation session connection client owner requester
    parent child value field attribute property column metric event-type unique internal global local legacy old
    new temp transaction batch global-unique public private operation request-operation reference ref row any
    self node element attachment-type principal member subject related creator author caller sequence serial
    version revision order-line access api secret primary foreign sort partition encryption idempotent master
    license signing shared invitation display first last full middle nick friendly file given family company
    legal trade brand host preferred long short common maiden sur fore official native street city state
    province region county town bank business contact sender recipient class function-type time timezone
    language locale currency country postal zip area dial calling color colour account-holder card phone fax
    mobile telephone sms tax vat vin iban bic swift route check version-number line house building floor room
    page-number total max min count port process build house-number error-code reason reference-number part lot
    model plate invoice-line response-code http exit status-code security verification promo coupon confirmation
    auth authorization access-code discount redirect parameter variable argument environment-variable header
    domain dns module action event-name schema-field
    """
)
_SUMMARIES = word_set(
    """
    summary summaries detail details info information list lists metadata description descriptions item items
    result results set overview record records data response output object objects resource collection
    """
)
"""Words after a noun that do not change what it is: `InstanceSummaries`, `DBInstanceList`."""
_GENERIC = word_set(
    """
    data item items result results value values content contents response body payload object record records
    entry entries list node nodes edge edges embedded property properties attribute attributes row rows
    collection collections doc docs document hits hit element elements summary metadata detail details info
    output resource resources member members page pages all spec model entity entities json return root success
    set
    """
)
"""Containers that say nothing about what they hold."""
_AUDIT = ("createdby", "updatedby", "modifiedby", "lastmodified", "lastupdated", "deletedby", "impersonat")
"""Who touched a record: kept by the system, not given to it."""
_TRANSIENT = ("token", "cursor", "request", "callerreference", "etag")
"""What a call or a page is known by, and nothing that lasts."""
_SAME = frozenset(
    {"series", "species", "news", "status", "address", "access", "business", "analysis", "basis", "alias"}
)


class Leaf(NamedTuple):
    """A name taken apart."""

    noun: str
    """Without blanks, singular; empty where the name is an attribute alone (`id`)."""
    attribute: str
    """Empty where the name is a noun alone (`bucket`)."""
    many: bool
    role: bool
    """A word such as `source` or `parent` was taken off."""


def singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("lyses"):
        return word[:-2] + "is"
    if word in _SAME or len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "buses", "statuses", "aliases")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


@lru_cache(maxsize=200_000)
def leaf(name: str) -> Leaf:
    """`vpcIds`, `parent_folder_id`, `idBoard`, `name`."""
    found = words(name)
    if not found:
        return Leaf("", "", False, False)
    if len(found) > 1 and found[0] == "id" and found[-1] not in _ATTRIBUTES:
        found = [*found[1:], "id"]
    last = found[-1]
    attribute, many = _ATTRIBUTES.get(last, ""), last in _MANY
    if len(found) > 2 and last == "list" and found[-2] in _ATTRIBUTES:
        found, attribute, many = found[:-1], _ATTRIBUTES[found[-2]], True
    body = found[:-1] if attribute else found
    if attribute == "id" and body == ["web"]:
        return Leaf("", "webid", many, False)
    role = attribute != "name" and len(body) > 1 and body[0] in _ROLES
    return Leaf(join(body[1:] if role else body, whole=True), attribute, many, role)


def join(parts: list[str], *, whole: bool = False) -> str:
    """One noun of its words, the last in the singular; unless whole, without what stands for "list" or "details of"."""
    while not whole and len(parts) > 1 and parts[-1] in _SUMMARIES:
        parts = parts[:-1]
    return "".join([*parts[:-1], singular(parts[-1])]) if parts else ""


@lru_cache(maxsize=100_000)
def container(name: str) -> str:
    """The noun of a field that holds others, empty where it tells nothing (`items`, `data`)."""
    parts = words(name)
    return "" if not parts or (len(parts) == 1 and parts[0] in _GENERIC | {"id"}) else join(parts)


def is_catch_all(noun: str) -> bool:
    """Whether this noun is used for anything at all, so that two of them need not be the same kind of thing."""
    return (
        not noun
        or noun in _CATCH_ALL
        or len(noun) < 2
        or noun.isdigit()
        or noun.startswith(_AUDIT)
        or noun.endswith(_TRANSIENT)
    )
