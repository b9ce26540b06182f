"""Episodes in a line or two, as ToolEnv would have traced them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraagent.config import RewardConfig
from paraagent.paraact.plan import ExecutionPlan
from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.trace import Call, Change, Episode, ErrorInfo, Family, PlanKind, PlanRecord, PlanRule, Search, Turn
from tests.paraact.test_plan import execution

CONFIG = RewardConfig()
Edges = Sequence[tuple[str, str]]


def task(*tools: str, hard: Edges = (), soft: Edges = (), atoms: Sequence[Any] = ("Ada",)) -> Task:
    """A task whose reference calls `tools`; the id of a call is its tool, then `tool2`, …"""
    ids: list[str] = []
    for tool in tools:
        ids.append(tool if tool not in ids else f"{tool}2")
    return Task(
        task_id="t",
        request="r",
        shape="single" if len(tools) == 1 else "parallel",
        width=len(tools),
        reach="service",
        split="train",
        seed=0,
        slots=tuple(Slot(text=f"use {tool}", tool=tool) for tool in tools),
        calls=tuple(ReferenceCall(id=key, tool=tool, arguments={}) for key, tool in zip(ids, tools, strict=True)),
        atoms=tuple(Atom(call="", path="x", value=value) for value in atoms),
        hard_edges=tuple(hard),
        soft_edges=tuple(soft),
    )


def search(*hits: str, query: str = "q", visible: bool = True) -> Search:
    return Search(query=query, hits=hits, visible=visible)


def call(name: str, error: str | None = None, **more: Any) -> Call:
    info = ErrorInfo(type=error, msg="m") if error else None
    return Call(name=name, arguments=more.pop("arguments", {}), error=info, **more)


def plan(
    flow: list[list[str]], edges: list[tuple[list[str], str]] | None = None, kind: PlanKind = "initial", **more: Any
) -> PlanRecord:
    body = execution(flow, edges, **more)
    ExecutionPlan.model_validate(body)
    return PlanRecord(raw=str(body), body=body, kind=kind)


def turn(
    *events: Search | Call,
    plan: PlanRecord | None = None,
    rule: PlanRule = "optional",
    family: Family | None = None,
    well_formed: bool = True,
) -> Turn:
    kind = family or (
        "search" if any(isinstance(event, Search) for event in events) else "call" if events else "answer"
    )
    return Turn(
        text="", family=kind, think="t", plan=plan, plan_rule=rule, well_formed=well_formed, events=tuple(events)
    )


def episode(*turns: Turn, answer: str | None = "It is Ada.", changes: Sequence[Change] = ()) -> Episode:
    return Episode(
        episode_id="p/t/0",
        task_id="t",
        policy="p",
        seed=0,
        system="s",
        request="r",
        turns=turns,
        answer=answer,
        end="turn_limit" if answer is None else "answer",
        changes=tuple(changes),
    )
