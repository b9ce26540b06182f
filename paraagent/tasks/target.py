"""What somebody who asks for a tool's work has to say: a value for each parameter, in words, and the facts wanted."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.seeds import derive
from paraagent.tasks.facts import Fact, answerable, facts_of, value_at
from paraagent.tasks.phrasing import Given, contradicts
from paraagent.tasks.rejection import RejectionError
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.world import World

_SCALARS = ("string", "integer", "number", "boolean")
_SECRETS = frozenset(
    [
        "authorization",
        "apikey",
        "accesstoken",
        "token",
        "secret",
        "password",
        "signature",
        "auth",
        "credential",
        "credentials",
        "session",
        "cookie",
        "accept",
    ]
)
_SPELLED = {
    "id": "ID",
    "ip": "IP",
    "url": "URL",
    "q": "query",
    "arn": "ARN",
    "num": "number",
    "lat": "latitude",
    "lon": "longitude",
    "lng": "longitude",
    "ext": "external",
    "aws": "AWS",
    "sku": "SKU",
    "sid": "SID",
    "ai": "AI",
    "vm": "VM",
    "trans": "transaction",
    "vat": "VAT",
}
_ACTS = frozenset({"get", "set", "find", "include", "is", "has", "show", "with", "php", "json"})
_NO_THING = frozenset(
    {"create", "update", "delete", "remove", "add", "get", "list", "set", "patch", "put", "post", "edit", "read"}
    | {"id", "ids", "by", "all", "new", "info", "details"}
)
"""Last words of names of tools that are nothing a parameter belongs to."""
_BARE = frozenset({"id", "ids", "name", "key", "code", "number", "slug", "uuid", "type"})
"""Parameter names that say nothing without the thing they belong to."""
_SETTABLE = frozenset({"name", "title", "description", "label", "summary", "comment", "note", "subject", "email"})
"""Last words of what an update may set."""
_VALUE = re.compile(r"[\w.@:/+,-]+(?: [\w.@:/+,-]+){0,3}")
_PLACEHOLDER = re.compile(r"\{\+?([^{}]*)\}")
_LONGEST_VALUE = 28
_MOST_WORDS = 4
_NO_ID = (
    "uuid",
    "guid",
    "paid",
    "grid",
    "valid",
    "void",
    "fluid",
    "solid",
    "hybrid",
    "android",
    "covid",
    "liquid",
    "rapid",
)
"""Words that end like `strategyid` and hold no id."""
WORLDS = 8
"""Worlds in which facts are looked at; in no two of them may they read the same."""
_CHOICE = 4
"""Facts of the best ranks among which the seed chooses."""
_PAIRED = 10
"""Facts among which the second of a pair is looked for."""


def literal(tool: ToolInterface, name: str, seed: int) -> Any:
    """A value for one parameter, as somebody might have it; equal seeds give equal values."""
    generate = Compiler().compile_field(name, tool.properties[name], owner_of(tool, name))
    return generate(derive(seed, "argument", name), World(seed).now, {})


def given(tool: ToolInterface, name: str, seed: int) -> tuple[Any, Given]:
    """A value for one required parameter, and how a person would say it. Raises `RejectionError`."""
    schema = tool.properties[name]
    word = word_of(name, owner_of(tool, name))
    if schema.get("type") not in _SCALARS or len(schema.get("enum", (1, 2))) < 2:
        raise RejectionError("required parameter is no free scalar")
    value = literal(tool, name, seed)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) > _LONGEST_VALUE or not _VALUE.fullmatch(text):
        raise RejectionError("argument is hard to say")
    return value, Given(word, text)


def new_value(tool: ToolInterface, seed: int) -> tuple[str, Any, Given] | None:
    """What an update that is told nothing but what to update may set: parameter, value, and how it is said."""
    for name, schema in tool.properties.items():
        parts = words(name)
        if schema.get("type") == "string" and "enum" not in schema and parts and parts[-1] in _SETTABLE:
            try:
                value, said = given(tool, name, seed)
            except RejectionError:
                continue
            return name, value, Given(f"new {said.word}", said.value)
    return None


def owner_of(tool: ToolInterface, parameter: str) -> tuple[str, ...]:
    """Words of what a parameter belongs to: `customer` for the `{id}` of `/customers/{id}`, else the tool's noun."""
    segments = [segment for segment in tool.path.split("/") if segment]
    for before, segment in pairwise(segments):
        match = _PLACEHOLDER.fullmatch(segment)
        if match and match[1] == parameter and not _PLACEHOLDER.search(before):
            parts = words(before)
            return (*parts[:-1], singular(parts[-1])) if parts else ()
    noun = words(tool.source_name)[-1:]
    return (singular(noun[0]),) if noun and noun[0] not in _NO_THING else ()


