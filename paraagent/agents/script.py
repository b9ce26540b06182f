"""The team without a language model: every role follows the task's reference, with seeded imperfections.

Some episodes carry one slip, which the same episode then mends: a search too vague, a slot forgotten, a wrong tool
among the hits, a required argument left out, a plan that ends too early. An answer may also lack a fact until the
Critic asks for it. Task and seed decide everything; the wording comes from `thoughts.toml`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from paraagent.agents.policy import Conversation
from paraagent.agents.reference import facts, listed, plan_of, read, said, slot_labels, tool_labels, went_well
from paraagent.agents.team import Done, Question
from paraagent.agents.wording import FirstChoice, word
from paraagent.paraact.executor import RETRYABLE
from paraagent.paraact.lifecycle import enter, plan_rule
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import AnswerBlock, CallBlock, SearchBlock, call_identity, fold
from paraagent.seeds import derive, rng
from paraagent.task import ReferenceCall, Task

Slip = Literal["vague", "forgotten", "wrong tool", "left out", "short plan"]
"""What a team may do wrong: in a search, in splitting, in choosing, in a call, in planning."""
_TRIES = 4
"""How often a call is sent in the face of faults that may pass."""
_SEARCHES = 3
"""Searches for one slot before it is given up."""
_CRITICISED = 0.1
"""Share of the episodes whose first answer lacks a fact."""
_COUNTS = {2: "Two", 3: "Three", 4: "Four"}


class ScriptedTeam:
    """Plays all roles from the reference."""

    def __init__(self, imperfect: float = 0.0, plain: bool = False) -> None:
        """`imperfect` is the share of episodes with a slip, among those where one is possible; `plain` words all
        thoughts of a kind alike."""
        self._imperfect, self._plain = imperfect, plain

    async def ask(self, question: Question) -> dict[str, Any]:
        """JSON of the question's schema."""
        play = _Play(question, self._slip(question.conversation), self._plain)
        said: dict[str, Any] = getattr(play, question.asked)()
        return said

    def _slip(self, conversation: Conversation) -> Slip | None:
        """The slip of an episode; each that is possible is as likely."""
        choices = rng(conversation.seed, "slip", conversation.task.task_id)
        if choices.random() >= self._imperfect:
            return None
        possible = _possible(conversation.task)
        return choices.choice(possible) if possible else None


def _possible(task: Task) -> list[Slip]:
    if not task.calls:
        return ["vague"] if task.slots else []
    found: dict[Slip, bool] = {
        "vague": True,
        "forgotten": len(slot_labels(task)) > 1,
        "wrong tool": any(task.distractors),
        "left out": any(set(call.arguments) - set(call.references) for call in task.calls),
        "short plan": len(task.layers) > 1,
    }
    return [slip for slip in get_args(Slip) if found[slip]]


class _Wanted(NamedTuple):
    """A call of the reference that is ready: where it goes, with what, and what came of earlier tries."""

    call: ReferenceCall
    tool: str
    arguments: dict[str, Any]
    tries: list[Done]


@dataclass(frozen=True)
class _State:
    """How far the reference has been carried out."""

    results: dict[str, Any]
    """Response by id of each call that succeeded."""
    ready: list[_Wanted]
    stuck: bool
    """A call failed for good, or a result lacks what another call needs."""


