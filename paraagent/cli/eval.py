"""`paraagent eval`: any policy under any paradigm on held-out tasks, resumable task by task."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from paraagent.agents.policy import Policy
    from paraagent.config import Profile
    from paraagent.evaluation import Unit
    from paraagent.paraact.paradigm import Paradigm
    from paraagent.progress import Progress
    from paraagent.task import Task
    from pipelines.home import Home


def evaluate(
    policy: Annotated[list[str], typer.Option(help="oracle, base, sft, rl, local:DIR or openai:MODEL; repeatable.")],
    paradigm: Annotated[list[str] | None, typer.Option(help="paraact, react-ete or react-eae; repeatable.")] = None,
    benchmark: Annotated[str, typer.Option(help="toolenv: our own held-out tasks.")] = "toolenv",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="At most so many tasks.")] = 40,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting, such as agent.concurrency=8.")] = None,
    profile: Annotated[str | None, typer.Option(help="This profile's tasks, not the last run's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run models on held-out tasks: same tasks, same environment, same budget for each policy and paradigm.

    Finished tasks are kept: the same command goes on where it stopped, and a larger --limit adds to it.

    Example: paraagent eval --policy openai:gpt-5 --paradigm paraact --paradigm react-eae -n 20
    """
    import orjson
    from rich.console import Console

    from paraagent.cli.current import current_tasks, made_with
    from paraagent.cli.policies import paradigm_named
    from paraagent.cli.run import display, terminated_is_interrupted
    from paraagent.errors import RunError, UsageError
    from paraagent.evaluation.benchmarks.toolenv import held_out
    from pipelines.home import Home

    if benchmark != "toolenv":
        raise UsageError(f"There is no benchmark {benchmark}: choose toolenv")
    if "person" in policy:
        raise UsageError("A person is not evaluated: play a task with `paraagent env play`")
    home = Home.locate()
    settings, built = made_with(home, profile, set_ or [])
    paradigms = [paradigm_named(name) for name in paradigm or ["paraact"]]
    tasks = held_out(current_tasks(profile), limit, settings.seed)
    if not tasks:
        raise RunError("There is no held-out task: raise `tasks.test`, or add a source with more services")
    progress, shown = display()
    results = []
    with shown, terminated_is_interrupted():
        progress.start(len(tasks) * len(policy) * len(paradigms), "episodes")
        for name in policy:
            for written in paradigms:
                bout = _Bout(name, written, settings, built, tasks)
                results.append(_play(bout, home, profile, progress))
    document = {
        "benchmark": benchmark,
        "tasks": len(tasks),
        "success": {result["system"]: result["success"] for result in results},
        "systems": results,
    }
    if json:
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _show(results, len(tasks), Console())


_SHORTEST, _LONGEST = 8, 28
"""Characters of a policy's name in the table."""


class _Bout(NamedTuple):
    """One policy under one paradigm."""

    policy: str
    paradigm: Paradigm
    settings: Profile
    catalog: Path
    """Folder of the catalog that the tasks are about."""
    tasks: Sequence[Task]

    @property
    def made(self) -> dict[str, Any]:
        """What decides the result."""
        from paraagent.catalog.store import Catalog

        with Catalog.open(self.catalog / "catalog.duckdb") as catalog:
            build = catalog.build_hash
        told = {"model", "base_url", "temperature", "max_tokens", "native_tools", "stop"}
        agent = self.settings.agent.model_dump(include=told) if self.policy.startswith("openai:") else {}
        env = self.settings.env.model_dump(mode="json")
        return {"catalog": build, "env": env, "agent": agent, "seed": self.settings.seed}


