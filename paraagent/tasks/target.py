"""Target: one tool drafted into one thing that somebody could ask for: its need, what is given, the fact to report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.seeds import derive, rng
from paraagent.tasks.facts import Fact, answerable, facts_of, value_at
from paraagent.tasks.phrasing import Given, Item
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.identifiers import singular, words
from paraagent.toolenv.limits import fit_json
from paraagent.toolenv.simulator import GroundedSimulator
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
}
_ACTS = frozenset({"get", "set", "find", "include", "is", "has", "show", "with", "php", "json"})
_BARE = frozenset({"id", "ids", "name", "key", "code", "number", "slug", "uuid", "type"})
"""Parameter names that say nothing without the thing they belong to."""
_VALUE = re.compile(r"[\w.@:/+,-]+(?: [\w.@:/+,-]+){0,3}")
_PLACEHOLDER = re.compile(r"\{\+?([^{}]*)\}")
_LONGEST_VALUE = 28
_MOST_WORDS = 4
_WORLDS = 4
"""Worlds in which a fact is looked at; in one more than half of the others it must read differently."""
_CHOICE = 4
"""Facts of the best ranks among which the seed chooses."""


@dataclass(frozen=True)
class Target:
    """A draft that no request has been written for."""

    tool: ToolInterface
    slot: str
    arguments: dict[str, Any]
    item: Item
    path: str
    """Where the fact stands in the result."""


class RejectionError(Exception):
    """Why a tool or a task is not taken; the text is the key of the count."""


def draft(tool: ToolInterface, need: str, seed: int, max_result_chars: int) -> Target:
    """Draft a tool; equal seeds give equal drafts. Raises `RejectionError`."""
    arguments, givens = _given(tool, seed)
    fact = _fact(tool, arguments, seed, max_result_chars)
    return Target(tool, need, arguments, Item(need, givens, fact.label), fact.path)


def _given(tool: ToolInterface, seed: int) -> tuple[dict[str, Any], tuple[Given, ...]]:
    """An argument for each required parameter, and how a person would say it."""
    compiler, now = Compiler(), World(seed).now
    arguments: dict[str, Any] = {}
    givens: list[Given] = []
    for name in tool.properties:
        if name not in tool.required:
            continue
        schema = tool.properties[name]
        owner = _owner(tool, name)
        word = _word(name, owner)
        if schema.get("type") not in _SCALARS or len(schema.get("enum", (1, 2))) < 2:
            raise RejectionError("required parameter is no free scalar")
        value = compiler.compile_field(name, schema, owner)(derive(seed, "argument", name), now, {})
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if len(text) > _LONGEST_VALUE or not _VALUE.fullmatch(text):
            raise RejectionError("argument is hard to say")
        arguments[name] = value
        givens.append(Given(word, text))
    if not givens or len({given.word for given in givens}) < len(givens):
        raise RejectionError("parameters are hard to tell apart")
    if check_arguments(tool, arguments) is not None:
        raise RejectionError("arguments do not validate")
    return arguments, tuple(givens)


def _owner(tool: ToolInterface, parameter: str) -> tuple[str, ...]:
    """Words of what a parameter belongs to: `customer` for the `{id}` of `/customers/{id}`, else the tool's noun."""
    segments = [segment for segment in tool.path.split("/") if segment]
    for before, segment in pairwise(segments):
        match = _PLACEHOLDER.fullmatch(segment)
        if match and match[1] == parameter and not _PLACEHOLDER.search(before):
            parts = words(before)
            return (*parts[:-1], singular(parts[-1])) if parts else ()
    noun = words(tool.source_name)[-1:]
    return (singular(noun[0]),) if noun else ()


def _word(name: str, owner: tuple[str, ...]) -> str:
    parts = words(name)
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


def _fact(tool: ToolInterface, arguments: dict[str, Any], seed: int, max_chars: int) -> Fact:
    """One of the best facts that stands in every world and differs between them."""
    results = [_result(tool, arguments, derive(seed, "world", number), max_chars) for number in range(_WORLDS)]
    facts = [fact for fact in facts_of(results[0]) if _varies(fact, results)]
    if not facts:
        raise RejectionError("result holds no fact worth asking for")
    best = [fact for fact in facts if fact.rank <= facts[0].rank + 1][:_CHOICE]
    return rng(seed, "fact").choice(best)


def _result(tool: ToolInterface, arguments: dict[str, Any], seed: int, max_chars: int) -> Any:
    response = GroundedSimulator(seed).call(tool, arguments)
    if response.error is not None:
        raise RejectionError("call fails")
    return fit_json(response.result, max_chars)


def _varies(fact: Fact, results: list[Any]) -> bool:
    try:
        values = [value_at(result, fact.path) for result in results]
    except (LookupError, ValueError):
        return False
    return all(map(answerable, values)) and sum(value != values[0] for value in values[1:]) > (_WORLDS - 1) / 2
