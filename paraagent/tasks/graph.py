"""A sketch written out in one world: arguments, references, the facts to report, and the request."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from paraagent.catalog.interface import ToolInterface
from paraagent.seeds import derive, rng
from paraagent.task import Atom, ReferenceCall, Slot, StateChange
from paraagent.tasks.facts import Fact, answerable, facts_of, value_at
from paraagent.tasks.links import Join, Sketch
from paraagent.tasks.phrasing import (
    Given,
    Item,
    Source,
    also,
    clause,
    closing,
    follow,
    opening,
    phrase,
    same,
    thing_of,
    together,
)
from paraagent.tasks.play import play
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.target import WORLDS, choose_facts, facts_worth, given, new_value, owner_of, word_of
from paraagent.toolenv.identifiers import words

_NAMING = frozenset({"name", "title", "subject", "email", "label", "username"})
"""Facts by which a person picks one of several things."""
_LONGEST_NAME = 30
_VAGUE = frozenset({"update", "modify", "edit", "change", "set", "replace", "patch", "put"})
"""Verbs that say nothing of what becomes of a thing."""
_COMPLETE = frozenset(
    {"enable", "disable", "activate", "deactivate", "approve", "reject", "pause", "resume", "suspend", "confirm"}
    | {"close", "reopen", "archive", "start", "stop", "restart", "reboot", "block", "unblock", "mute", "unmute"}
    | {"follow", "unfollow", "lock", "unlock", "accept", "decline", "dismiss", "cancel", "restore"}
)
"""Verbs that say all of what becomes of a thing."""
_POINTING = (("id",), ("arn",), ("uuid",), ("key",), ("identifier",))
"""Last words of parameters that say which thing is meant."""


class Draft(NamedTuple):
    """The parts of a task."""

    request: str
    calls: tuple[ReferenceCall, ...]
    slots: tuple[Slot, ...]
    atoms: tuple[Atom, ...]
    state: tuple[StateChange, ...]
    hard_edges: tuple[tuple[str, str], ...]


def compose(
    sketch: Sketch, tools: Mapping[str, ToolInterface], seed: int, max_chars: int, worlds: int = WORLDS
) -> Draft:
    """Write a sketch out in the world of `seed`.

    Args:
        worlds: how many of them facts are looked at in; few are enough to see whether a sketch will do at all.

    Raises:
        RejectionError: it will not do.
    """
    choices = rng(seed, "compose")
    element, calls, givens = _calls(sketch, tools, seed, choices)
    results, state = play(calls, tools, seed, max_chars)
    sources = {join.first for join in sketch.joins}
    asked = [place for place, member in enumerate(sketch.members) if place not in sources and not member.writes]
    firsts = {place: sketch.members.index(sketch.members[place]) for place in asked}
    facts = {
        place: facts_worth(
            results[calls[place].id],
            _told(sketch, calls, results, place),
            [given for other in (place, *_before(sketch, place)) for given in givens[other]],
        )
        for place, first in firsts.items()
        if first == place or first not in asked
    }
    further = range(1, worlds) if asked else ()
    again = [play(calls, tools, derive(seed, "again", number), max_chars).results for number in further]
    atoms: list[Atom] = []
    items: list[Item] = []
    for place, (member, call) in enumerate(zip(sketch.members, calls, strict=True)):
        label = ""
        if place in asked:
            if place in facts:
                chosen = choose_facts(facts[place], [world[call.id] for world in (results, *again)], choices)
            else:
                chosen = _same_facts(items[firsts[place]].fact, results[call.id])
            label = " and ".join(fact.label for fact in chosen)
            atoms += [
                Atom(call=call.id, path=fact.path, value=value_at(results[call.id], fact.path)) for fact in chosen
            ]
        items.append(Item(member.need, givens[place], label))
    return Draft(
        request=_request(sketch, items, _sources(sketch, tools, results, element), choices),
        calls=calls,
        slots=tuple(Slot(text=member.need, tool=member.name) for member in dict.fromkeys(sketch.members)),
        atoms=tuple(atoms),
        state=state,
        hard_edges=tuple(sorted({(f"c{join.first + 1}", f"c{join.second + 1}") for join in sketch.joins})),
    )


def closure(edges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The transitive closure of edges."""
    found = set(edges)
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return tuple(sorted(found))


