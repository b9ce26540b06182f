"""How fast ToolEnv answers calls, and what its episodes cost in memory, measured in a fresh process on one core.

A warm call is one of a tool that was called before, in a world that has not answered it yet: arguments are checked, the
world answers, the result is encoded, in a process that looks for cyclic garbage as seldom as the workers of the
pipeline do. Its floor is what no world can save: checking the same arguments, validating the same results against the
tools' schemas, and encoding them, with the same libraries.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import psutil

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.paraact.protocol import CallBlock, ParsedTurn, render
from paraagent.progress import Progress
from paraagent.retrieval.index import ToolIndex
from paraagent.seeds import derive, rng
from paraagent.task import Task
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.compiled import compiled_tool
from paraagent.toolenv.env import ToolEnv
from paraagent.toolenv.sample import draw_call
from paraagent.toolenv.simulator import GroundedSimulator
from paraagent.workers import collect_seldom

_ROUNDS = 10
"""Worlds in which every call is made, and as many rounds of the floor."""
_SLICE = 50
"""Calls between two looks at the processor's clock, and results held at once."""
_TURNS = 4
"""Calls of each episode that is kept in memory."""

_TASK = Task(
    task_id="bench",
    request="Look something up.",
    shape="single",
    width=1,
    reach="service",
    split="test",
    seed=0,
    slots=(),
    calls=(),
    atoms=(),
)

Drawn = tuple[ToolInterface, dict[str, Any]]


def bench_env(catalog: Path, index: Path, tools: int, episodes: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Times and memory in a fresh process that does nothing else.

    Returns:
        `calls_per_second` of warm calls and `floor_calls_per_second`, by the processor's time so that neighbours on
        the machine do not count, and the `ratio` of the two; by the clock `p50_ms` and `p99_ms` of a warm
        call, `cold_p50_ms` and `cold_p99_ms` of a tool's first; `episodes` at once and `episodes_rss_bytes`, what they
        need beside catalog and index, compiled tools included; `tools` called, `seed`.
    """
    progress.message(f"drawing {tools:,} tools and making up calls")
    with Catalog.open(catalog) as opened:
        drawn = list(draw_calls(opened, tools, seed))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=collect_seldom) as pool:
        progress.message(f"calling each of them, then in {_ROUNDS} more worlds")
        times = pool.submit(_time, drawn, seed).result()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        progress.message(f"playing {episodes:,} episodes side by side")
        memory = pool.submit(_remember, catalog, index, drawn, episodes).result()
    return {**times, "episodes": episodes, "episodes_rss_bytes": memory, "tools": len(drawn), "seed": seed}


def _time(drawn: Sequence[Drawn], seed: int) -> dict[str, Any]:
    cold = [_seconds(each, GroundedSimulator(seed)) for each in drawn]
    spent, floor, warm = 0.0, 0.0, list[float]()
    for number in range(_ROUNDS):
        simulator = GroundedSimulator(derive(seed, "bench", number))
        for start in range(0, len(drawn), _SLICE):
            part = drawn[start : start + _SLICE]
            began = time.process_time()
            results = [_answer(tool, arguments, simulator) for tool, arguments in part]
            between = time.process_time()
            for (tool, arguments), result in zip(part, results, strict=True):
                check_arguments(tool, arguments)
                compiled_tool(tool).valid(result)
                orjson.dumps(result)
            floor += time.process_time() - between
            spent += between - began
        simulator = GroundedSimulator(derive(seed, "clock", number))
        warm += [_seconds(each, simulator) for each in drawn]
    calls = _ROUNDS * len(drawn)
    return {
        "calls_per_second": round(calls / spent),
        "floor_calls_per_second": round(calls / floor),
        "ratio": round(floor / spent, 3),
        "p50_ms": _milliseconds(warm, 0.5),
        "p99_ms": _milliseconds(warm, 0.99),
        "cold_p50_ms": _milliseconds(cold, 0.5),
        "cold_p99_ms": _milliseconds(cold, 0.99),
    }


def _answer(tool: ToolInterface, arguments: dict[str, Any], simulator: GroundedSimulator) -> Any:
    """One call, from its arguments to the encoded result."""
    check_arguments(tool, arguments)
    response = simulator.call(tool, arguments)
    orjson.dumps(response.result)
    return response.result


def _seconds(call: Drawn, simulator: GroundedSimulator) -> float:
    """How long a call takes by the clock."""
    began = time.perf_counter()
    _answer(*call, simulator)
    return time.perf_counter() - began


def _milliseconds(seconds: Sequence[float], q: float) -> float:
    return round(float(np.quantile(seconds, q)) * 1e3, 4)


def draw_calls(catalog: Catalog, n: int, seed: int) -> Iterator[Drawn]:
    """First calls of `n` tools drawn at random; left out are those whose arguments are too hard to make."""
    names = catalog.names()
    rng(seed, "bench").shuffle(names)
    made = 0
    for start in range(0, len(names), n):
        for tool in catalog.get_many(names[start : start + n]).values():
            if made < n and (arguments := draw_call(tool, derive(seed, tool.name))) is not None:
                made += 1
                yield tool, arguments
        if made >= n:
            return


def _remember(path: Path, index: Path, drawn: Sequence[Drawn], episodes: int) -> int:
    """Resident bytes that these episodes add to a process with catalog and index open."""
    with Catalog.open(path) as catalog:
        found = ToolIndex.load(index)
        found.search(["list events"], 3)
        gc.collect()
        before = psutil.Process().memory_info().rss
        envs = asyncio.run(_play(catalog, found, drawn, episodes))
        gc.collect()
        after = psutil.Process().memory_info().rss
        assert len(envs) == episodes
        return after - before


async def _play(catalog: Catalog, index: ToolIndex, drawn: Sequence[Drawn], episodes: int) -> list[ToolEnv]:
    envs = []
    for number in range(episodes):
        env = ToolEnv(catalog, index, EnvConfig())
        env.reset(_TASK.model_copy(update={"seed": number}), number)
        for turn in range(_TURNS):
            tool, arguments = drawn[(number * _TURNS + turn) % len(drawn)]
            block = CallBlock(name=tool.name, arguments=arguments)
            await env.step(Completion(render(ParsedTurn(think="One call.", blocks=(block,)))))
        envs.append(env)
    return envs