def word_of(name: str, owner: tuple[str, ...]) -> str:
    """How a person names a parameter: `cluster ID`. Raises `RejectionError`."""
    parts = words(name)
    if parts and len(parts[-1]) > 4 and parts[-1].endswith("id") and not parts[-1].endswith(_NO_ID):
        parts = (*parts[:-1], parts[-1][:-2], "id")
    if (
        set(parts) & _SECRETS
        or "".join(parts) in _SECRETS
        or name.lower().startswith("x-")
        or {"api", "version"} <= set(parts)
    ):
        raise RejectionError("parameter is technical")
    if len(parts) == 1 and parts[0] in _BARE and owner and owner[-1] != parts[0] and len(owner) < 3:
        parts = (*owner, *parts)
    if (
        not 0 < len(parts) <= _MOST_WORDS
        or parts[0] in _ACTS
        or parts in (("from",), ("to",))
        or any(any(c.isdigit() for c in part) or (len(part) < 2 and part != "q") for part in parts)
    ):
        raise RejectionError("parameter has no plain name")
    return " ".join(_SPELLED.get(part, part) for part in parts)


def facts_worth(result: Any, told: frozenset[str] = frozenset(), givens: Sequence[Given] = ()) -> list[Fact]:
    """The facts that may be asked for of a result, best first. Raises `RejectionError` where it holds none.

    Args:
        told: values that are known before this result, in lower case; they are not asked for.
        givens: what the request says for this result; what contradicts it is not asked for.
    """
    facts = [
        fact
        for fact in facts_of(result)
        if str(value_at(result, fact.path)).casefold() not in told and not contradicts(fact.label, givens)
    ]
    if not facts:
        raise RejectionError("result holds no fact worth asking for")
    return facts


def choose_facts(worth: Sequence[Fact], results: Sequence[Any], choices: random.Random) -> list[Fact]:
    """One of the best facts, or two where one alone could be guessed, from the results of several worlds.

    Together they read differently in every world. Raises `RejectionError` where no facts do.

    Args:
        worth: what may be asked for, best first.
        results: of the same calls, the first from the world that the facts are for.
    """
    facts = {fact: values for fact in worth if (values := _values(fact, results)) is not None}
    if not facts:
        raise RejectionError("result holds no fact worth asking for")
    ranked = list(facts)
    best = [fact for fact in ranked if fact.rank <= ranked[0].rank + 1][:_CHOICE]
    sure = [fact for fact in best if len(set(facts[fact])) == len(results)]
    if sure:
        return [choices.choice(sure)]
    first = choices.choice(best)
    for second in sorted(ranked[:_PAIRED], key=lambda fact: len(set(facts[fact])), reverse=True):
        if second != first and len(set(zip(facts[first], facts[second], strict=True))) == len(results):
            return [first, second]
    raise RejectionError("answer could be guessed")


def _values(fact: Fact, results: Sequence[Any]) -> list[str] | None:
    """What a fact reads in each world, in lower case; None where it does not stand in every one."""
    try:
        values = [value_at(result, fact.path) for result in results]
    except (LookupError, ValueError):
        return None
    return [str(value).casefold() for value in values] if all(map(answerable, values)) else None
