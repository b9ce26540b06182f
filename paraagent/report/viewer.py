"""Viewer: episodes as one self-contained HTML file in which a person can search, sort and read them.

The page carries one short row an episode for its list, and every whole episode packed: some episodes together as one
gzip stream, which the browser unpacks when one of them is opened. So the file stays small and opens at once with
thousands of episodes. What is exact or needs rules of ParaAgent is decided here (JSON as text, since a browser rounds
large integers; which hits are targets; what became of a plan's nodes), the scripts beside this module only draw.

A content policy in the page allows those scripts and styles by their hashes and nothing from anywhere else; all text
of tools, models and requests is set as text. The same episodes give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from paraagent.files import write_atomic
from paraagent.paraact.lifecycle import Phase, enter
from paraagent.paraact.plan import ExecutionPlan, PlanError, PlanGraph, SearchPlan, plan_graph
from paraagent.paraact.protocol import fold
from paraagent.task import Task
from paraagent.trace import Call, Episode, PlanRecord, Search, Turn

SOLVED = 1.5
"""The outcome reward from which an episode counts as solved."""

_FOLDER = Path(__file__).parent
_PACK = 256_000
"""Characters of episodes that are packed together: what they share is stored once, and unpacking takes milliseconds."""
_UNSAFE = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}
"""What could end a script element, or a line of a script, inside JSON."""
_INVISIBLE = re.compile("[\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Marks that hide or reorder text; JSON can spell them out."""
_HIDDEN = re.compile(f"[\0-\x1f\x7f-\x9f]|{_INVISIBLE.pattern}")

_Targets = Sequence[frozenset[str]]
"""For each target tool the folded names that count as it."""


def write(path: Path, episodes: Iterable[Episode], tasks: Mapping[str, Task], title: str) -> int:
    """Write the page; returns how many episodes it shows. `tasks` by id may lack some or all of them."""
    shown = list(episodes)
    write_atomic(path, page(shown, tasks, title).encode())
    return len(shown)


def page(episodes: Iterable[Episode], tasks: Mapping[str, Task], title: str) -> str:
    """The whole page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    rows, packs = _pack(episodes, tasks)
    css = "".join((_FOLDER / name).read_text("utf-8") for name in ("report.css", "viewer.css"))
    script = "".join((_FOLDER / name).read_text("utf-8") for name in ("viewer_episode.js", "viewer.js"))
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("viewer.html.jinja").render(
        title=_HIDDEN.sub("\N{REPLACEMENT CHARACTER}", title),
        count=len(rows),
        css=Markup(css),
        css_hash=_hash(css),
        script=Markup(script),
        script_hash=_hash(script),
        rows=Markup(embed(rows)),
        packs=packs,
    )


def embed(value: Any) -> str:
    """JSON that is safe inside a script element; ASCII, so that no encoding and no lone surrogate can break it."""
    return json.dumps(value, separators=(",", ":")).translate(_UNSAFE)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _pack(episodes: Iterable[Episode], tasks: Mapping[str, Task]) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows of the list, packs); a row says in which pack its episode is, and at which place."""
    rows: list[dict[str, Any]] = []
    packs: list[str] = []
    waiting: list[str] = []
    size = 0
    seen: dict[str, int] = {}
    for episode in episodes:
        task = tasks.get(episode.task_id)
        again = seen[episode.episode_id] = seen.get(episode.episode_id, 0) + 1
        key = episode.episode_id if again == 1 else f"{episode.episode_id}~{again}"
        rows.append({"key": key, "pack": len(packs), "place": len(waiting), **_row(episode, task)})
        waiting.append(json.dumps(_view(episode, task), separators=(",", ":")))
        size += len(waiting[-1])
        if size >= _PACK:
            packs.append(_packed(waiting))
            waiting, size = [], 0
    return rows, [*packs, _packed(waiting)] if waiting else packs


def _packed(documents: Sequence[str]) -> str:
    return base64.b64encode(gzip.compress(f"[{','.join(documents)}]".encode(), mtime=0)).decode()


def _row(episode: Episode, task: Task | None) -> dict[str, Any]:
    """What the list shows of an episode, and what its filter searches."""
    calling = sum(bool(turn.calls) for turn in episode.turns)
    outcome = (episode.rewards or {}).get("outcome")
    ends = [turn.started + turn.seconds for turn in episode.turns]
    ends += [call.started + call.seconds for call in episode.calls]
    return {
        "request": episode.request,
        "policy": episode.policy,
        "paradigm": episode.paradigm,
        "task": episode.task_id,
        "shape": "" if task is None else task.label,
        "solved": None if outcome is None else outcome >= SOLVED,
        "end": episode.end,
        "turns": len(episode.turns),
        "searches": len(episode.searches),
        "calls": len(episode.calls),
        "together": round(len(episode.calls) / calling, 2) if calling else 0,
        "failed": sum(call.error is not None for call in episode.calls),
        "tokens": sum(turn.completion_tokens for turn in episode.turns),
        "seconds": round(max(ends, default=0.0), 3),
        "tools": sorted({call.name for call in episode.calls}),
    }


