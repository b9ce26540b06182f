"""An episode drawn in the terminal: its task, each turn with what came back, and the score with its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from paraagent.paraact.plan import ExecutionPlan, SearchPlan
from paraagent.paraact.protocol import AnswerBlock, CallBlock, SearchBlock
from paraagent.paraact.schema import clip
from paraagent.rewards.atoms import states

if TYPE_CHECKING:
    from paraagent.paraact.paradigm import Paradigm
    from paraagent.rewards.score import Rewards
    from paraagent.task import Task
    from paraagent.trace import Call, Episode, PlanRecord, Turn

_RESULT_LINES = 16
"""Lines of one result that are shown."""
_LINE = 400
"""Characters of one line."""


_UNSEEN = dict.fromkeys(
    {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    - set(b"\t\n")
)
"""Control characters, and marks that turn the order of what follows: tools and models could forge lines with them."""


class Screen(Console):
    """A terminal that what tools and models say cannot play tricks on."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """As Console does, without what nobody sees."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=segment.text.translate(_UNSEEN))


def shortened(text: str, most: int) -> str:
    """A name or path without its middle where it is longer than `most`, since its ends tell more."""
    head = (most - 1) // 3
    return text if len(text) <= most else f"{text[:head]}…{text[len(text) + head + 1 - most :]}"


def show_task(console: Console, task: Task) -> None:
    """Who asks for what."""
    console.print(Text(f"{task.task_id}  {task.label}, {task.reach}, difficulty {task.difficulty:.2f}", style="bold"))
    console.print(Panel(Text(task.request), title="request", title_align="left", expand=False))


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """What a person should know about the settings."""
    for note in notes:
        console.print(Text(f"! {note}", style="yellow"))


def show_turn(console: Console, turn: Turn, number: int, paradigm: Paradigm, raw: bool = False) -> None:
    """One turn: thought, plan, and each block with what came back; `raw` adds what the model wrote and reads."""
    console.print()
    console.rule(Text(f"turn {number}: {turn.family}"), align="left", style="dim")
    if raw:
        console.print(Text(turn.text, style="cyan"), soft_wrap=True)
        console.print(Text(turn.observation, style="dim"), soft_wrap=True)
        return
    if turn.think:
        console.print(Text(clip(turn.think, _LINE), style="italic dim"))
    if paradigm.plans:
        console.print(_plan_line(turn.plan, turn.plan_rule))
    tools, responses, calls = (
        iter(paradigm.read_tools(turn.observation)),
        iter(paradigm.read_responses(turn.observation)),
        iter(turn.calls),
    )
    for block in paradigm.parse(turn.text).blocks:
        if isinstance(block, SearchBlock):
            label = f"{block.slot}: " if block.slot else ""
            console.print(Text(f"? {label}{clip(block.need, _LINE)}", style="bold"))
            for line in _found(next(tools, [])):
                console.print(line)
        elif isinstance(block, CallBlock):
            call = next(calls)
            console.print(_call_line(call))
            for line in _response(call, next(responses, None)):
                console.print(line)
        elif isinstance(block, AnswerBlock):
            console.print(Text(f"= {clip(block.text, _LINE)}", style="bold"))
    if turn.family == "invalid":
        console.print(Text(clip(turn.text, _LINE) or "(nothing written)", style="cyan"))
    for problem in (*turn.problems, *(note.text for note in turn.notes if note.role == "check")):
        console.print(Text(f"! {clip(problem, _LINE)}", style="yellow"))


