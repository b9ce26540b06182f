"""`paraagent act`: let an agent do what a person asks for, on the simulated world or on real MCP servers."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paraagent.agents.policy import Policy
    from paraagent.cli.live import Live
    from paraagent.config import EnvConfig
    from paraagent.paraact.paradigm import Paradigm
    from paraagent.task import Task
    from paraagent.toolenv.env import ToolEnv
    from paraagent.trace import Episode

KEPT = "act/episodes.jsonl"
"""In the home: every request and what became of it."""


def act(
    request: Annotated[str, typer.Argument(help="What you want done, in plain words.")],
    policy: Annotated[str, typer.Option(help="sft, rl, base, local:DIR, openai:MODEL, or person.")] = "rl",
    paradigm: Annotated[str, typer.Option(help="paraact, react-ete or react-eae.")] = "paraact",
    mcp: Annotated[
        Path | None, typer.Option(help="A file with `mcpServers`: their tools are used, and really called.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a call that may change something.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the simulated world and of sampling.")] = 0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting, such as agent.temperature=0.7.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show turns and observations as the model has them.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the episode as a page.")] = None,
    profile: Annotated[str | None, typer.Option(help="This profile's settings and models, not the last run's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the episode as one JSON document.")] = False,
) -> None:
    """Let an agent do what you ask for, and watch it: phases, plans, and calls that run together.

    Calls are answered by the simulated world, so nothing happens anywhere; with --mcp they go to real servers, and
    you are asked before a tool that may change something. The trace is kept: `paraagent trace` shows it again.

    Exit codes: 0 answered, 1 no answer, 2 wrong usage, 130 left with Ctrl-C or quit.

    Example: paraagent act "What time is it in Tokyo and in Lima?" --mcp servers.json --policy openai:gpt-5
    """
    import asyncio
    from contextlib import suppress

    import orjson

    from paraagent.cli.current import usual_profile
    from paraagent.cli.episode import Screen
    from paraagent.cli.live import Live
    from paraagent.cli.policies import open_policy, paradigm_named
    from paraagent.errors import UsageError
    from paraagent.task import Task
    from paraagent.traces import check_target
    from pipelines.home import Home
    from pipelines.settings import load_profile, with_settings

    if not request.strip():
        raise UsageError('The request is empty: say what you want done, as in paraagent act "What is on today?"')
    if policy == "oracle":
        raise UsageError("The oracle needs a task with a known solution: play one with `paraagent env play`")
    if html is not None:
        check_target(html)
    home = Home.locate()
    settings = with_settings(load_profile(profile or usual_profile(home)), set_ or [])
    written = paradigm_named(paradigm)
    servers = _servers(mcp)
    if servers is None:
        _require_catalog(home.root, profile)
    player = open_policy(policy, home, profile, settings)
    console = Screen(stderr=json, highlight=False)
    task = Task.open(request, seed)
    session = _Session(task, player, written, settings.env, console, raw)
    ended: list[_Ended] = []
    with _interrupted_once():
        with suppress(KeyboardInterrupt):
            asyncio.run(_play(session, Live(console), servers, yes, profile, ended))
        if not ended:
            raise KeyboardInterrupt
        [(episode, made)] = ended
        episode = _keep(home, episode, made, console)
    if html is not None:
        from paraagent.report import viewer

        viewer.write(html, [episode], {}, request)
        console.print(f"[dim]page: {html}[/dim]", soft_wrap=True)
    if json:
        sys.stdout.write(orjson.dumps(episode.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n")
    if episode.end != "answer":
        raise typer.Exit(130 if episode.error == _LEFT else 1)


_LEFT = "left before the end"


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Ctrl-C or SIGTERM ends the episode; more of them must not keep the servers from being ended, or the trace from
    being kept."""
    before = {signal.SIGTERM: signal.getsignal(signal.SIGTERM)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored on purpose
        before[signal.SIGINT] = signal.default_int_handler

    def interrupt(_number: int, _frame: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Session(NamedTuple):
    """One request and who answers it how."""

    task: Task
    player: Policy
    paradigm: Paradigm
    config: EnvConfig
    console: Console
    raw: bool


class _Ended(NamedTuple):
    episode: Episode
    made: dict[str, Any]
    """What it was played with."""


def _servers(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    from paraagent.toolenv.mcp_config import read_servers

    return read_servers(path)


def _require_catalog(root: Path, profile: str | None) -> Path:
    from paraagent.cli.current import require_catalog
    from pipelines.home import Home

    return require_catalog(Home(root), profile)


async def _play(
    session: _Session,
    live: Live,
    servers: dict[str, Any] | None,
    yes: bool,
    profile: str | None,
    ended: list[_Ended],
) -> None:
    """Play until the answer or the end of the budget; whatever happens, the trace goes into `ended`."""
    import tempfile

    from paraagent.agents.openai import OpenAIPolicy
    from paraagent.catalog.store import Catalog
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.backends import Backends
    from paraagent.toolenv.env import ToolEnv
    from pipelines.environment import LLM_CACHE
    from pipelines.home import Home

    async with AsyncExitStack() as stack:
        root = Home.locate().root
        config = session.config
        if servers is None:
            path = _require_catalog(root, profile)
            backends = Backends.open(config, root / LLM_CACHE)
        else:
            from paraagent.toolenv.mcp import McpServers

            config = config.calm
            stack.callback(live.stop)
            live.starting(servers)
            running = await stack.enter_async_context(
                McpServers(servers, timeout=config.call_timeout, confirm=None if yes else live.confirm)
            )
            path = running.write_catalog(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paraagent-"))))
            for fault in running.faults:
                live.note(fault)
            backends = Backends.of_live(running)
        catalog = stack.enter_context(Catalog.open(path))
        index = ToolIndex.load(path.parent / "index", catalog)
        if isinstance(session.player, OpenAIPolicy):
            session.player.tell(live.note)
        env = ToolEnv(catalog, index, config, backends=backends, paradigm=session.paradigm, watcher=live)
        noun = "tool" if len(catalog) == 1 else "tools"
        tools = f"{len(catalog):,} " + (f"{noun} of {', '.join(servers)}" if servers else f"simulated {noun}")
        live.begin(session.task.request, f"{session.player.name}, {session.paradigm.name}, {tools}")
        try:
            await _turns(env, session, live)
        finally:
            live.stop()
            episode = env.episode(session.player.name)
            made = {"catalog": catalog.build_hash, "env": config.model_dump(mode="json"), "mcp": sorted(servers or ())}
            ended.append(_Ended(episode, made))
        live.end(episode)


async def _turns(env: ToolEnv, session: _Session, live: Live) -> None:
    import asyncio

    from paraagent.agents.policy import Conversation, write_turns
    from paraagent.errors import ParaAgentError

    task = session.task
    conversation = Conversation(task, task.seed, env.reset(task, task.seed), env.paradigm, lambda: env.found)
    done, shown = False, 0
    try:
        while not done:
            live.thinking()
            [completion] = await write_turns(session.player, [conversation])
            observation, done = await env.step(completion)
            conversation.messages.append({"role": "assistant", "content": completion.text})
            conversation.messages.append({"role": "user", "content": observation})
            if len(env.turns) > shown:
                shown = len(env.turns)
                live.show(env.turns[-1], shown, env.paradigm, session.raw)
    except ParaAgentError as error:
        env.fail(str(error))
    except (EOFError, KeyboardInterrupt, asyncio.CancelledError):
        if len(env.turns) > shown:
            live.show(env.turns[-1], len(env.turns), env.paradigm, session.raw)
        env.fail(_LEFT)
    except Exception as error:
        env.fail(f"{type(error).__name__}: {error}")


def _keep(home: Any, episode: Episode, made: dict[str, Any], console: Console) -> Episode:
    """Keep it under an id of its own, since a person may ask for the same again; returns it with that id."""
    from paraagent.traces import append_trace, read_traces

    path = home.root / KEPT
    with home.writable():
        ids = {kept.episode.episode_id for kept in read_traces(path, [])} if path.exists() else set()
        names = (f"{episode.episode_id}-{number}" if number > 1 else episode.episode_id for number in count(1))
        episode = episode.model_copy(update={"episode_id": next(name for name in names if name not in ids)})
        append_trace(path, episode, made)
    console.print(f"kept: paraagent trace {shlex.quote(episode.episode_id)}", style="dim", soft_wrap=True, markup=False)
    return episode
