"""`paraagent trace`: what agents did, listed, turn by turn, as a page, as a file, or once more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paraagent.task import Task
    from paraagent.trace import Episode
    from paraagent.traces import Kept, Unread
    from pipelines.home import Home


def trace(
    episode: Annotated[str | None, typer.Argument(help="Id of an episode, or a part of it; none means all.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look at, one file, and send it to anyone.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write the traces as .jsonl or .parquet.")] = None,
    file: Annotated[Path | None, typer.Option(help="Read this .jsonl or .parquet, not the home.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Play it again without its model, and compare.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Show turns and observations as the model had them.")] = False,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1, help="At most so many.")] = None,
    profile: Annotated[str | None, typer.Option(help="This profile's episodes, not the last run's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what an agent did. Without an id: every episode of the last run and of `paraagent act`, as a list.

    Example: paraagent trace --html episodes.html
    """
    import orjson

    from paraagent.cli.episode import Screen
    from paraagent.errors import UsageError
    from paraagent.traces import check_target
    from pipelines.home import Home

    for path in filter(None, (html, to)):
        check_target(path)
    if episode is None and (replay or raw):
        raise UsageError(f"--{'replay' if replay else 'raw'} needs the id of an episode: `paraagent trace` lists them")
    home = Home.locate()
    found = _found(home, episode, file, profile, limit)
    tasks = _tasks(profile)
    console = Screen(highlight=False)
    if html is not None or to is not None:
        _write(found, tasks, html, to, episode, console)
    elif json:
        rows = [kept.episode.model_dump(mode="json") for _, kept in found]
        document = rows[0] if episode is not None and len(rows) == 1 else rows
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif episode is None:
        _list([kept.episode for _, kept in found], console)
    elif replay:
        _replay(home, *_one(found, episode), tasks, console)
    else:
        _show(_one(found, episode)[1].episode, tasks, raw, console)


def _found(
    home: Home, wanted: str | None, file: Path | None, profile: str | None, limit: int | None
) -> list[tuple[Path, Kept]]:
    """The episodes meant, each with its file.

    Raises:
        UsageError: there is none of that id.
        RunError: there are no traces at all.
    """
    from paraagent.cli.current import trace_files
    from paraagent.errors import RunError, UsageError
    from paraagent.traces import read_traces

    paths = [file] if file is not None else trace_files(home, profile)
    if not paths:
        raise RunError(
            f"There are no episodes in {home.root} yet: run `paraagent run`, or ask for something with `act`"
        )
    unread: list[Unread] | None = None if file is None else []
    every = ((path, kept) for path in paths for kept in read_traces(path, unread))
    if wanted is None:
        taken = [each for each, _ in zip(every, _numbers(limit), strict=False)]
        _tell(unread, file, bool(taken))
        return taken
    named = [each for each in every if wanted in each[1].episode.episode_id]
    _tell(unread, file, True)
    exact = [each for each in named if each[1].episode.episode_id == wanted]
    if not named:
        raise UsageError(f"There is no episode {wanted}: `paraagent trace` lists them")
    return exact[-1:] or named[:limit]


def _tell(unread: list[Unread] | None, file: Path | None, some: bool) -> None:
    """What of a file cannot be read. Raises UsageError where nothing can."""
    from paraagent.errors import UsageError

    if not unread:
        return
    lines = "line is" if len(unread) == 1 else "lines are"
    said = f"{len(unread)} {lines} no episode; the first is {unread[0].number} ({unread[0].why})"
    if not some:
        raise UsageError(f"{file} holds no traces: {said}")
    sys.stderr.write(f"! of {file}, {said}\n")


def _numbers(limit: int | None) -> Iterator[int]:
    from itertools import count

    return iter(range(limit)) if limit is not None else count()


def _one(found: list[tuple[Path, Kept]], wanted: str) -> tuple[Path, Kept]:
    """The one meant; of one asked for again and again the latest. Raises UsageError where it is left open."""
    from paraagent.errors import UsageError

    ids = list(dict.fromkeys(kept.episode.episode_id for _, kept in found))
    if len(ids) > 1:
        few = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        raise UsageError(f"{len(ids)} episodes have {wanted} in their id ({few}): give more of it")
    return found[-1]


def _tasks(profile: str | None) -> dict[str, Task]:
    """The tasks that are at hand; an episode can be shown without its own."""
    from paraagent.cli.current import current_tasks
    from paraagent.errors import RunError

    try:
        return {task.task_id: task for task in current_tasks(profile)}
    except RunError:
        return {}


def _write(
    found: list[tuple[Path, Kept]],
    tasks: dict[str, Task],
    html: Path | None,
    to: Path | None,
    wanted: str | None,
    console: Console,
) -> None:
    from paraagent.errors import RunError
    from paraagent.traces import write_traces

    episodes = [kept.episode for _, kept in found]
    title = episodes[0].request if len(episodes) == 1 else f"{len(episodes):,} episodes"
    try:
        if html is not None:
            from paraagent.report import viewer

            viewer.write(html, episodes, tasks, title)
        if to is not None:
            write_traces(to, episodes)
    except OSError as error:
        raise RunError(f"Cannot write {error.filename or html or to}: {error.strerror}") from error
    for path in filter(None, (html, to)):
        console.print(f"{path}: {title if len(title) < 80 else title[:79] + '…'}", markup=False, soft_wrap=True)


