"""Agreement of an answer with the right one: from prose to every value."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from paraagent.toolenv.simulator import Response
from paraagent.trace import ErrorInfo
from paraagent.training.agreement import Verdict, judge, summarise_agreement
from paraagent.training.pairs import Pair
from tests.toolenv.interfaces import tool

NUMBER, TEXT = {"type": "number"}, {"type": "string"}
RETURNS = {
    "type": "object",
    "properties": {"total": NUMBER, "open": {"type": ["boolean", "number"]}, "tags": {"type": "array", "items": TEXT}},
    "required": ["total"],
}
FOUND = Pair(tool(returns=RETURNS), {}, Response(None, {"total": 5, "open": True, "tags": ["a", "b"]}, "grounded"))
GONE = Pair(FOUND.tool, {}, Response(ErrorInfo(type="NotFoundError", msg="there is no cart 7"), None, "grounded"))


def success(**response: Any) -> str:
    return orjson.dumps({"error": None, "response": response}).decode()


def refusal(kind: str) -> str:
    return orjson.dumps({"error": {"type": kind, "msg": "no"}}).decode()


@pytest.mark.parametrize(
    ("pair", "text", "verdict"),
    [
        (FOUND, FOUND.answer, Verdict(True, True, True, 1.0, 1.0)),
        (FOUND, f"Here it is:\n```json\n{FOUND.answer}\n```", Verdict(True, True, True, 1.0, 1.0)),
        (FOUND, success(total=5.0, open=1, tags=["a"]), Verdict(True, True, True, 0.75, 0.5)),
        (FOUND, success(total=4, more="x"), Verdict(True, True, True, 0.25, 0.0)),
        (FOUND, success(total="five"), Verdict(True, False, False, 0.0, 0.0)),
        (FOUND, success(), Verdict(True, False, False, 0.0, 0.0)),
        (FOUND, '{"total": 5}', Verdict(False, False, False, 0.0, 0.0)),
        (FOUND, "It is 5.", Verdict(False, False, False, 0.0, 0.0)),
        (FOUND, "", Verdict(False, False, False, 0.0, 0.0)),
        (FOUND, refusal("NotFoundError"), Verdict(True, True, False, 0.0, 0.0)),
        (GONE, GONE.answer, Verdict(True, True, True, None, None)),
        (GONE, refusal("NotFoundError"), Verdict(True, True, True, None, None)),
        (GONE, refusal("PermissionError"), Verdict(True, True, False, None, None)),
        (GONE, refusal("KeyError"), Verdict(False, False, False, None, None)),
        (GONE, success(total=5), Verdict(True, True, False, None, None)),
    ],
)
def test_an_answer_agrees_as_far_as_it_is_the_same(pair: Pair, text: str, verdict: Verdict) -> None:
    assert judge(pair, text) == verdict


def test_means_leave_out_what_errors_do_not_have() -> None:
    pairs = [FOUND, FOUND, GONE, GONE]
    texts = [FOUND.answer, "prose", GONE.answer, FOUND.answer]
    assert summarise_agreement(pairs, list(map(judge, pairs, texts))) == {
        "envelope": 0.75,
        "valid": 0.75,
        "outcome": 0.5,
        "fields": 0.5,
        "values": 0.5,
        "outcomes": {"NotFoundError": 0.5, "success": 0.5},
    }
    assert summarise_agreement([], [])["outcome"] is None
