"""What a call does to the world, told from its HTTP method and the verbs in its name."""

from __future__ import annotations

from paraagent.catalog.interface import Effect
from paraagent.catalog.text import words

_WORDS: dict[Effect, str] = {
    "read": """
        get list describe search query find fetch read lookup retrieve show view check count download export
        preview verify validate estimate calculate compute simulate test detect analyze analyse compare
        suggest recommend predict head exists is has select scan resolve translate lint render autocomplete
        discover aggregate report inspect batchget browse match classify quote track convert
    """,
    "create": """
        create add insert new register post upload import generate publish issue book submit clone copy
        provision allocate open duplicate enroll invite launch request schedule send subscribe build reply
    """,
    "update": """
        update modify set put patch edit change replace rename move enable disable activate deactivate assign
        unassign attach detach associate disassociate configure tag untag reset restore approve reject merge
        upsert save promote rotate renew extend increment decrement resize lock unlock mark pause resume
        suspend accept decline confirm complete close reopen append redirect
    """,
    "delete": """
        delete remove destroy terminate cancel revoke deregister purge drop erase clear unsubscribe release
        trash unregister uninstall batchdelete
    """,
}
_VERBS: dict[str, Effect] = {word: kind for kind, text in _WORDS.items() for word in text.split()}


def effect(method: str, name: str) -> Effect:
    """What a call does: by its HTTP method where that decides, else by the first verb in its name.

    AWS sends everything as POST, and many a service searches by POST: there the name knows better. The verb is
    looked for at the start of the name (`DescribeInstances`), then at its end (`projects.locations.list`), then in
    between.
    """
    if method == "DELETE":
        return "delete"
    if method in ("GET", "HEAD", "OPTIONS", "TRACE"):
        return "read"
    found = words(name)
    for word in [*found[:1], *found[-2:]]:
        if word in _VERBS:
            return _VERBS[word]
    if method in ("PUT", "PATCH"):
        return "update"
    return next((_VERBS[word] for word in found if word in _VERBS), "other")


def is_verb(word: str) -> bool:
    """Whether a lower-case word says what a call does."""
    return word in _VERBS