def _list(episodes: list[Episode], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from paraagent.cli.episode import shortened

    fixed = [(one.end.replace("_", " "), str(len(one.turns)), str(len(one.calls))) for one in episodes]
    names = ("ended", "turns", "calls")
    room = console.width - sum(max(map(len, column)) + 1 for column in zip(names, *fixed, strict=True)) - 1
    requests = [" ".join(one.request.split()) for one in episodes]
    longest = max((len(one.episode_id) for one in episodes), default=0)
    left = min(longest, max(room * 2 // 3, room - max(map(len, ("request", *requests)))))
    table = Table("episode", *names, "request", box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[2:4]:
        column.justify = "right"
    table.columns[-1].max_width = max(1, min(80, room - left))
    for one, cells, request in zip(episodes, fixed, requests, strict=True):
        table.add_row(Text(shortened(one.episode_id, left)), *cells, Text(request))
    console.print(table)


def _show(episode: Episode, tasks: dict[str, Task], raw: bool, console: Console) -> None:
    from rich.panel import Panel
    from rich.text import Text

    from paraagent.cli.episode import show_turn
    from paraagent.paraact.paradigm import PARADIGMS

    console.print(Text(episode.episode_id, style="bold"))
    console.print(Panel(Text(episode.request), title="request", title_align="left", expand=False))
    for search in episode.opening:
        console.print(Text(f"retrieved: {', '.join(search.hits) or 'nothing'}", style="dim"))
    for number, turn in enumerate(episode.turns, 1):
        show_turn(console, turn, number, PARADIGMS[episode.paradigm], raw)
    console.print()
    console.print(Text(f"ended with {episode.end}" + (f": {episode.error}" if episode.error else ""), style="dim"))
    if episode.rewards:
        said = ", ".join(f"{name} {value:.2f}" for name, value in episode.rewards.items())
        console.print(Text(f"rewards: {said}", style="dim"))


def _replay(home: Home, path: Path, kept: Kept, tasks: dict[str, Task], console: Console) -> None:
    """Raises `typer.Exit(1)` where an observation is another one."""
    from paraagent.agents.replay import replay
    from paraagent.catalog.store import Catalog
    from paraagent.paraact.paradigm import PARADIGMS
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.backends import Backends
    from paraagent.toolenv.env import ToolEnv
    from pipelines.environment import LLM_CACHE

    episode = kept.episode
    made = _made(home, path, kept)
    task = _task_of(episode, tasks)
    config = made["env"]
    with Catalog.open(made["catalog"]) as catalog:
        index = ToolIndex.load(made["catalog"].parent / "index", catalog)
        backends = Backends.open(config, home.root / LLM_CACHE)
        env = ToolEnv(catalog, index, config, backends=backends, paradigm=PARADIGMS[episode.paradigm])
        again = replay(episode, task, env)
    if again.differ:
        numbers = ", ".join(map(str, again.differ))
        console.print(f"{len(again.differ)} of {again.turns} turns had another observation: {numbers}")
        raise typer.Exit(1)
    console.print(f"the same observations in all {again.turns} turns")


def _task_of(episode: Episode, tasks: dict[str, Task]) -> Task:
    from paraagent.errors import RunError
    from paraagent.task import Task

    if episode.task_id.startswith("open-"):
        return Task.open(episode.request, episode.seed)
    if episode.task_id not in tasks:
        raise RunError(f"The task {episode.task_id} is not here any more: replay it where its tasks are")
    return tasks[episode.task_id]


def _made(home: Home, path: Path, kept: Kept) -> dict[str, Any]:
    """Catalog and settings that an episode was played with, from its line or from its artifact's manifest.

    Raises:
        RunError: they are not known, or not at hand any more.
    """
    import orjson

    from paraagent.cli.current import current_catalog
    from paraagent.config import EnvConfig
    from paraagent.errors import RunError
    from paraagent.traces import MADE
    from pipelines.manifest import read_manifest

    gone = f"What {kept.episode.episode_id} was played with is not known here: replay it in the home where it was made"
    if kept.made.get("mcp"):
        raise RunError("Real tools answered this episode, and they are not asked again for a replay")
    note = path.parent / MADE
    if made := kept.made or (orjson.loads(note.read_bytes()) if note.is_file() else {}):
        catalog = current_catalog(home, None)
        from paraagent.catalog.store import Catalog

        if catalog is None or Catalog.open(catalog).build_hash != made["catalog"]:
            raise RunError(f"The catalog that {kept.episode.episode_id} was played with is not the current one")
        return {"catalog": catalog, "env": EnvConfig.model_validate(made["env"])}
    folder = next((parent for parent in path.parents if (parent / "manifest.json").is_file()), None)
    manifest = read_manifest(folder) if folder else None
    if manifest is None or "env" not in manifest.config or "catalog" not in manifest.inputs:
        raise RunError(gone)
    catalog = home.artifact("catalog", manifest.inputs["catalog"].fingerprint) / "catalog.duckdb"
    if not catalog.is_file():
        raise RunError(gone)
    return {"catalog": catalog, "env": EnvConfig.model_validate(manifest.config["env"])}
