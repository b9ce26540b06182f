"""The artifacts of a small, made-up run, with hostile text wherever a tool or a model may put some."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.config import Profile, ReportConfig
from paraagent.evaluation import score_frame, score_row, summarise
from paraagent.files import write_json, write_lines
from paraagent.report.collect import Facts, collect
from paraagent.rewards.score import score
from paraagent.task import Atom, ReferenceCall, Slot, Task
from paraagent.trace import Call, Episode, ErrorInfo, Event, Family, PlanRecord, Search, Turn

HOSTILE = "<script>alert('x')</script> & <img src=http://example.invalid/x.png onerror=alert(1)> \x00"
LONG = "averyveryverylongtoolnamewithoutanybreakwhatsoever_" * 4
SYSTEMS = ("oracle", "base", "sft", "rl")


def _task(number: int, width: int) -> Task:
    return Task(
        task_id=f"task-{number}",
        request=f"Look up order o{number} and tell me what it costs. {HOSTILE if number == 0 else ''}",
        shape="single" if width == 1 else "parallel",
        width=width,
        reach="service",
        split="test",
        seed=number,
        slots=tuple(Slot(text=f"read order {k}", tool=f"getOrder{k}") for k in range(width)),
        calls=tuple(
            ReferenceCall(id=f"c{k}", tool=f"getOrder{k}", arguments={"orderId": f"o{number}"}) for k in range(width)
        ),
        atoms=tuple(Atom(call=f"c{k}", path="order.price", value=12 + k) for k in range(width)),
    )


def _turn(family: Family, text: str, *events: Event, plan: dict[str, Any] | None = None) -> Turn:
    return Turn(
        text=text,
        family=family,
        think=None if family == "invalid" else f"I need the price. {HOSTILE}",
        plan=None if plan is None else PlanRecord(raw="{}", body=plan, kind="initial"),
        plan_rule="optional",
        well_formed=family != "invalid",
        problems=("no block could be read",) if family == "invalid" else (),
        events=events,
        prompt_tokens=100,
        completion_tokens=40,
    )


def _episode(system: str, task: Task, *, solved: bool) -> Episode:
    turns: list[Turn] = []
    answer = None
    if system == "base":
        turns = [_turn("invalid", f"Sure, I can help! {HOSTILE}"), _turn("invalid", " \n\n ")]
    else:
        searches = [Search(query=f"{slot.text} {HOSTILE}", hits=(slot.tool, LONG, "listOrders")) for slot in task.slots]
        turns.append(_turn("search", "", *searches, plan={"capacity_slots": [slot.text for slot in task.slots]}))
        calls = [
            Call(
                name=call.tool,
                arguments=call.arguments,
                error=None if solved else ErrorInfo(type="InvalidRequestError", msg=f"orderId: missing {HOSTILE}"),
                result={"order": {"price": 12, "note": HOSTILE, "items": [{"sku": LONG}] * 40}} if solved else None,
                backend="grounded",
            )
            for call in task.calls
        ]
        plan = {
            "available_tools": list(task.targets),
            "execution_flow": [{"step": 1, "parallel": list(task.targets)}],
            "dependencies": [],
        }
        turns.append(_turn("call", "", *calls, plan=plan))
        answer = " and ".join(str(atom.value) for atom in task.atoms) if solved else f"I do not know {HOSTILE}"
        turns.append(_turn("answer", ""))
    return Episode(
        episode_id=f"{system}/{task.task_id}/1",
        task_id=task.task_id,
        policy=system,
        seed=1,
        system="",
        request=task.request,
        turns=tuple(turns),
        answer=answer,
        end="answer" if answer else "turn_limit",
    )


def _solved(system: str, number: int) -> bool:
    return {"oracle": True, "base": False, "sft": number % 2 == 0, "rl": number % 3 != 0}[system]


def _manifest(path: Path, **rows: int) -> None:
    fingerprint = f"{path.name:a<12}"[:12].encode().hex() * 2
    versions = {"python": "3.11.7", "torch": "2.13.0"}
    write_json(
        path / "manifest.json", {"fingerprint": fingerprint, "rows": rows, "versions": versions, "seconds": 12.5}
    )


def _contract(path: Path, suite: str, *, success: bool) -> None:
    checks = [
        {"description": "Every row has a name", "success": True, "severity": "critical", "result": {}},
        {"description": f"No text is hostile {HOSTILE}", "success": success, "severity": "warning", "result": {}},
    ]
    document = {"suite": suite, "success": success, "rows": 24, "results": checks}
    write_json(path / "contracts" / f"{suite}.json", document)


@pytest.fixture(scope="session")
def profile() -> Profile:
    return Profile(name="made-up", report=ReportConfig(examples=8))


@pytest.fixture(scope="session")
def artifacts(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_tools: list[ToolInterface],
    write_catalog: Callable[[Path, list[ToolInterface]], Path],
    profile: Profile,
) -> dict[str, Path]:
    """Directories by stage, with the files that the report reads."""
    root = tmp_path_factory.mktemp("artifacts")
    paths = {name: root / name for name in ("catalog", "tasks", "model", "demos", "sft", "rl", "evaluate")}
    tasks = [_task(number, 1 + number % 3) for number in range(24)]
    write_catalog(paths["catalog"] / "catalog.duckdb", tiny_tools)
    write_lines(paths["tasks"] / "tasks.jsonl", [task.model_dump(mode="json") for task in tasks])
    write_json(paths["tasks"] / "rejected.json", {"ambiguous target": 12, "not found by its slot": 31})
    write_json(paths["demos"] / "rejected.json", {"too long": 3})
    losses = [{"step": step, "loss": 3.0 / step + 0.4} for step in range(1, 41)]
    write_lines(paths["sft"] / "log.jsonl", losses)
    played = [
        {"step": 10 * n, "solved": solved, "tasks": 20, "targets": 30, "found": 25, "called": 5 + solved}
        for n, solved in enumerate((2, 14, 11), start=1)
    ]
    write_lines(paths["sft"] / "validation.jsonl", played)
    updates = [
        {"step": n, "solved": 0.25 * n, "trajectory_mean": 0.2 * n, "phase_mean": 0.1 * n, "step_mean": 0.5 + 0.1 * n}
        for n in range(1, 4)
    ]
    write_lines(paths["rl"] / "log.jsonl", updates)
    rows = []
    for system in SYSTEMS:
        lines = []
        for number, task in enumerate(tasks):
            episode = _episode(system, task, solved=_solved(system, number))
            rows.append(score_row(system, task, episode, score(task, episode, profile.rewards)))
            episode = episode.model_copy(update={"rewards": {"outcome": 1.5, "trajectory": 2.0}})
            lines.append({"unit": task.task_id, "row": episode.model_dump(mode="json")})
        write_lines(paths["evaluate"] / "episodes" / f"{system}.jsonl", lines)
    frame = score_frame(rows)
    frame.write_parquet(paths["evaluate"] / "scores.parquet")
    write_json(paths["evaluate"] / "summary.json", summarise(frame, SYSTEMS, 0.95, 0))
    _contract(paths["tasks"], "tasks", success=True)
    _contract(paths["demos"], "demos", success=False)
    for name, path in paths.items():
        path.mkdir(exist_ok=True)
        _manifest(path, **({"demos": 21} if name == "demos" else {"rows": 24}))
    return paths


@pytest.fixture(scope="session")
def facts(artifacts: dict[str, Path], profile: Profile) -> Facts:
    return collect(artifacts, profile, "0123456789abcdef")


@pytest.fixture(scope="session")
def page(facts: Facts) -> str:
    from paraagent.report.html import draw, render

    return render(facts, draw(facts))
