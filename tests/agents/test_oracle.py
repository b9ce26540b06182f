"""The oracle's words: short, distinct, and taken from the request."""

from __future__ import annotations

import asyncio

import pytest

from paraagent.agents.oracle import OraclePolicy
from paraagent.agents.policy import Conversation
from paraagent.agents.reference import fact_label, slot_labels
from paraagent.paraact.observation import response_block
from paraagent.paraact.plan import ExecutionPlan, SearchPlan, parse_plan
from paraagent.paraact.prompt import NO_TOOL_ANSWER, paraact_prompt
from paraagent.paraact.protocol import AnswerBlock, CallBlock, ParsedTurn, parse
from paraagent.task import Atom, ReferenceCall, Slot, Task
from tests.rewards.builders import task

PAIR = task("send", "list", atoms=["Ada", "Bob"]).model_copy(
    update={
        "request": "Tell me the status and the due date.",
        "atoms": (Atom(call="send", path="status", value="sent"), Atom(call="list", path="items.0.dueDate", value="x")),
    }
)


def said(task: Task, *observations: str, seed: int = 0) -> ParsedTurn:
    conversation = Conversation(task=task, seed=seed, messages=[{"role": "user", "content": task.request}])
    for observation in observations:
        conversation.messages += [{"role": "assistant", "content": ""}, {"role": "user", "content": observation}]
    [completion] = asyncio.run(OraclePolicy().act([conversation]))
    return parse(completion.text)


def answer(turn: ParsedTurn) -> str:
    [block] = turn.blocks
    assert isinstance(block, AnswerBlock)
    return block.text


def labels(*texts: str) -> list[str]:
    slots = tuple(Slot(text=text, tool="t") for text in texts)
    return list(slot_labels(PAIR.model_copy(update={"slots": slots})).values())


def test_labels_are_the_telling_words_of_a_need() -> None:
    assert labels("get detailed information about a storage cluster in my region") == ["detailed storage"]
    assert labels("list the orders of a customer", "list the orders of a customer") == ["orders customer"]
    assert labels("get one user", "find all user", "list it") == ["user", "user 2", "need"]


@pytest.mark.parametrize(
    ("path", "request_text", "label"),
    [
        ("status", "Tell me the status.", "status"),
        ("order.orderStatus", "Tell me the order status.", "order status"),
        ("order.orderStatus", "Tell me the status.", "status"),
        ("cluster.state", "Report the cluster state.", "cluster state"),
        ("items.0.createdAt", "Report the created time of the first item.", "created time"),
        ("items.0.dueDate", "When is it?", "due date"),
    ],
)
def test_facts_are_named_as_the_request_names_them(path: str, request_text: str, label: str) -> None:
    assert fact_label(Atom(call="c", path=path, value="x"), request_text) == label


def test_every_turn_is_well_formed_and_its_plan_valid() -> None:
    for seed in range(10):
        search, calls, answer = said(PAIR, seed=seed), said(PAIR, "", seed=seed), said(PAIR, "", "", seed=seed)
        assert not search.problems + calls.problems + answer.problems
        assert (search.family, calls.family, answer.family) == ("search", "call", "answer")
        assert isinstance(parse_plan(search.plan or "", "search"), SearchPlan)
        plan = parse_plan(calls.plan or "", "call")
        assert isinstance(plan, ExecutionPlan)
        assert plan.available_tools == ["send", "list"]
        assert len(plan.execution_flow) == 1


def test_the_answer_says_what_the_observation_says_and_no_more() -> None:
    sent = response_block("send", {"status": "lost"})
    due = response_block("list", {"items": [{"dueDate": 7.50}]})
    gone = response_block("list", {"error": {"type": "NotFoundError", "msg": "no such list"}})
    observations = (f"{sent}\n{due}", f"{sent}\n{gone}", gone)
    assert [answer(said(PAIR, "", observation)) for observation in observations] == [
        "The status is lost. The due date is 7.5.",
        "The status is lost.",
        "The results do not say it.",
    ]


def test_the_prompt_names_every_tag_of_the_grammar() -> None:
    for tag in ("think", "plan", "search_tool", "tool_call", "answer"):
        assert f"<{tag}>" in paraact_prompt(references=False)


CHAIN = task("list", "send", hard=[("list", "send")]).model_copy(
    update={
        "request": "List the orders, send the first one, and tell me the status.",
        "calls": (
            ReferenceCall(id="list", tool="list", arguments={}),
            ReferenceCall(id="send", tool="send", arguments={"orderId": {"$ref": "list.items.0.id"}, "fast": True}),
        ),
        "atoms": (Atom(call="send", path="status", value="sent"),),
    }
)


def test_a_chain_is_called_layer_by_layer_under_one_plan() -> None:
    listed = response_block("list", {"items": [{"id": "ord_7"}]})
    first, then = said(CHAIN, ""), said(CHAIN, "", listed)
    plan = parse_plan(first.plan or "", "call")
    assert isinstance(plan, ExecutionPlan)
    assert [step.parallel for step in plan.execution_flow] == [["list"], ["send"]]
    assert [(edge.sources, edge.to) for edge in plan.dependencies] == [(["list"], "send")]
    assert then.plan is None
    assert then.blocks == (CallBlock("send", {"orderId": "ord_7", "fast": True}),)
    last = said(CHAIN, "", listed, response_block("send", {"status": "sent"}))
    assert answer(last) == "The status is sent."


def test_a_chain_whose_first_result_lacks_the_value_ends_in_an_answer() -> None:
    assert said(CHAIN, "", response_block("list", {"items": []})).family == "answer"


def test_one_tool_planned_twice_has_two_occurrences() -> None:
    again = CHAIN.calls[1].model_copy(update={"id": "send2", "arguments": {"orderId": {"$ref": "list.items.1.id"}}})
    fan = CHAIN.model_copy(
        update={"calls": (*CHAIN.calls, again), "hard_edges": (("list", "send"), ("list", "send2")), "width": 3}
    )
    plan = parse_plan(said(fan, "").plan or "", "call")
    assert isinstance(plan, ExecutionPlan)
    assert plan.execution_flow[1].parallel == ["send", "send"]
    assert [edge.to for edge in plan.dependencies] == ["send#1", "send#2"]


def test_what_needs_no_tool_is_answered_at_once_and_what_has_none_is_declined() -> None:
    known = task().model_copy(update={"shape": "no-tool", "atoms": (Atom(call="", path="", value=42),)})
    none = task(atoms=[]).model_copy(update={"shape": "unsolvable", "slots": (Slot(text="water my ferns", tool=""),)})
    assert answer(said(known)) == "42"
    assert said(none).family == "search"
    assert answer(said(none, "")) == NO_TOOL_ANSWER