def _play(bout: _Bout, home: Home, profile: str | None, progress: Progress) -> dict[str, Any]:
    """Play what is not finished yet, and say what all of it comes to."""
    from paraagent.catalog.store import Catalog
    from paraagent.cli.policies import open_policy
    from paraagent.errors import RunError
    from paraagent.evaluation import plan_units, run_units
    from paraagent.evaluation.runner import BATCHES
    from paraagent.files import canonical_json, read_lines, sha256_bytes, write_json
    from paraagent.retrieval.index import ToolIndex
    from paraagent.toolenv.backends import Backends
    from paraagent.toolenv.env import ToolEnv
    from paraagent.trace import Episode
    from paraagent.traces import MADE
    from pipelines.environment import LLM_CACHE
    from pipelines.evaluate import run_owed
    from pipelines.stage import UnitLog

    settings, made = bout.settings, bout.made
    folder = home.root / "eval" / sha256_bytes(canonical_json(made))[:16]
    name = f"{bout.policy}, {bout.paradigm.name}"
    log = UnitLog(folder, f"{bout.policy}-{bout.paradigm.name}".replace("/", "_").replace(":", "_"))
    batch = settings.evaluate.batch
    local = bout.policy != "oracle" and not bout.policy.startswith("openai:")
    units = plan_units(bout.tasks, BATCHES * batch if local else 1, settings.seed)
    opened: list[Policy] = []

    def player() -> Policy:
        opened.append(open_policy(bout.policy, home, profile, settings, group=batch))
        return opened[-1]

    began = time.monotonic()
    with home.writable(), Catalog.open(bout.catalog / "catalog.duckdb") as catalog:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / MADE, made)
        index = ToolIndex.load(bout.catalog / "index", catalog)
        backends = Backends.open(settings.env, home.root / LLM_CACHE)
        env = partial(ToolEnv, catalog, index, settings.env, backends=backends, paradigm=bout.paradigm)

        causes: list[str] = []

        def run(owed: Sequence[Unit], policy: Policy, finished: Any, failed: Any, ended: Any) -> Any:
            def broke(unit: Unit, error: str) -> None:
                causes.append(error.partition(" broke off: ")[2] or error)
                failed(unit, error)

            return run_units(owed, policy, env, settings.rewards, finished, broke, ended)

        try:
            run_owed(name, units, log, run, player, progress)
        except RunError as error:
            if len(set(causes)) != 1:
                raise
            raise RunError(f"{causes[0]} (every task of {name} that failed did so for this)") from error
    seconds = time.monotonic() - began if opened else None
    kept = {row["unit"]: row["row"] for row in read_lines(log.path)}
    episodes = [Episode.model_validate(kept[task.task_id]) for task in bout.tasks]
    return _summary(bout, episodes, seconds)


def _summary(bout: _Bout, episodes: Sequence[Any], seconds: float | None) -> dict[str, Any]:
    from paraagent.evaluation import score_frame, score_row
    from paraagent.evaluation.metrics import means, success
    from paraagent.rewards.score import score

    settings = bout.settings
    system = bout.policy if bout.paradigm.name == "paraact" else f"{bout.policy} {bout.paradigm.name}"
    pairs = zip(bout.tasks, episodes, strict=True)
    frame = score_frame(
        score_row(system, task, episode, score(task, episode, settings.rewards)) for task, episode in pairs
    )
    turns = [turn for episode in episodes for turn in episode.turns]
    read, written = (sum(getattr(turn, f"{kind}_tokens") for turn in turns) for kind in ("prompt", "completion"))
    prices = settings.agent.input_price, settings.agent.output_price
    return {
        "system": system,
        "policy": bout.policy,
        "paradigm": bout.paradigm.name,
        "success": success(frame, settings.evaluate.confidence),
        "means": means(frame),
        "prompt_tokens": read,
        "completion_tokens": written,
        "cost": (read * prices[0] + written * prices[1]) / 1e6,
        "seconds": None if seconds is None else round(seconds, 1),
    }


def _show(results: list[dict[str, Any]], tasks: int, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from paraagent.cli.episode import shortened

    names = ("paradigm", "solved", "interval", "turns", "a turn", "found", "read", "written", "time")
    rows = []
    for result in results:
        success, mean = result["success"], result["means"]
        found, together = mean["tool_hit_rate"], mean["calls_per_turn"]
        rows.append(
            (
                result["paradigm"],
                f"{success['solved']}/{success['n']}",
                f"{success['low']:.0%}–{success['high']:.0%}",
                f"{mean['turns']:.1f}",
                "–" if together is None else f"{together:.1f}",
                "–" if found is None else f"{found:.0%}",
                f"{result['prompt_tokens']:,}",
                f"{result['completion_tokens']:,}",
                "kept" if result["seconds"] is None else f"{result['seconds']:.1f} s",
            )
        )
    others = sum(max(map(len, column)) + 1 for column in zip(names, *rows, strict=True))
    room = max(_SHORTEST, min(_LONGEST, console.width - others))
    title = f"{tasks} held-out tasks"
    table = Table(
        title=title, title_justify="left", box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False
    )
    table.add_column("policy", no_wrap=True)
    for name in names:
        table.add_column(name, no_wrap=True, justify="left" if name == "paradigm" else "right")
    for result, row in zip(results, rows, strict=True):
        table.add_row(Text(shortened(result["policy"], room)), *row)
    console.print(table)
    console.print(
        "a turn: calls in turns that call; found: share of the tools needed; read, written: tokens", style="dim"
    )
    costs = {result["system"]: result["cost"] for result in results if result["cost"]}
    for system, cost in costs.items():
        console.print(f"{system}: {cost:.4f} at the prices of [agent]", highlight=False, markup=False)
