"""Names that a model calls: readable, at most 64 characters, unique after case-folding, and stable from build to build.

`ec2_describe_instances`, `calendar_events_list`, `stripe_get_customers_customer`: service or provider, then the
source's own words. The earlier source keeps a name that two tools want; the later one gets a short hash of its
identity behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from functools import lru_cache

from paraagent.catalog.text import words

MAX_NAME = 64
_EMPTY_LABELS = frozenset(
    {"api", "apis", "www", "com", "org", "net", "io", "local", "dev", "co", "gov", "app", "rest", "openapi"}
)


def candidate(provider: str, service: str, name: str) -> str:
    """The name that a tool would have if it were alone."""
    own = words(name)
    lead = list(_lead(provider, service))
    parts = _joined(lead, own)
    while len("_".join(parts)) > MAX_NAME and len(lead) > 1:
        lead = lead[:-1]
        parts = _joined(lead, own)
    text = "_".join(parts)
    if len(text) > MAX_NAME:
        text = text[: MAX_NAME + 1]
        text = text[: text.rfind("_")] if "_" in text else text[:MAX_NAME]
    return text or "tool"


@lru_cache(maxsize=4_096)
def _lead(provider: str, service: str) -> tuple[str, ...]:
    """Words for the provider and service, which come first."""
    if provider in ("amazonaws.com", "googleapis.com"):
        return tuple(words(service))
    label = _label(provider)
    if service == provider:
        return tuple(label)
    return *label, *(word for word in words(service) if word not in label and word not in _EMPTY_LABELS)


def _label(provider: str) -> list[str]:
    """`api.stripe.com` is known as stripe."""
    labels = [label for label in provider.lower().split(".") if words(label)]
    telling = [label for label in labels if label not in _EMPTY_LABELS]
    return words((telling or labels or ["tool"])[0])


def _joined(lead: list[str], own: list[str]) -> list[str]:
    """The words of both, without saying at the seam what was just said."""
    for length in range(min(len(lead), len(own)), 0, -1):
        if lead[-length:] == own[:length]:
            return lead + own[length:]
    return lead + own


def assign(wanted: Iterable[tuple[str, str]], before: Collection[str] = ()) -> list[str]:
    """Final names for (tool_id, candidate) pairs in order of precedence; `before` are taken, in lower case."""
    taken = set(before)
    names = []
    for tool_id, name in wanted:
        digits = 6
        digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()
        final = name
        while final.lower() in taken:
            suffix = "_" + digest[:digits]
            final = name[: MAX_NAME - len(suffix)].rstrip("_") + suffix
            digits += 2
        taken.add(final.lower())
        names.append(final)
    return names