def _calls(
    sketch: Sketch, tools: Mapping[str, ToolInterface], seed: int, choices: random.Random
) -> tuple[int, tuple[ReferenceCall, ...], list[tuple[Given, ...]]]:
    """The element of the list that is meant, the calls, and what the request has to give for each of them."""
    element = choices.randrange(2) if len(sketch.joins) == 1 else 0
    known: dict[str, tuple[str, Any]] = {}
    linked = {place for join in sketch.joins for place in (join.first, join.second)}
    told: set[str] = set()
    calls: list[ReferenceCall] = []
    givens: list[tuple[Given, ...]] = []
    for place, member in enumerate(sketch.members):
        tool = tools[member.name]
        fed = {join.link.parameter: join for join in sketch.joins if join.second == place}
        arguments: dict[str, Any] = {}
        said: list[Given] = []
        for name in (name for name in tool.properties if name in tool.required):
            if name in fed:
                join = fed[name]
                path = join.link.field.replace("[]", f".{element or join.element}").lstrip(".")
                arguments[name] = {"$ref": f"c{join.first + 1}.{path}"}
                continue
            value, new = given(tool, name, derive(seed, "given", word_of(name, owner_of(tool, name))))
            if known.setdefault(new.word, (member.provider, new.value)) != (member.provider, new.value):
                raise RejectionError("parameters are hard to tell apart")
            said.append(new._replace(again=place in linked and new.word in told))
            told |= {new.word} if place in linked else set()
            arguments[name] = value
        if member.effect == "update" and member.need.split()[0] not in _COMPLETE and _says_nothing_new(tool):
            extra = new_value(tool, derive(seed, "new"))
            if extra is None:
                raise RejectionError("an update says nothing new")
            arguments[extra[0]] = extra[1]
            said.append(extra[2])
        calls.append(ReferenceCall(id=f"c{place + 1}", tool=member.name, arguments=arguments))
        givens.append(tuple(said))
    return element, tuple(calls), givens


def _says_nothing_new(tool: ToolInterface) -> bool:
    """Whether an update is told no more than what to update."""
    verb = words(tool.source_name.rpartition(".")[2])[:1]
    placed = all(f"{{{name}}}" in tool.path or words(name)[-1:] in _POINTING for name in tool.required)
    return placed and (tool.http_method in ("PUT", "PATCH") or not verb or verb[0] in _VAGUE)


def _same_facts(label: str, result: Any) -> list[Fact]:
    """The facts that were asked for of an earlier call of the same tool."""
    facts = [fact for fact in facts_of(result) if fact.label in label.split(" and ")]
    if " and ".join(fact.label for fact in facts) != label:
        raise RejectionError("two results of one tool hold different facts")
    return facts


def _told(sketch: Sketch, calls: Sequence[ReferenceCall], results: Mapping[str, Any], place: int) -> frozenset[str]:
    """What is known before a call is made, in lower case."""
    return frozenset(text for other in _before(sketch, place) for text in _texts(results[calls[other].id]))


def _before(sketch: Sketch, place: int) -> set[int]:
    """The places from which a way leads to this one."""
    direct = {join.first for join in sketch.joins if join.second == place}
    return direct.union(*(_before(sketch, other) for other in direct))


