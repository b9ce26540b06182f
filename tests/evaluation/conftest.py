"""One small task and the pieces to write episodes about it."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.trace import Call, Episode, ErrorInfo, Event, Family, Search, Turn


class Script:
    """Writes episodes on a task with two targets, `getUser` and `getOrder`."""

    task = Task(
        task_id="t1",
        request="Who is user u1, and what does order o1 cost?",
        shape="parallel",
        width=2,
        reach="service",
        split="test",
        seed=5,
        slots=(Slot(text="look up a user", tool="getUser"), Slot(text="look up an order", tool="getOrder")),
        calls=(
            ReferenceCall(id="c1", tool="getUser", arguments={"id": "u1"}),
            ReferenceCall(id="c2", tool="getOrder", arguments={"id": "o1"}),
        ),
        atoms=(Atom(call="c1", path="name", value="Ada"), Atom(call="c2", path="price", value=12)),
    )

    def search(self, *hits: str, visible: bool = True) -> Search:
        return Search(query="what is needed", hits=hits, visible=visible)

    def call(self, name: str, *, ok: bool = True, **arguments: Any) -> Call:
        error = None if ok else ErrorInfo(type="InvalidRequestError", msg="id: missing")
        return Call(
            name=name, arguments=arguments, error=error, result={"id": "u1"} if ok else None, backend="grounded"
        )

    def turn(self, family: Family, *events: Event, tokens: int = 10) -> Turn:
        return Turn(
            text="<think>…</think>",
            family=family,
            think="…",
            plan=None,
            plan_rule="optional",
            well_formed=family in ("search", "call", "answer"),
            events=events,
            completion_tokens=tokens,
        )

    def episode(self, *turns: Turn, answer: str | None = None, end: str = "answer", task_id: str = "t1") -> Episode:
        return Episode(
            episode_id=f"sft/{task_id}/1",
            task_id=task_id,
            policy="sft",
            seed=1,
            system="",
            request=self.task.request,
            turns=turns,
            answer=answer,
            end=end,  # type: ignore[arg-type]
        )


@pytest.fixture
def script() -> Script:
    return Script()