def _view(episode: Episode, task: Task | None) -> dict[str, Any]:
    """One episode as the script draws it."""
    alike = {slot.tool: slot.equivalents for slot in task.slots} if task else {}
    names = task.targets if task else ()
    targets = [frozenset(fold(name) for name in (target, *alike.get(target, ()))) for target in names]
    plans = _plans(episode.turns)
    return {
        "seed": str(episode.seed),
        "system": episode.system,
        "answer": episode.answer,
        "error": episode.error,
        "rewards": [[name, f"{value:.3g}"] for name, value in (episode.rewards or {}).items()],
        "targets": None if task is None else [[name, *alike.get(name, ())] for name in names],
        "atoms": [f"{atom.path} = {_json(atom.value)}" for atom in task.atoms] if task else [],
        "changes": [_json(change.model_dump()) for change in episode.changes],
        "prompt": sum(turn.prompt_tokens for turn in episode.turns),
        "opening": [_search(search, targets) for search in episode.opening],
        "turns": [
            _turn(turn, phase, plan, targets)
            for turn, phase, plan in zip(episode.turns, _phases(episode.turns), plans, strict=True)
        ],
    }


def _turn(turn: Turn, phase: int, plan: dict[str, Any] | None, targets: _Targets) -> dict[str, Any]:
    return {
        "family": turn.family,
        "phase": phase,
        "think": turn.think or "",
        "plan": plan,
        "rule": turn.plan_rule,
        "kept": turn.plan_rule_kept,
        "formed": turn.well_formed,
        "problems": turn.problems,
        "searches": [_search(search, targets) for search in turn.searches],
        "calls": [_call(call, targets) for call in turn.calls],
        "text": turn.text,
        "observation": turn.observation,
        "notes": [[note.role, note.text] for note in turn.notes],
        "prompt": turn.prompt_tokens,
        "tokens": turn.completion_tokens,
        "started": turn.started,
        "seconds": turn.seconds,
    }


def _search(search: Search, targets: _Targets) -> dict[str, Any]:
    return {
        "slot": search.slot,
        "query": search.query,
        "hits": [[hit, _which(hit, targets)] for hit in search.hits],
        "visible": search.visible,
    }


def _call(call: Call, targets: _Targets) -> dict[str, Any]:
    return {
        "name": call.name,
        "target": _which(call.name, targets),
        "arguments": _json(call.arguments),
        "references": call.references,
        "occurrence": call.occurrence,
        "error": None if call.error is None else [call.error.type, call.error.msg],
        "result": _json(call.result),
        "backend": call.backend,
        "injected": call.injected,
        "started": call.started,
        "seconds": call.seconds,
        "attempts": call.attempts,
        "visible": call.visible,
    }


def _which(name: str, targets: _Targets) -> int:
    """The position of the target that a tool counts as, or -1."""
    return next((place for place, names in enumerate(targets) if fold(name) in names), -1)


def _phases(turns: Sequence[Turn]) -> Iterator[int]:
    """For each turn the number of its phase; 0 where it belongs to none."""
    state, number = Phase(), 0
    for turn in turns:
        entered = enter(state, turn.family)
        inside = turn.family in ("search", "call")
        number += inside and entered is not state
        state = entered
        yield number if inside else 0


def _plans(turns: Sequence[Turn]) -> list[dict[str, Any] | None]:
    """For each turn its plan, with the state of every part at the end of the phase or when the next plan took over."""
    views: list[dict[str, Any] | None] = []
    nodes: dict[str, dict[str, Any]] = {}
    slots: list[dict[str, Any]] = []
    graph: PlanGraph | None = None
    phase = 0
    for turn, current in zip(turns, _phases(turns), strict=True):
        if current != phase or not current:
            nodes, slots, graph, phase = {}, [], None, current
        view = None if turn.plan is None else _plan(turn.plan)
        parsed = _parsed(turn.plan, turn.family) if turn.plan else None
        if view and isinstance(parsed, SearchPlan):
            view["slots"] = [{"text": slot, "searched": False} for slot in parsed.capacity_slots]
            slots += view["slots"] if view["accepted"] else []
        elif view and isinstance(parsed, PlanGraph):
            drawn = {found.id: {"id": found.id, "layer": found.layer, "state": "open"} for found in parsed.occurrences}
            view |= {"nodes": list(drawn.values()), "edges": sorted(parsed.edges)}
            if view["accepted"]:
                if graph and view["kind"] == "revise":
                    _carry(nodes, graph, drawn, parsed)
                nodes, graph = drawn, parsed
        for slot in slots:
            slot["searched"] |= fold(slot["text"]) in {fold(search.slot) for search in turn.searches}
        for call in turn.calls:
            if call.occurrence in nodes:
                nodes[call.occurrence]["state"] = _state(call)
        views.append(view)
    return views


def _state(call: Call) -> str:
    return "failed" if call.error else "done" if call.visible else "hidden"


def _carry(
    old: Mapping[str, dict[str, Any]], graph: PlanGraph, new: Mapping[str, dict[str, Any]], revised: PlanGraph
) -> None:
    """What a revision leaves unchanged keeps its state, as in `paraact.lifecycle`."""
    for key in old.keys() & new.keys():
        if graph.predecessors[key] == revised.predecessors[key] and old[key]["state"] == "done":
            new[key]["state"] = "done"


def _plan(plan: PlanRecord) -> dict[str, Any]:
    body = plan.raw if plan.body is None else _json(plan.body)
    return {"kind": plan.kind, "accepted": plan.accepted, "problem": plan.problem, "body": body}


def _parsed(plan: PlanRecord, family: str) -> PlanGraph | SearchPlan | None:
    """What can be drawn of a plan: the trace keeps also those that were not valid."""
    try:
        if family == "search":
            return SearchPlan.model_validate(plan.body)
        return plan_graph(ExecutionPlan.model_validate(plan.body)) if family == "call" else None
    except (ValidationError, PlanError):
        return None


def _json(value: Any) -> str:
    """JSON as a person reads it; marks that would reorder or hide text are spelled out."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