def _texts(value: Any) -> Iterator[str]:
    """Every scalar of a result, in lower case."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    else:
        yield str(value).casefold()


def _sources(
    sketch: Sketch, tools: Mapping[str, ToolInterface], results: Mapping[str, Any], element: int
) -> list[Source]:
    """How the request says where the value of each join comes from."""
    found = []
    for join in sketch.joins:
        tool = tools[sketch.members[join.second].name]
        word = word_of(join.link.parameter, owner_of(tool, join.link.parameter))
        result = results[f"c{join.first + 1}"]
        if "[]" not in join.link.field:
            found.append(Source(word, "single"))
        elif element:
            found.append(_named(join, word, result, element))
        elif sum(other.link == join.link for other in sketch.joins) > 1:
            found.append(Source(word, "each"))
        else:
            found.append(Source(word, "first" if join.link.kind == "list" else "entry"))
    return found


def _named(join: Join, word: str, result: Any, element: int) -> Source:
    """The thing at `element`, by a name of its own that none of the others has."""
    if join.link.kind != "list" or thing_of(word) == word:
        raise RejectionError("nothing tells the elements of a list apart")
    holder = join.link.field.partition("[]")[0].rstrip(".")
    try:
        things = value_at(result, holder) if holder else result
    except (LookupError, ValueError):
        things = []
    if not isinstance(things, list) or not all(isinstance(thing, dict) for thing in things) or element >= len(things):
        raise RejectionError("nothing tells the elements of a list apart")
    for name, value in things[element].items():
        parts = words(name)
        others = [str(thing.get(name)).casefold() for thing in things]
        plain = answerable(value) and isinstance(value, str) and len(value) <= _LONGEST_NAME
        if plain and parts[-1:] and parts[-1] in _NAMING and others.count(value.casefold()) == 1:
            if name == join.link.field.rpartition(".")[2]:
                continue
            return Source(word, "named", " ".join(parts), value)
    raise RejectionError("nothing tells the elements of a list apart")


def _request(sketch: Sketch, items: list[Item], sources: list[Source], choices: random.Random) -> str:
    """The sentences of a request, in the order of its calls."""
    joins = sketch.joins
    linked = {place for join in joins for place in (join.first, join.second)}
    if not joins:
        return phrase(items, choices)
    if len(linked) < len(items):
        near = sketch._replace(members=tuple(sketch.members[place] for place in sorted(linked)))
        aside = [
            also("aside", clause(item, choices), choices) for place, item in enumerate(items) if place not in linked
        ]
        return " ".join([_request(near, [items[place] for place in sorted(linked)], sources, choices), *aside])
    if len(joins) == 3:
        within = follow(sources[1], _need(items[1], choices), choices)
        one, other = sources[0].thing, _value_name(sources[2])
        last = same(one, other, _need(items[2], choices), choices)
        return " ".join([opening(items[0], choices), within, last, closing(items[2], choices)])
    if len({join.second for join in joins}) == 1 and len(joins) == 2:
        one, other = (_value_name(source) for source in sources)
        start = [opening(items[0], choices), also("second", clause(items[1], choices), choices)]
        return " ".join([*start, together(one, other, _need(items[2], choices), choices), closing(items[2], choices)])
    sentences = [opening(items[0], choices)]
    if len({join.first for join in joins}) == 1 and len(joins) == 2:
        if sources[0].kind == "each":
            return " ".join([*sentences, follow(sources[0], clause(items[1], choices), choices)])
        sentences.append(follow(sources[0], clause(items[1], choices), choices))
        further = items[2]
        if joins[0].link.field == joins[1].link.field:
            further = further._replace(givens=(Given(sources[0].word, "", again=True), *further.givens))
        sentences.append(also("second", clause(further, choices), choices))
        return " ".join(sentences)
    sentences += [
        follow(source, _need(items[join.second], choices), choices) for join, source in zip(joins, sources, strict=True)
    ]
    if any(earlier == later for earlier, later in pairwise(sentences)):
        raise RejectionError("two steps of a request are the same")
    return " ".join([*sentences, closing(items[-1], choices)])


def _need(item: Item, choices: random.Random) -> str:
    return clause(item._replace(fact=""), choices)


def _value_name(source: Source) -> str:
    return source.word if source.kind == "single" else f"first {source.thing}"
