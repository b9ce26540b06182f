"""Episodes made by hand for the trace viewer: one with everything in it, a hostile one, a large one, and many."""

from __future__ import annotations

from typing import Any

from paraagent.paraact.protocol import compact
from paraagent.task import ReferenceCall, Slot, Task
from paraagent.trace import Call, Episode, ErrorInfo, Family, Note, PlanRecord, Search, Turn

EVIL = "<script>alert(1)</script></script><img src=x onerror=alert(2)>\u2028\u202e\u0000&amp;"
FLOW: dict[str, Any] = {
    "available_tools": ["list_rooms", "get_room", "book"],
    "execution_flow": [{"step": 1, "parallel": ["list_rooms", "get_room"]}, {"step": 2, "parallel": ["book", "book"]}],
    "dependencies": [{"from": ["list_rooms"], "to": "book#1"}],
}


def turn(family: Family, events: tuple[Any, ...] = (), plan: dict[str, Any] | None = None, **more: Any) -> Turn:
    record = None if plan is None else PlanRecord(raw=compact(plan), body=plan, kind="initial")
    values = {"text": "<think>t</think>", "think": "I look.", "plan_rule": "optional", "well_formed": True}
    return Turn(family=family, events=events, plan=record, **{**values, "completion_tokens": 7, **more})


def episode(name: str, turns: tuple[Turn, ...], **more: Any) -> Episode:
    values = {
        "episode_id": f"rl/paraact/{name}/1",
        "task_id": name,
        "policy": "rl",
        "seed": 1,
        "system": "Rules",
        "request": "Book the quiet room for Tuesday.",
        "answer": "It is booked.",
        "end": "answer",
    }
    return Episode(turns=turns, **{**values, **more})


def full() -> Episode:
    """Two phases; of three calls at once one fails by chance; a planned call is never made."""
    fault = ErrorInfo(type="RateLimitError", msg="too many requests")
    first = (
        Call(name="list_rooms", arguments={"floor": 2}, occurrence="list_rooms", result=[1], started=1, seconds=3),
        Call(name="get_room", arguments={}, occurrence="get_room", error=fault, injected=True, started=1, seconds=2),
        Call(name="weather", arguments={}, result={"t": 3}, started=1, seconds=0.5, attempts=3, visible=False),
    )
    second = Call(
        name="book",
        arguments={"room": "r1"},
        references={"room": "list_rooms#1.0.id"},
        occurrence="book#1",
        result={"ok": True},
        started=5,
        seconds=1,
    )
    found = (
        Search(slot="rooms", query="list the rooms", hits=("list_rooms", "get_room")),
        Search(slot="book", query="book a room", hits=("weather",)),
    )
    return episode(
        "full",
        (
            turn("search", found, {"capacity_slots": ["rooms", "book"]}, seconds=1.0),
            turn("call", first, FLOW, started=1.0),
            turn(
                "call", (second,), started=4.0, seconds=1.0, problems=("text outside of the tags",), well_formed=False
            ),
            turn("answer", started=6.0),
        ),
        rewards={"outcome": 1.5, "step": 0.4, "trajectory": 1.9},
    )


def task() -> Task:
    """What `full` should have done."""
    calls = tuple(ReferenceCall(id=f"c{n}", tool=tool, arguments={}) for n, tool in enumerate(("list_rooms", "book")))
    return Task(
        task_id="full",
        request="Book the quiet room for Tuesday.",
        shape="chain",
        width=2,
        reach="service",
        split="test",
        seed=0,
        slots=(Slot(text="list the rooms", tool="list_rooms"), Slot(text="book a room", tool="book")),
        calls=calls,
        atoms=(),
        hard_edges=(("c0", "c1"),),
    )


def unusual() -> Episode:
    """Without times; tools given before the first turn; a plan revised; a result that the model never saw."""
    calls = (
        Call(name="list_rooms", arguments={}, occurrence="list_rooms", result=[1]),
        Call(name="get_room", arguments={}, occurrence="get_room", result={}, visible=False),
    )
    revised = {
        "available_tools": ["list_rooms", "book", "weather"],
        "execution_flow": [{"step": 1, "parallel": ["list_rooms", "weather"]}, {"step": 2, "parallel": ["book"]}],
        "dependencies": [{"from": ["list_rooms"], "to": "book"}],
    }
    then = turn("call", (Call(name="book", arguments={}, occurrence="book", result={}),), revised)
    record = PlanRecord(raw=compact(revised), body=revised, kind="revise")
    notes = (Note(role="critic", text="a fact is missing"), Note(role="writer", text="I have all."))
    return episode(
        "full",
        (turn("call", calls, FLOW), then.model_copy(update={"plan": record}), turn("answer", notes=notes)),
        paradigm="react-ete",
        opening=(Search(query="all of it", hits=("list_rooms", "weather")),),
    )


def wide() -> Episode:
    """A plan of 256 calls in two steps, each of the second needing each of the first."""
    first, second = [f"read_{n}" for n in range(128)], [f"write_{n}" for n in range(128)]
    plan = {
        "available_tools": [*first, *second],
        "execution_flow": [{"step": 1, "parallel": first}, {"step": 2, "parallel": second}],
        "dependencies": [{"from": first, "to": name} for name in second],
    }
    calls = tuple(Call(name=name, arguments={}, occurrence=name, result={}) for name in first[:16])
    return episode("wide", (turn("call", calls, plan), turn("answer")))


def hostile() -> Episode:
    """Every text tries to be markup."""
    plan = {**FLOW, "available_tools": [EVIL], "execution_flow": [{"step": 1, "parallel": [EVIL]}], "dependencies": []}
    call = Call(name=EVIL[:64], arguments={EVIL: EVIL}, error=ErrorInfo(type="ToolExecutionError", msg=EVIL))
    return episode(
        "hostile",
        (
            turn("search", (Search(slot=EVIL, query=EVIL, hits=(EVIL,)),), think=EVIL, text=EVIL, observation=EVIL),
            turn("call", (call, Call(name="x", arguments={}, result={EVIL: [EVIL]})), plan, problems=(EVIL,)),
            turn("answer"),
        ),
        request=EVIL,
        system=EVIL,
        answer=EVIL,
        error=EVIL,
        policy=EVIL,
        task_id=EVIL,
        episode_id=EVIL,
    )


def large() -> Episode:
    """Fifteen turns, some 300 KB."""
    text = "word " * 800
    calls = tuple(Call(name=f"tool_{n}", arguments={"n": n}, result={"text": text}, seconds=1.0) for n in range(4))
    turns = tuple(turn("call", calls, observation=text, started=float(n)) for n in range(15))
    return episode("large", turns)


def many(n: int) -> list[Episode]:
    """Of every four one is solved; every tenth called `rare_tool`."""
    found = []
    for number in range(n):
        name = "rare_tool" if number % 10 == 0 else "usual_tool"
        call = Call(name=name, arguments={"number": number}, result={"text": f"{number} " * 400}, seconds=number / 100)
        outcome = 1.5 if number % 4 == 0 else -0.5
        found.append(
            episode(
                f"task-{number:05d}",
                (turn("search", (Search(query="q", hits=(name,)),)), turn("call", (call,)), turn("answer")),
                request=f"Request number {number}",
                policy=("rl", "sft")[number % 2],
                rewards={"outcome": outcome},
            )
        )
    return found
