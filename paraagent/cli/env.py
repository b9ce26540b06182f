"""`paraagent env`: play a task turn by turn, by hand or as a policy does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paraagent.agents.policy import Policy
    from paraagent.task import Task
    from paraagent.toolenv.env import ToolEnv

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Play tasks turn by turn.")


@app.callback()
def root() -> None:
    """Play tasks turn by turn."""


@app.command()
def play(
    task_id: Annotated[str, typer.Argument(metavar="TASK", help="Id of a task; `paraagent tasks list` shows them.")],
    policy: Annotated[
        str, typer.Option(help="person (you), oracle, base, sft, rl, local:DIR, or openai:MODEL.")
    ] = "person",
    paradigm: Annotated[str, typer.Option(help="paraact, react-ete or react-eae.")] = "paraact",
    seed: Annotated[int, typer.Option(help="Seed of the episode's own choices, faults and latencies.")] = 0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting, such as env.fault_rate=0.2.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Show turns and observations as the model writes and reads them.")
    ] = False,
    profile: Annotated[str | None, typer.Option(help="This profile's tasks, not the last run's.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the episode with its rewards as one JSON document.")
    ] = False,
) -> None:
    """Play one task turn by turn, and see the score with its parts. Turns may also come from a pipe.

    Example: paraagent env play test-00001 --policy oracle
    """
    import asyncio
    from contextlib import suppress

    import orjson
    from rich.console import Console

    from paraagent.catalog.store import Catalog
    from paraagent.cli.current import find_task, made_with
    from paraagent.cli.episode import show_end, show_notes, show_task
    from paraagent.cli.policies import open_policy, paradigm_named
    from paraagent.cli.run import terminated_is_interrupted
    from paraagent.evaluation.metrics import REWARDS
    from paraagent.retrieval.index import ToolIndex
    from paraagent.rewards.score import score
    from paraagent.toolenv.backends import Backends
    from paraagent.toolenv.env import ToolEnv
    from pipelines.environment import LLM_CACHE
    from pipelines.home import Home

    task, home = find_task(task_id, profile), Home.locate()
    settings, built = made_with(home, profile, set_ or [])
    written = paradigm_named(paradigm)
    player = open_policy(policy, home, profile, settings)
    backends = Backends.open(settings.env, home.root / LLM_CACHE)
    console = Console(stderr=json, highlight=False)
    show_task(console, task)
    with Catalog.open(built / "catalog.duckdb") as catalog:
        show_notes(console, backends.notes(settings.env, catalog))
        index = ToolIndex.load(built / "index", catalog)
        env = ToolEnv(catalog, index, settings.env, backends=backends, paradigm=written)
        # asyncio's own handler would only cancel a task, and nobody cancels a read of the terminal.
        with suppress(KeyboardInterrupt), terminated_is_interrupted():
            asyncio.run(_play(env, task, player, seed, console, raw))
    episode = env.episode(player.name)
    rewards = score(task, episode, settings.rewards)
    show_end(console, task, episode, rewards)
    if json:
        values = {name: float(getattr(rewards, name)) for name in REWARDS}
        document = episode.model_copy(update={"rewards": values}).model_dump(mode="json")
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


async def _play(env: ToolEnv, task: Task, player: Policy, seed: int, console: Console, raw: bool) -> None:
    """Play until the episode ends, or the person leaves: with Ctrl-D, with Ctrl-C, or with `quit`."""
    from asyncio import CancelledError

    from paraagent.agents.policy import Conversation, write_turns
    from paraagent.cli.episode import show_turn

    conversation, done = Conversation(task, seed, env.reset(task, seed), env.paradigm, lambda: env.found), False
    try:
        while not done:
            [completion] = await write_turns(player, [conversation])
            observation, done = await env.step(completion)
            conversation.messages.append({"role": "assistant", "content": completion.text})
            conversation.messages.append({"role": "user", "content": observation})
            if not completion.exhausted:
                show_turn(console, env.turns[-1], len(env.turns), env.paradigm, raw)
    except (EOFError, KeyboardInterrupt, CancelledError):
        if not done:
            env.fail("left before the end")
