"""Each row of the turn grammar and of the plan lifecycle (method.md 2 and 3), played through ToolEnv and pinned.

A file holds the words of its row, what is set, the assistant turns and what each of them gets and leaves behind.
`UPDATE_GOLDEN=1 pytest tests/paraact/test_golden.py` writes the last anew; read every change against the row.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.paraact.paradigm import PARADIGMS
from paraagent.retrieval.index import ToolIndex
from paraagent.task import ReferenceCall, Slot, Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Call, Search, Turn

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))
TASK = Task(
    task_id="golden",
    request="How many tickets are there of low priority, and what came of order ord_1?",
    shape="parallel",
    width=2,
    reach="providers",
    split="test",
    seed=3,
    slots=(Slot(text="count tickets", tool="tickets_CountTickets"), Slot(text="cancel", tool="orders_cancel_order")),
    calls=(
        ReferenceCall(id="c1", tool="tickets_CountTickets", arguments={"priority": "low"}),
        ReferenceCall(id="c2", tool="orders_cancel_order", arguments={"order_id": "ord_1", "reason": "late"}),
    ),
    atoms=(),
)


def play(case: dict[str, Any], catalog: Catalog, index: ToolIndex) -> list[dict[str, Any]]:
    """What each turn of a file gets, by the environment that trains and evaluates."""
    config = EnvConfig(**{"k": 1, **case["config"]})
    env = ToolEnv(catalog, index, config, paradigm=PARADIGMS[case.get("paradigm", "paraact")])
    env.reset(TASK, seed=5)
    done = [asyncio.run(env.step(text)).done for text in case["turns"]]
    return [shown(turn, end) for turn, end in zip(env.turns, done, strict=True)]


def shown(turn: Turn, done: bool) -> dict[str, Any]:
    """A turn without what says nothing."""
    record = turn.plan
    plan = None if record is None else {"kind": record.kind} | ({"problem": record.problem} if record.problem else {})
    return {
        "family": turn.family,
        "plan_rule": turn.plan_rule,
        "plan": plan,
        "plan_rule_kept": turn.plan_rule_kept,
        "well_formed": turn.well_formed,
        "problems": list(turn.problems),
        "events": [_event(event) for event in turn.events],
        "observation": turn.observation.split("\n"),
        "done": done,
    }


def _event(event: Search | Call) -> dict[str, Any]:
    if isinstance(event, Search):
        return {"search": event.query, "slot": event.slot, "hits": list(event.hits), "visible": event.visible}
    return {
        "call": event.name,
        "arguments": event.arguments,
        "occurrence": event.occurrence,
        "error": event.error.type if event.error else None,
        "injected": event.injected,
        "backend": event.backend,
        "visible": event.visible,
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_row_holds_to_the_byte(name: str, tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    path = GOLDEN / f"{name}.json"
    case = json.loads(path.read_bytes())
    played = play(case, tiny_catalog, tiny_index)
    if os.environ.get("UPDATE_GOLDEN"):
        case["expected"] = played
        path.write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n")
    assert played == case["expected"]


def test_every_situation_and_every_kind_of_plan_has_a_row() -> None:
    turns = [turn for name in NAMES for turn in json.loads((GOLDEN / f"{name}.json").read_bytes())["expected"]]
    assert {turn["family"] for turn in turns} == {"search", "call", "answer", "mixed", "invalid"}
    assert {turn["plan_rule"] for turn in turns} == {"required", "optional", "forbidden"}
    kinds = {turn["plan"]["kind"] for turn in turns if turn["plan"]}
    assert kinds == {"initial", "revise", "restart", "redundant", "over_budget", "invalid", "unsupported"}
