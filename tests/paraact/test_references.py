"""References within a turn: where they lead, what waits for what, and how ToolEnv carries them out."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, RewardConfig
from paraagent.paraact.references import (
    DanglingReferenceError,
    Reference,
    ancestors,
    filled,
    levels,
    locate,
    look_up,
    needs,
    written,
)
from paraagent.retrieval.index import ToolIndex
from paraagent.rewards.penalties import dag_penalty
from paraagent.task import ReferenceCall, Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Call

Calls = list[tuple[str, dict[str, Any]]]
NAMES = ["list", "get", "Get", "send"]


def test_references_are_found_at_any_depth() -> None:
    arguments = {
        "a": {"$ref": "list#1.0"},
        "b": [{"c": {"$ref": "get.x"}}],
        "d": {"$ref": 3},
        "e": {"$ref": "x", "f": 1},
    }
    assert written(arguments) == {"a": "list#1.0", "b.0.c": "get.x"}
    assert filled(arguments, {"a": 7, "b.0.c": None})["b"] == [{"c": None}]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("list.items.0.id", Reference(0, "items.0.id")),
        ("LIST", Reference(0, "")),
        ("get#2.x", Reference(2, "x")),
        (" send#1.a b ", Reference(3, "a b")),
    ],
)
def test_a_reference_names_a_call_of_the_turn(text: str, reference: Reference) -> None:
    assert locate(text, NAMES) == reference


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not name#1.path"),
        ("#1.x", "is not name#1.path"),
        ("list#0.x", "is not name#1.path"),
        ("other.x", "names a tool that this turn does not call"),
        ("get.x", "calls get 2 times: say which, as in get#1.x"),
        ("get#3.x", "calls get only 2 times, not 3"),
    ],
)
def test_one_that_leads_nowhere_is_told(text: str, says: str) -> None:
    with pytest.raises(DanglingReferenceError, match=says):
        locate(text, NAMES)


def test_paths_lead_through_objects_and_lists() -> None:
    result = {"items": [{"id": 7}], "none": None}
    assert (look_up(result, "items.0.id"), look_up(result, ""), look_up(result, "none")) == (7, result, None)
    for path in ("items.1", "items.x", "items.0.id.x", "nothing"):
        with pytest.raises(DanglingReferenceError, match=f"there is no {path}"):
            look_up(result, path)


def test_what_waits_for_itself_has_no_level() -> None:
    before = needs(
        [("a", {}), ("b", {"x": "a.y"}), ("c", {"x": "b.y", "z": "a.y"}), ("d", {"x": "e.y"}), ("e", {"x": "d.y"})]
    )
    assert before == [set(), {0}, {0, 1}, {4}, {3}]
    assert levels(before) == [0, 1, 2, None, None]
    assert ancestors(before)[2] == {0, 1}


class Played:
    """One turn of calls after a search that finds their tools."""

    def __init__(
        self, catalog: Catalog, index: ToolIndex, calls: list[tuple[str, dict[str, Any]]], **config: Any
    ) -> None:
        self.env = ToolEnv(catalog, index, EnvConfig(**{"references": True, "k": 10, **config}))
        blocks = [orjson.dumps({"name": name, "arguments": given}).decode() for name, given in calls]
        names = [name for name, _ in calls]
        flow = [{"step": number, "parallel": [name]} for number, name in enumerate(names, 1)]
        edges = [{"from": [names[0]], "to": name} for name in names[1:] if name != names[0]]
        plan = {"available_tools": list(dict.fromkeys(names)), "execution_flow": flow, "dependencies": edges}
        searches = "".join(
            f"<search_tool>s: {name}</search_tool>" for name in ("place order", "cancel order", "get order")
        )
        turns = [
            f"<think>t</think>{searches}",
            f"<think>t</think><plan>{orjson.dumps(plan).decode()}</plan>"
            + "".join(f"<tool_call>{block}</tool_call>" for block in blocks),
            "<think>t</think><answer>x</answer>",
        ]

        async def play() -> None:
            self.env.reset(Task.open("Order it and cancel it.", 3), 1)
            for text in turns:
                await self.env.step(text)

        asyncio.run(play())

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.env.turns[1].calls


ORDER = ("orders_place_order", {"product_id": "p1", "quantity": 1})
BACK = {"$ref": "orders_cancel_order.x"}


def cancel(reference: str) -> tuple[str, dict[str, Any]]:
    return "orders_cancel_order", {"order_id": {"$ref": reference}, "reason": "changed_mind"}


@pytest.mark.parametrize("controller", ["advisory", "strict"])
def test_a_chain_goes_in_one_turn(tiny_catalog: Catalog, tiny_index: ToolIndex, controller: str) -> None:
    played = Played(
        tiny_catalog,
        tiny_index,
        [ORDER, cancel("orders_place_order#1.order_id")],
        controller=controller,
        latency="fixed",
        latency_seconds=0.01,
    )
    first, second = played.calls
    assert (first.ok, second.ok) == (True, True)
    assert second.arguments == {"order_id": first.result["order_id"], "reason": "changed_mind"}
    assert second.references == {"order_id": "orders_place_order#1.order_id"}
    assert (first.started, second.started, second.seconds) == (0.0, 0.01, 0.01)
    assert [call.occurrence for call in played.calls] == ["orders_place_order", "orders_cancel_order"]


def test_a_reference_counts_as_in_order(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    calls = tuple(ReferenceCall(id=name, tool=f"orders_{name}_order", arguments={}) for name in ("place", "cancel"))
    task = Task.open("x", 3).model_copy(update={"calls": calls, "hard_edges": (("place", "cancel"),)})
    linked = Played(tiny_catalog, tiny_index, [ORDER, cancel("orders_place_order.order_id")])
    guessed = Played(
        tiny_catalog, tiny_index, [ORDER, ("orders_cancel_order", {"order_id": "o", "reason": "changed_mind"})]
    )
    penalties = [dag_penalty(task, played.env.episode("p"), RewardConfig()) for played in (linked, guessed)]
    assert penalties == [0.0, 0.3]


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([ORDER, cancel("orders_place_order.nothing")], "not run: there is no nothing in its result"),
        ([ORDER, cancel("other.id")], "names a tool that this turn does not call"),
        ([("orders_place_order", {}), cancel("orders_place_order.order_id")], "refers to a call that failed"),
        ([ORDER, cancel("orders_cancel_order.order_id")], "lead in a circle"),
        (
            [
                ORDER,
                cancel("orders_get_order.order_id"),
                ("orders_get_order", {"order_id": {"$ref": "orders_cancel_order.x"}}),
            ],
            "lead in a circle",
        ),
    ],
)
def test_what_cannot_be_filled_in_is_not_run_and_hides_no_sibling(
    tiny_catalog: Catalog, tiny_index: ToolIndex, calls: Calls, says: str
) -> None:
    first, second, *_ = Played(tiny_catalog, tiny_index, calls).calls
    assert first.ok == (calls[0] == ORDER)
    assert second.error is not None
    assert second.error.type == "InvalidRequestError"
    assert says in second.error.msg
    assert second.backend == ""


def test_without_the_setting_it_is_an_argument_like_any_other(tiny_catalog: Catalog, tiny_index: ToolIndex) -> None:
    _, second = Played(tiny_catalog, tiny_index, [ORDER, cancel("orders_place_order.order_id")], references=False).calls
    assert second.error is not None
    assert "order_id" in second.error.msg
