"""Requests in a language model's words, taken only where nothing is lost, nothing added and no tool given away.

A task whose new request is not taken keeps its own. What must stay is read off the request itself: whatever no sentence
of `phrases.toml` brings along, the words of its needs and facts, and those that say which thing of a list is meant.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from paraagent.chat import LlmError
from paraagent.llm import LlmClient
from paraagent.message import Message
from paraagent.progress import Progress
from paraagent.seeds import rng
from paraagent.task import Task
from paraagent.tasks.phrasing import PHRASES
from paraagent.tasks.rejection import RejectionError
from paraagent.tasks.verify import READING, check_request
from paraagent.toolenv.identifiers import folded, singular, words

_SCHEMA = {
    "type": "object",
    "properties": {"request": {"type": "string", "minLength": 8, "maxLength": 1_200}},
    "required": ["request"],
    "additionalProperties": False,
}
_SYSTEM = (
    "You put requests to an assistant into other words. Write what one person would write, in plain English: the same"
    " wishes, in the same order, with every name, number and value letter for letter. Leave nothing out and add"
    " nothing: no facts, no values, no numbering, and no talk of tools, interfaces or parameters. Do not answer it."
)
_VOICES = (
    "a short message to a colleague",
    "a polite e-mail in one paragraph",
    "somebody in a hurry",
    "somebody who explains in half a sentence why they ask",
    "somebody speaking to a voice assistant",
    "a matter-of-fact note",
    "a friendly chat message",
    "somebody who states the facts first and then says what they want",
)
_TRIES = 2
"""Requests that are asked for; the second one with what is wrong with the first."""
_UNUSABLE = "no usable answer"
_SELECTING = frozenset({"first", "second", "each", "both", "two"})
"""Which things of a result are meant, where one call needs another."""
_INTERFACE = frozenset({"api", "tool", "endpoint", "function", "parameter", "argument", "json", "schema", "call"})
"""Words of those who build tools, not of those who want something done."""
_LITTLE = frozenset(
    re.findall(
        r"\w+",
        "a an the this that these those of in on at to for from with by and or as is are was be it its i me "
        "my we our you your their his her them they do does not no all any one there here what which who "
        "whose whichever how when then ",
    )
)
_WORD = re.compile(r"\w(?:[\w.@/:-]*\w)?")
_CODE = re.compile(r"\w*[a-z\d]_[a-z\d]\w*|\b[a-z]+[A-Z]\w*|/\w+/")
"""snake_case, camelCase and paths."""


class Attempt(NamedTuple):
    """What became of one task's request."""

    task: str
    drafted: str
    """The request as the generator wrote it."""
    said: str
    """The last one that the model gave; empty where it gave none."""
    problem: str
    """Why that is not taken; empty where it is."""


def rewrite(
    tasks: Sequence[Task], client: LlmClient, seed: int, progress: Progress
) -> tuple[list[Task], list[Attempt]]:
    """Ask a model to put every request into other words. Gives the tasks in their order, and what became of each.

    Raises:
        LlmError: nobody answers there, or the endpoint takes no such questions.
    """
    progress.start(len(tasks), "requests")
    attempts, unusable = asyncio.run(_all(tasks, client, seed, progress))
    taken = {task.request for task in tasks}
    for place, attempt in enumerate(attempts):
        if not attempt.problem and attempt.said in taken:
            attempts[place] = attempt._replace(problem="request is asked already")
        taken.add(attempt.said)
    changed = [
        task if attempt.problem else task.model_copy(update={"request": attempt.said})
        for task, attempt in zip(tasks, attempts, strict=True)
    ]
    progress.message(_summary(attempts, unusable))
    return changed, attempts


def outcomes(attempts: Sequence[Attempt]) -> dict[str, int]:
    """How many were taken, and how many were not, by reason."""
    counts = Counter(attempt.problem for attempt in attempts)
    return {"taken": counts.pop("", 0), **dict(sorted(counts.items()))}


def check_rewritten(task: Task, said: str) -> None:
    """A new request for a task says all that its own says, and no more.

    Raises:
        RejectionError: it does not; the reason is one of a few, so that it can be counted.
    """
    check_request(task.model_copy(update={"request": said}))
    new, old = set(_stems(said)), set(_stems(task.request))
    if _kept(task) - new:
        raise RejectionError("request loses what was asked for")
    if any(any(map(str.isdigit, word)) for word in new - old - set(_given(task))):
        raise RejectionError("request says a value that was not given")
    if _INTERFACE & new - old or _code(said) - _code(task.request) or _named(task, said):
        raise RejectionError("request gives a tool away")