def show_end(console: Console, task: Task, episode: Episode, rewards: Rewards) -> None:
    """How it ended, the score with its parts, and what would have been right."""
    console.print()
    turns = f"{len(episode.turns)} turn{'' if len(episode.turns) == 1 else 's'}"
    console.rule(Text(f"ended with {episode.end} after {turns}"), align="left", style="dim")
    if episode.error:
        console.print(Text(episode.error, style="yellow"))
    table = Table(box=None, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    parts = [
        (f"{rewards.outcome:+.2f}", "outcome: facts stated and changes made"),
        (f"{rewards.step:+.2f}", "step: tools found and called"),
        (f"{0.0 - rewards.penalty:+.2f}", "penalty: protocol, repetition, order"),
        (f"{rewards.trajectory:+.2f}", "these together"),
        (f"{rewards.phase:.2f}", "phase: plans, and how they were carried out"),
        (f"{rewards.format:.2f}", "format: turns well-formed, and plans when they are due"),
    ]
    for value, meaning in parts:
        table.add_row(value, meaning)
    console.print(table)
    for change in episode.changes:
        what = "deleted" if change.deleted else _short(orjson.dumps(change.fields | change.links).decode())
        console.print(Text(f"~ {change.kind} {change.key or '(new)'}: {what}", style="dim"))
    for line in _expected(task, episode):
        console.print(line)
    console.print(Text("solved", style="bold green") if rewards.solved else Text("not solved", style="bold red"))


def _plan_line(plan: PlanRecord | None, rule: str) -> Text:
    """The plan as steps, with what the lifecycle made of it; where there is none, whether one was due."""
    if plan is None:
        return (
            Text("no plan, though one is due", style="yellow") if rule == "required" else Text("no plan", style="dim")
        )
    style = "green" if plan.accepted else "yellow"
    said = f"plan, {plan.kind}" + (f": {clip(plan.problem, _LINE)}" if plan.problem else "")
    return Text(f"{said}{_steps(plan.body)}", style=style)


def _steps(body: dict[str, Any] | None) -> str:
    if body is None:
        return ""
    if "capacity_slots" in body:
        return ": " + ", ".join(SearchPlan.model_validate(body).capacity_slots)
    steps = ExecutionPlan.model_validate(body).execution_flow
    return ": " + " -> ".join(" + ".join(step.parallel) for step in steps)


def _found(tools: list[Any]) -> Iterator[Text]:
    """Each found tool: its name with what it takes, and what it does."""
    if not tools:
        yield Text("    nothing found", style="dim")
    for tool in tools:
        if "error" in tool:
            yield Text(f"    {tool['error']['msg']}", style="red")
            continue
        takes = [
            f"[{name[:-1]}: {_kind(kind)}]" if name.endswith("?") else f"{name}: {_kind(kind)}"
            for name, kind in tool["parameters"].items()
        ]
        line = Text(f"    {tool['name']}", style="cyan")
        line.append(f"({', '.join(takes)})", style="default")
        yield line
        yield Text(f"        {clip(tool['description'], 110)}", style="dim")


def _kind(value: Any) -> str:
    """What a parameter takes, without its meaning."""
    if isinstance(value, str):
        return value.partition(": ")[0].replace("|", " | ")
    return "array" if isinstance(value, list) else "object"


def _call_line(call: Call) -> Text:
    mark, style = (">", "bold") if call.ok else ("x", "bold red")
    line = Text(f"{mark} {call.name or 'a call that cannot be read'}", style=style)
    line.append(f" {_short(orjson.dumps(call.arguments).decode())}", style="default")
    notes = [call.backend] if call.backend else []
    notes += ["by chance"] if call.injected else []
    notes += [f"sent {call.attempts} times"] if call.attempts > 1 else []
    notes += [f"{call.seconds:.1f} s"] if call.seconds else []
    line.append(f"  {', '.join(notes)}", style="dim")
    return line


def _response(call: Call, response: Any) -> Iterator[Text]:
    """What the model reads of it."""
    result = response.get("result") if isinstance(response, dict) else None
    if isinstance(result, dict) and "error" in result and (call.error or not call.visible):
        error = result["error"]
        yield Text(f"    {error['type']}: {error['msg']}", style="red")
        return
    lines = orjson.dumps(result, option=orjson.OPT_INDENT_2).decode().splitlines()
    for line in lines[:_RESULT_LINES]:
        yield Text(f"    {_short(line)}")
    if len(lines) > _RESULT_LINES:
        yield Text(f"    … and {len(lines) - _RESULT_LINES} more lines", style="dim")


def _expected(task: Task, episode: Episode) -> Iterator[Text]:
    """The facts that a right answer states, each with whether this one did."""
    for atom in task.atoms:
        told = episode.answer is not None and states(episode.answer, atom.value)
        where = f"{atom.call}.{atom.path} = " if atom.call else ""
        yield Text(f"{'+' if told else '-'} {where}{_short(str(atom.value))}", style="green" if told else "red")


def _short(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
