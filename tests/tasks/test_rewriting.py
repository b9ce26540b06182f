"""Requests that a language model rewrites, from a real HTTP server: taken only where they say all of it and no more."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.errors import RunError
from paraagent.llm import LlmClient
from paraagent.progress import Quiet
from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.tasks.rewriting import Attempt, outcomes, rewrite
from tests.endpoint import Answer, Raw, serving

REQUEST = (
    "My note says order ID ord_77. Can you check the line items of an order? For the first line item in the list,"
    " look up a parcel. Tell me the departure city."
)
TASK = Task(
    task_id="test-1",
    request=REQUEST,
    shape="chain",
    width=2,
    reach="service",
    split="test",
    seed=1,
    slots=(
        Slot(text="list the line items of an order", tool="shop_list_line_items"),
        Slot(text="get a parcel", tool="post_get_parcel"),
    ),
    calls=(
        ReferenceCall(id="c1", tool="shop_list_line_items", arguments={"orderId": "ord_77"}),
        ReferenceCall(id="c2", tool="post_get_parcel", arguments={"itemId": {"$ref": "c1.items.0.id"}}),
    ),
    atoms=(Atom(call="c2", path="departure_city", value="Lyon"),),
    hard_edges=(("c1", "c2"),),
)
GOOD = (
    "Hi! I have order ID ORD_77 here. What line items does that order have, and from which departure city did the"
    " parcel of the first line item leave?"
)


def says(request: str) -> str:
    return orjson.dumps({"request": request}).decode()


def rewritten(*answers: Answer, tasks: tuple[Task, ...] = (TASK,)) -> tuple[list[Task], list[Attempt]]:
    with serving(*answers) as endpoint:
        return rewrite(tasks, LlmClient(endpoint.config()), 7, Quiet())


def test_a_faithful_request_takes_the_place_of_the_drafted_one() -> None:
    (task,), attempts = rewritten(says(f"  {GOOD}\n"))
    assert task == TASK.model_copy(update={"request": GOOD})
    assert attempts == [Attempt("test-1", REQUEST, GOOD, "")]
    assert outcomes(attempts) == {"taken": 1}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (GOOD.replace("ORD_77", "ORD_78"), "request lacks an argument"),
        (GOOD.replace("ORD_77", "ORD_7"), "request lacks an argument"),
        (GOOD.replace("parcel", "box"), "request loses what was asked for"),
        (GOOD.replace("departure city", "city"), "request loses what was asked for"),
        (GOOD.replace("first", "relevant"), "request loses what was asked for"),
        (GOOD + " I think it left on day 12.", "request says a value that was not given"),
        (GOOD + " It was Lyon, I believe.", "answer stands in the request"),
        (GOOD + " Use post_get_parcel.", "request names a tool"),
        (GOOD + " Use Post Get Parcel.", "request gives a tool away"),
        (GOOD + " There is an API for it.", "request gives a tool away"),
        (GOOD + " Put it into itemId.", "request gives a tool away"),
        (GOOD + " See /v1/parcels/ for it.", "request says a value that was not given"),
        (GOOD + " Please do." * 40, "request is too long"),
    ],
)
def test_what_loses_or_adds_anything_is_not_taken(said: str, problem: str) -> None:
    (task,), attempts = rewritten(says(said))
    assert task == TASK
    assert outcomes(attempts) == {"taken": 0, problem: 1}
    assert attempts[0].said == said


def test_a_second_try_is_told_what_the_first_one_lacks() -> None:
    with serving(says(GOOD.replace("parcel", "box")), says(GOOD)) as endpoint:
        (task,), _ = rewrite([TASK], LlmClient(endpoint.config()), 7, Quiet())
    assert task.request == GOOD
    assert "parcel" in endpoint.asked[1]["messages"][-1]["content"]


def test_words_of_the_generator_may_go_and_other_forms_of_a_value_count() -> None:
    call = TASK.calls[0].model_copy(update={"arguments": {"orderId": "ord_77", "since": "2026-03-04"}})
    dated = TASK.model_copy(update={"calls": (call, TASK.calls[1]), "request": f"{REQUEST} The since is 2026-03-04."})
    (task,), _ = rewritten(says(f"{GOOD} Since March 4, 2026."), tasks=(dated,))
    assert task.request.endswith("March 4, 2026.")


def test_two_tasks_never_end_with_the_same_request() -> None:
    other = TASK.model_copy(update={"task_id": "test-2", "request": REQUEST.replace("My note says", "I have")})
    tasks, attempts = rewritten(says(GOOD), tasks=(TASK, other))
    assert [task.request for task in tasks] == [GOOD, other.request]
    assert outcomes(attempts) == {"taken": 1, "request is asked already": 1}


@pytest.mark.parametrize("answer", ["Sure, I can do that.", "{", says("short"), Raw(b"<html>busy</html>")])
def test_answers_that_are_none_leave_the_request_as_it_is(answer: Answer) -> None:
    (task,), attempts = rewritten(answer)
    assert task == TASK
    assert outcomes(attempts) == {"taken": 0, "no usable answer": 1}


def test_an_endpoint_that_refuses_stops_the_stage_with_a_sentence() -> None:
    with pytest.raises(RunError, match="wants a key"):
        rewritten(Raw(b"{}", status=401))


@pytest.mark.parametrize("there", [True, False])
def test_an_endpoint_that_refuses_is_asked_no_more_and_leaves_nothing_behind(there: bool) -> None:
    tasks = [TASK.model_copy(update={"task_id": f"test-{number}"}) for number in range(60)]
    with serving(Raw(b"{}", status=401)) as endpoint, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        config = endpoint.config() if there else endpoint.config(base_url="http://127.0.0.1:9/v1")
        with pytest.raises(RunError, match="wants a key" if there else "cannot be reached"):
            rewrite(tasks, LlmClient(config), 7, Quiet())
        gc.collect()
    assert [str(warning.message) for warning in said if warning.category is RuntimeWarning] == []
    assert len(endpoint.asked) <= config.concurrency


STAY = "requests were rewritten; the others stay as they were, most often because:"


class Notes(Quiet):
    def __init__(self) -> None:
        self.said: list[str] = []

    def message(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says(GOOD), "1 of 1 requests were rewritten"),
        (
            says(GOOD.replace("parcel", "box")),
            f"0 of 1 {STAY} request loses what was asked for (1)",
        ),
        (
            Raw(b"<html>busy</html>", content_type="text/html"),
            f"0 of 1 {STAY} no usable answer (1), for example: The model tiny at {{url}} answers, but not with a chat",
        ),
    ],
)
def test_how_many_were_rewritten_is_said_at_the_end(answer: Answer, said: str) -> None:
    notes = Notes()
    with serving(answer) as endpoint:
        rewrite([TASK], LlmClient(endpoint.config()), 7, notes)
    [summary] = notes.said
    assert summary.startswith(said.format(url=endpoint.url))


def test_the_voice_of_a_request_comes_from_the_seed_alone() -> None:
    asked: list[Any] = []

    def note(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return says(GOOD)

    for _ in range(2):
        rewritten(note)
    assert asked[0] == asked[1]


def test_a_rerun_asks_nobody(tmp_path: Path) -> None:
    with serving(says(GOOD)) as endpoint:
        client = LlmClient(endpoint.config(), tmp_path)
        first, again = (rewrite([TASK], client, 7, Quiet()) for _ in range(2))
    assert first == again
    assert len(endpoint.asked) == 1