class _Play:
    """One question and its answer."""

    def __init__(self, question: Question, slip: Slip | None, plain: bool) -> None:
        self.question, self.slip, self.plain = question, slip, plain
        self.task, self.table = question.conversation.task, question.table
        self.labels = slot_labels(self.task)

    # Planner

    def split(self) -> dict[str, Any]:
        if self.task.shape == "no-tool":
            return {"needs": [], "answer": " ".join(said(atom.value) for atom in self.task.atoms)}
        needs = [{"slot": label, "need": text} for text, label in self.labels.items()]
        if self.slip == "forgotten":
            del needs[self._choices("forgotten", turn=0).randrange(len(needs))]
        return {"needs": needs}

    def plan(self) -> dict[str, Any]:
        state = self._state()
        layers = self.task.layers
        if self.question.rule != "optional":  # what was done is behind: a revision keeps it, a new plan does not
            layers = [[call for call in layer if call.id not in state.results] for layer in layers]
        layers = [layer for layer in layers if layer]
        if self._first_plan and self.slip == "short plan":
            layers = layers[:1]
        made = plan_of(layers, self.task.hard_edges, lambda call: self._tool(call))
        return {
            "steps": [step["parallel"] for step in made["execution_flow"]],
            "dependencies": made["dependencies"],
        }

    # Explorer

    def explore(self) -> dict[str, Any]:
        fits, searches, slip = [], [], ""
        forgotten = [label for label in self.labels.values() if label not in (self.table.needs or {})]
        first = not self.table.queries
        for slot in self.table.unsettled:
            choices = self._choices(f"search {slot}")
            tool = self._chosen(slot)
            queries = self.table.queries.get(slot, ())
            if tool and not self._must_search:
                fits.append({"slot": slot, "tool": tool})
            elif len(queries) >= (_SEARCHES if self._target(slot) else self._patience):
                fits.append({"slot": slot, "tool": ""})
            else:
                query = self._query(slot, queries, choices)
                slip = "vague" if not queries and query != self._need(slot) else slip
                searches.append({"slot": slot, "query": query})
        if not first:
            searches += [{"slot": slot, "query": self._need(slot)} for slot in forgotten]
        elif forgotten:
            slip = "forgotten"
        if searches and fits and not first:
            fits = [each for each in fits if each["tool"]]
        return {"fits": fits, "searches": searches, "slip": slip, "widen": bool(forgotten) and not first}

    # Executor

    def act(self) -> dict[str, Any]:
        state = self._state()
        wrong = self._wrong_slot
        if wrong and self.table.fits.get(wrong) == self._distractor(wrong) and self._tried(self._distractor(wrong)):
            return {"missing": [wrong]}
        if self.task.calls and state.ready and not state.stuck:
            return self._calls(state.ready)
        return self._answer(state)

    def _calls(self, ready: Sequence[_Wanted]) -> dict[str, Any]:
        calls, slip = [], ""
        for each in ready:
            arguments = each.arguments
            if not slip and (left := self._left_out(each)):
                arguments, slip = {name: value for name, value in arguments.items() if name != left}, "left out"
            if each.tool != each.call.tool and each.tool == self._distractor(self._slot(each.call)):
                slip = "wrong tool"
            calls.append({"name": each.tool, "arguments": arguments})
        if self._first_plan and self.slip == "short plan":
            slip = "short plan"
        return {"calls": calls, "slip": slip}

    def _answer(self, state: _State) -> dict[str, Any]:
        if self.task.shape == "unsolvable" or not any(self.table.fits.values()):
            return {"answer": NO_TOOL_ANSWER}
        known = facts(self.task, state.results)
        if not self.task.atoms and all(went_well(state.results.get(change.call)) for change in self.task.state):
            return {"answer": "Done."}
        hasty = rng(self.question.conversation.seed, "hasty").random() < _CRITICISED
        if hasty and not self.question.objection and len(known) > 1:
            known = known[:-1]
        text = " ".join(f"The {label} is {value}." for label, value in known)
        return {"answer": text or "The results do not say it."}

    # Critic and Writer

    def check(self) -> dict[str, Any]:
        assert self.question.draft is not None
        choices = self._choices("check")
        [first, *_] = self.question.draft.blocks
        if isinstance(first, AnswerBlock) and self.task.calls:
            for label, value in facts(self.task, self._state().results):
                if f"The {label} is {value}." not in first.text:
                    return {"accept": False, "reason": word("refusal_missing", choices, fact=f"the {label}")}
        return {"accept": True, "reason": word("accepted", choices)}

    def think(self) -> dict[str, Any]:
        assert self.question.draft is not None
        blocks, choices = self.question.draft.blocks, FirstChoice() if self.plain else self._choices("think")
        searches = [block for block in blocks if isinstance(block, SearchBlock)]
        calls = [block for block in blocks if isinstance(block, CallBlock)]
        if searches:
            return {"think": self._think_search(searches, choices)}
        if calls:
            return {"think": self._think_calls(calls, choices)}
        return {"think": self._think_answer(choices)}

    def _think_search(self, searches: Sequence[SearchBlock], choices: random.Random) -> str:
        needs = listed([block.slot for block in searches])
        wrong = self._wrong_slot
        if wrong and self._tried(self._distractor(wrong)):
            return word("other_search", choices, wrong=self._distractor(wrong), needs=needs)
        again = [block for block in searches if self.table.queries.get(block.slot)]
        if again:
            return word("search_again", choices, needs=listed([block.slot for block in again]))
        if self.table.queries:
            return word("search_forgotten", choices, needs=needs)
        if len(searches) == 1:
            return word("search_one", choices, needs=needs)
        return word("search_many", choices, needs=needs, count=_COUNTS.get(len(searches), "Several"))

    def _think_calls(self, calls: Sequence[CallBlock], choices: random.Random) -> str:
        if parts := [*self._think_mended(calls, choices)]:
            return " ".join(parts)
        needs = listed(list(dict.fromkeys(self._label_of(block.name) for block in calls)))
        if not self.table.done:
            pairs = listed([f"{name} for {self._label_of(name)}" for name in dict.fromkeys(b.name for b in calls)])
            return word("call_first", choices, pairs=pairs)
        values = self._carried(calls)
        if self.question.draft and self.question.draft.plan and self.slip == "short plan":
            return word("replan", choices, needs=needs)
        return (
            word("call_next", choices, values=listed(values), needs=needs)
            if values
            else word("call_then", choices, needs=needs)
        )

    def _think_mended(self, calls: Sequence[CallBlock], choices: random.Random) -> Iterator[str]:
        """A sentence for each kind of failure that these calls mend."""
        wrong = self._wrong_slot
        if wrong and self._tried(self._distractor(wrong)) and not self._tried(self._target(wrong)):
            yield word("other_tool", choices, wrong=self._distractor(wrong), tools=self._target(wrong))
        failed = [done for done in self.table.done if done.error and self._answers(done, calls)]
        passing = {done.name: done.error for done in failed if done.error in RETRYABLE}
        if passing:
            errors = list(dict.fromkeys(passing.values()))
            yield word("retry", choices, tools=listed([*passing]), errors=listed(errors))
        for done in [done for done in failed if done.name not in passing][-1:]:
            again = next(block for block in calls if self._answers(done, [block]))
            left = next((name for name in again.arguments if name not in done.arguments), "an argument")
            yield word("repair", choices, tools=done.name, left=left)

    def _think_answer(self, choices: random.Random) -> str:
        if not self.task.calls:
            return word("known" if self.task.shape == "no-tool" else "none_fits", choices)
        known = facts(self.task, self._state().results)
        if known:
            return word("answer", choices, facts=listed([f"the {label}" for label, _ in known]))
        return word("missing" if self.task.atoms else "changed", choices)

    # What is known of the reference

    def _choices(self, purpose: str, turn: int | None = None) -> random.Random:
        number = self.table.turns if turn is None else turn
        return rng(derive(self.question.conversation.seed, "team", number), purpose)

    @property
    def _first_plan(self) -> bool:
        return not self.table.done

    @property
    def _must_search(self) -> bool:
        """The plan is neither done nor may it be changed, so that a new tool is only called after a new search."""
        conversation = self.question.conversation
        rule = plan_rule(enter(conversation.phase(), "call"))
        return bool(self.table.done) and conversation.phase().family == "call" and rule == "forbidden"

    @property
    def _patience(self) -> int:
        """Searches for a need that no tool serves."""
        return 1 + (rng(self.question.conversation.seed, "patience").random() < 0.5)

    def _need(self, slot: str) -> str:
        return next((text for text, label in self.labels.items() if label == slot), slot)

    def _target(self, slot: str) -> str:
        """The tool that serves a slot: the reference's own, or the version of it that a search has returned."""
        hits = {fold(name): name for name in self.table.hits.get(slot, ())}
        for own in self.task.slots:
            if self.labels[own.text] == slot and own.tool:
                return next((hits[fold(name)] for name in (own.tool, *own.equivalents) if fold(name) in hits), own.tool)
        return ""

    def _chosen(self, slot: str) -> str:
        """The tool of a slot among its hits; empty where none of them serves it."""
        if slot == self._wrong_slot and not self._tried(self._distractor(slot)):
            return self._distractor(slot)
        target = self._target(slot)
        return target if fold(target) in {fold(name) for name in self.table.hits.get(slot, ())} else ""

    @property
    def _wrong_slot(self) -> str:
        """The slot whose first tool is the wrong one; empty where there is none in this episode."""
        if self.slip != "wrong tool":
            return ""
        return next((slot for slot in self.labels.values() if self._distractor(slot)), "")

    def _distractor(self, slot: str) -> str:
        """A hit of the slot that looks right and only reads."""
        names = self.table.hits.get(slot, ())
        for own, other in zip(self.task.slots, self.task.distractors, strict=False):
            if self.labels[own.text] == slot and other and fold(other) in {fold(name) for name in names}:
                tool = self.question.conversation.found().get(other)
                if tool is not None and tool.effect == "read" and other not in self.task.targets:
                    return other
        return ""

    def _tried(self, tool: str) -> bool:
        return bool(tool) and any(fold(done.name) == fold(tool) for done in self.table.done)

    def _slot(self, call: ReferenceCall) -> str:
        return tool_labels(self.task).get(call.tool, "")

    def _tool(self, call: ReferenceCall) -> str:
        """Which tool a call goes to."""
        return self.table.fits.get(self._slot(call)) or call.tool

    def _label_of(self, tool: str) -> str:
        return next((slot for slot, name in self.table.fits.items() if fold(name) == fold(tool)), tool)

    def _query(self, slot: str, queries: Sequence[str], choices: random.Random) -> str:
        need = self._need(slot)
        if not queries and self.slip == "vague" and slot == self._vague_slot:
            telling = [part for part in slot.split() if part.isalpha()] or ["information"]
            return word("vague", choices, word=choices.choice(telling))
        if need not in queries:
            return need
        for _ in range(8):
            query = word("reworded", choices, need=need, label=slot)
            if query not in queries:
                return query
        return f"{need} tool"

    @property
    def _vague_slot(self) -> str:
        return rng(self.question.conversation.seed, "vague slot").choice(list(self.labels.values()))

    def _left_out(self, each: _Wanted) -> str:
        """The required argument that a first call lacks; empty where it lacks none."""
        if self.slip != "left out" or any(done.error for done in self.table.done) or self._left_before():
            return ""
        tool = self.question.conversation.found().get(each.tool)
        literal = set(each.call.arguments) - set(each.call.references)
        required = [name for name in (tool.required if tool else ()) if name in literal]
        return rng(self.question.conversation.seed, "left out").choice(required) if required else ""

    def _left_before(self) -> bool:
        return any(done.error == "InvalidRequestError" for done in self.table.done)

    def _answers(self, done: Done, calls: Sequence[CallBlock]) -> bool:
        """Whether one of the calls tries again what failed."""
        return any(
            fold(done.name) == fold(call.name) and done.arguments.items() <= call.arguments.items() for call in calls
        )

    def _carried(self, calls: Sequence[CallBlock]) -> list[str]:
        """The values of earlier results that go into calls of the reference which are made now."""
        state = self._state()
        made = {call_identity(call.name, call.arguments) for call in calls}
        values = [
            said(value)
            for each in state.ready
            if call_identity(each.tool, each.arguments) in made
            for source, path in each.call.references.values()
            if (value := read(state.results.get(source), path)) is not None
        ]
        return list(dict.fromkeys(values))

    def _state(self) -> _State:
        results: dict[str, Any] = {}
        ready: list[_Wanted] = []
        stuck = False
        for call in (call for layer in self.task.layers for call in layer):
            before = [first for first, second in self.task.hard_edges if second == call.id]
            if any(first not in results for first in before):
                continue
            arguments = self._arguments(call, results)
            if arguments is None:
                stuck = True
                continue
            tries = list(self._tries(self._target(self._slot(call)) or call.tool, arguments))
            if tries and not tries[-1].error:
                results[call.id] = tries[-1].response
                continue
            stuck |= len(tries) >= _TRIES or (bool(tries) and tries[-1].error not in RETRYABLE)
            tool = self._tool(call)
            if fold(tool) == fold(self._distractor(self._slot(call)) or " "):
                arguments = self._fitted(tool, call)
            ready.append(_Wanted(call, tool, arguments, tries))
        return _State(results, ready, stuck)

    def _arguments(self, call: ReferenceCall, results: dict[str, Any]) -> dict[str, Any] | None:
        arguments = dict(call.arguments)
        for name, (source, path) in call.references.items():
            arguments[name] = read(results.get(source), path)
            if arguments[name] is None:
                return None
        return arguments

    def _tries(self, tool: str, arguments: dict[str, Any]) -> Iterator[Done]:
        identity = call_identity(tool, arguments)
        return (done for done in self.table.done if call_identity(done.name, done.arguments) == identity)

    def _fitted(self, tool: str, call: ReferenceCall) -> dict[str, Any]:
        """What the request gives of a wrong tool's parameters: those of the same name."""
        found = self.question.conversation.found().get(tool)
        literal = {name: value for name, value in call.arguments.items() if name not in call.references}
        return {name: value for name, value in literal.items() if found and name in found.properties}
