"""`paraagent tasks`: the synthesised tasks, listed or one in full."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from paraagent.task import Task
    from paraagent.trace import Change

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List and show the synthesised tasks.")

ProfileOption = Annotated[str | None, typer.Option(help="This profile's tasks, not the last run's.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("list")
def list_(
    split: Annotated[str | None, typer.Option(help="Only train, validation or test.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="At most so many.")] = 20,
    profile: ProfileOption = None,
    json: JsonOption = False,
) -> None:
    """List tasks: id, shape, reach, how hard, and request.

    Example: paraagent tasks list --split test -n 5
    """
    from paraagent.cli.current import current_tasks
    from paraagent.errors import UsageError

    if split not in (None, "train", "validation", "test"):
        raise UsageError(f"There is no split {split}: the splits are train, validation and test")
    tasks = [task for task in current_tasks(profile) if split in (None, task.split)][:limit]
    if json:
        _print_json([task.model_dump(mode="json") for task in tasks])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("task", "shape", "reach", "hard", "request", box=None, header_style="bold")
    for task in tasks:
        table.add_row(task.task_id, task.label, task.reach, f"{task.difficulty:.2f}", task.request)
    Console().print(table, markup=False)


@app.command()
def show(task_id: str, profile: ProfileOption = None, json: JsonOption = False) -> None:
    """Show one task: its request, how its calls hang together, what each finds or changes, and what leads astray.

    Example: paraagent tasks show test-00001
    """
    import orjson

    from paraagent.cli.current import find_task
    from paraagent.paraact.prompt import NO_TOOL_ANSWER

    task = find_task(task_id, profile)
    if json:
        _print_json(task.model_dump(mode="json"))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(
        f"{task.task_id}  {task.label}, {task.reach}, {task.split}, difficulty {task.difficulty:.2f}",
        style="bold",
        markup=False,
    )
    console.print(task.request, markup=False)
    for line in _drawn(task):
        console.print(line, markup=False)
    needs = {slot.tool: slot.text for slot in task.slots}
    for call in task.calls:
        console.print(f"\n{call.id}  {needs[call.tool]}", markup=False)
        console.print(f"    {call.tool} {orjson.dumps(call.arguments).decode()}", markup=False)
        for atom in task.atoms:
            if atom.call == call.id:
                console.print(f"    {atom.path} = {atom.value}", markup=False)
        for change in task.state:
            if change.call == call.id:
                console.print(f"    {_left(change.thing)}", markup=False)
    if not task.calls:
        answers = [str(atom.value) for atom in task.atoms]
        console.print(f"\nno call; right is: {', '.join(answers) or NO_TOOL_ANSWER}", markup=False)
    if astray := ", ".join(dict.fromkeys(filter(None, task.distractors))):
        console.print(f"\nbeside the targets: {astray}", markup=False)


def _left(thing: Change) -> str:
    """How a thing must stand at the end."""
    import orjson

    if thing.deleted:
        return f"deletes: {thing.kind}"
    said = {**{name.rpartition(":")[2]: value for name, value in thing.links.items()}, **thing.fields}
    return f"{'changes' if thing.key else 'makes'}: {thing.kind} {orjson.dumps(said).decode()}"


def _drawn(task: Task) -> list[str]:
    """The reference as a drawing, one layer a column: a call, and under it the calls that it feeds."""
    feeds = {call.id: [second for first, second in task.hard_edges if first == call.id] for call in task.calls}
    lines: list[str] = []

    def draw(key: str, lead: str, mark: str) -> None:
        lines.append(f"{lead}{mark}{key}")
        below = lead + {"": "", "├─▶ ": "│   ", "└─▶ ": "    "}[mark]
        for number, after in enumerate(feeds[key], 1):
            draw(after, below, "└─▶ " if number == len(feeds[key]) else "├─▶ ")

    for call in task.layers[0] if task.layers else []:
        draw(call.id, "", "")
    return ["", *lines] if task.hard_edges else []


def _print_json(document: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
