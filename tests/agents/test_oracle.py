"""The oracle's words: short, distinct, and taken from the request."""

from __future__ import annotations

import asyncio

import pytest

from paraagent.agents.oracle import OraclePolicy, fact_label, slot_labels
from paraagent.agents.policy import Conversation
from paraagent.paraact.observation import error_block, response_block
from paraagent.paraact.plan import ExecutionPlan, SearchPlan, parse_plan
from paraagent.paraact.prompt import SYSTEM_PROMPT
from paraagent.paraact.protocol import ParsedTurn, parse
from paraagent.task import Atom, Slot, Task
from paraagent.trace import ErrorInfo
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
    gone = error_block("list", ErrorInfo(type="NotFoundError", msg="no such list"))
    texts = [said(PAIR, "", observation).blocks[0] for observation in (f"{sent}\n{due}", f"{sent}\n{gone}", gone)]
    assert [text.text for text in texts] == [  # type: ignore[union-attr]
        "The status is lost. The due date is 7.5.",
        "The status is lost.",
        "The results do not say it.",
    ]


def test_the_prompt_names_every_tag_of_the_grammar() -> None:
    for tag in ("think", "plan", "search_tool", "tool_call", "answer"):
        assert f"<{tag}>" in SYSTEM_PROMPT