def _summary(attempts: Sequence[Attempt], unusable: Sequence[LlmError]) -> str:
    """How many requests were rewritten, and why most of the others were not."""
    counts = Counter(attempt.problem for attempt in attempts)
    taken = f"{counts.pop('', 0)} of {len(attempts)} requests were rewritten"
    if not counts:
        return taken
    [(problem, count)] = counts.most_common(1)
    example = f", for example: {unusable[0]}" if problem == _UNUSABLE and unusable else ""
    return f"{taken}; the others stay as they were, most often because: {problem} ({count}){example}"


async def _all(
    tasks: Sequence[Task], client: LlmClient, seed: int, progress: Progress
) -> tuple[list[Attempt], list[LlmError]]:
    """What became of each, and the answers that were none.

    After an error that ends the stage nobody begins a new question, and those under way come to their end: a question
    that is cancelled while it connects leaves a coroutine behind that nothing has awaited.
    """
    attempts: dict[str, Attempt] = {}
    unusable: list[LlmError] = []
    fatal: list[LlmError] = []
    owed = iter(tasks)

    async def work() -> None:
        for task in owed:
            try:
                attempts[task.task_id] = await _attempt(task, client, rng(seed, "voice", task.task_id), unusable)
            except LlmError as error:
                fatal.append(error)
            if fatal:
                return
            progress.advance()

    await asyncio.gather(*(work() for _ in range(client.config.concurrency)))
    if fatal:
        raise fatal[0]
    return [attempts[task.task_id] for task in tasks], unusable


async def _attempt(task: Task, client: LlmClient, choices: random.Random, unusable: list[LlmError]) -> Attempt:
    said, problem = "", ""
    asked = _question(task, choices.choice(_VOICES))
    for _ in range(_TRIES):
        try:
            answer = await client.ask_json(asked, _SCHEMA)
        except LlmError as error:
            if error.fault != "unusable":
                raise
            unusable.append(error)
            return Attempt(task.task_id, task.request, said, problem or _UNUSABLE)
        said = " ".join(answer["request"].split())
        try:
            check_rewritten(task, said)
        except RejectionError as rejection:
            problem = str(rejection)
            lost = ", ".join(sorted(_kept(task) - set(_stems(said))))
            told = f"{problem}{f': {lost}' if lost else ''}"
            asked = [
                *asked,
                {"role": "assistant", "content": said},
                {"role": "user", "content": f"That is not right ({told}). Write it again, and keep what it lacks."},
            ]
        else:
            return Attempt(task.task_id, task.request, said, "")
    return Attempt(task.task_id, task.request, said, problem)


def _question(task: Task, voice: str) -> list[Message]:
    wanted = f"Write this request as {voice} would read.\n\nRequest: {task.request}"
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": wanted}]


def _kept(task: Task) -> set[str]:
    """The words, as stems, that every wording of a request must hold; values aside, whose form may differ."""
    request = task.request
    for value in sorted(map(str, _values(task)), key=len, reverse=True):
        request = re.sub(re.escape(value), " ", request, flags=re.IGNORECASE)
    needs = {stem for slot in task.slots for stem in _stems(slot.text)}
    facts = {singular(word) for atom in task.atoms for word in words(atom.path.rpartition(".")[2])}
    return {
        stem
        for stem in _stems(request)
        if stem not in _LITTLE
        and stem not in _LOOKING
        and (stem not in _TEMPLATE or stem in needs or stem in facts or (task.hard_edges and stem in _SELECTING))
    }


def _stems(text: str) -> Iterator[str]:
    return (singular(word) for word in _WORD.findall(text.casefold()))


def _values(task: Task) -> Iterator[Any]:
    """What the request gives for arguments."""
    for call in task.calls:
        yield from (value for name, value in call.arguments.items() if name not in call.references)


def _given(task: Task) -> Iterator[str]:
    """Words that may be another form of a value: those of a date, say."""
    for value in _values(task):
        if isinstance(value, str):
            yield from (part.lstrip("0") for part in re.split(r"\D+", value))
            yield from re.split(r"\D+", value)


def _code(text: str) -> set[str]:
    return set(_CODE.findall(text))


def _named(task: Task, said: str) -> bool:
    """Whether a request names a tool that would do, in any spelling, where the one before did not."""
    tools = {*task.targets, *(name for slot in task.slots for name in slot.equivalents)}
    new, old = folded(said), folded(task.request)
    return any(folded(tool) in new and folded(tool) not in old for tool in tools)


def _sentences(phrases: Any) -> Iterator[str]:
    if isinstance(phrases, dict):
        for part in phrases.values():
            yield from _sentences(part)
    else:
        yield from phrases


_TEMPLATE = frozenset(stem for sentence in _sentences(PHRASES) for stem in _stems(re.sub(r"\{\w*\}", " ", sentence)))
"""What the generator's own sentences are made of, as stems."""
_LOOKING = READING | {"look", "pull", "check", "bring", "up", "have"}
"""Ways to say that somebody wants to see something: one is as good as another."""
