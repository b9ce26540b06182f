"""Fuzzed episodes: no exception, no stuck episode, one reply a block, and the same bytes again.

`make fuzz` plays 10,000 turns; FUZZ_CATALOG=DIR plays them over a built catalog (`catalog.duckdb` and `index/`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, RewardConfig
from paraagent.files import write_lines
from paraagent.message import Completion
from paraagent.paraact.executor import ERROR_TYPES
from paraagent.paraact.protocol import parse
from paraagent.retrieval.index import ToolIndex
from paraagent.rewards.score import score
from paraagent.task import ReferenceCall
from paraagent.toolenv.backends import Backends
from paraagent.toolenv.env import ToolEnv
from paraagent.toolenv.sample import draw_arguments
from paraagent.trace import Episode
from tests.toolenv.fuzz import DRAWS, Fuzzer
from tests.toolenv.test_chance import TASK, timed

TURNS = int(os.environ.get("FUZZ_TURNS", "400"))
TOOLS = 2_000
"""Tools of a built catalog that calls are made of."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"controller": "strict"},
    {"fault_rate": 0.3, "latency": "lognormal", "call_timeout": 1.0},
    {"max_observation_chars": 200, "max_result_chars": 60, "max_turn_chars": 500},
    {"backends": ["recorded", "grounded"], "max_turns": 40},
    {"backends": ["recorded"], "latency": "few-slow"},
)


class World:
    """What fuzzed episodes are played over."""

    def __init__(self, catalog: Catalog, index: ToolIndex, tools: list[ToolInterface], recordings: Path) -> None:
        self.catalog, self.index, self.tools = catalog, index, tools
        write_lines(recordings, [{"tool": tool.name, "arguments": {}, "response": [tool.name]} for tool in tools])
        drawn = [draw_arguments(tool, seed) or {} for tool in tools for seed in range(DRAWS)]
        known = ReferenceCall(id="c1", tool="", arguments={"known": drawn})
        self.task = TASK.model_copy(update={"calls": (*TASK.calls, known)})
        """Gives away what the calls name, so that most of what they ask for exists."""
        configs = [EnvConfig(**settings, recordings=[str(recordings)]) for settings in SETTINGS]
        self.open = [(config, Backends.open(config)) for config in configs]

    async def play(self, seed: int) -> Episode:
        """One episode until it ends, its replies checked; what is left open is answered."""
        config, backends = self.open[seed % len(self.open)]
        fuzzer, env = Fuzzer(seed, self.tools), ToolEnv(self.catalog, self.index, config, backends=backends)
        env.reset(self.task, seed)
        for _ in range(config.max_turns):
            text = fuzzer.turn()
            step = await env.step(Completion(text))
            blocks = parse(text.encode("utf-8", "replace").decode()).blocks
            replies = step.observation.count("<tools>\n") + step.observation.count("<tool_response>\n")
            assert replies == (max(len(blocks), 1) if env.turns[-1].family != "answer" else 0)
            assert len(step.observation) <= config.max_turn_chars + 400 * len(blocks) + 400
            if step.done:
                break
        assert step.done
        with pytest.raises(RuntimeError, match="call reset first"):
            await env.step(Completion("<think>t</think><answer>more</answer>"))
        return env.episode("fuzz")


@pytest.fixture
def world(tiny_catalog: Catalog, tiny_index: ToolIndex, tmp_path: Path) -> Iterator[World]:
    folder = os.environ.get("FUZZ_CATALOG")
    if not folder:
        tools = tiny_catalog.get_many(tiny_catalog.names())
        yield World(tiny_catalog, tiny_index, list(tools.values()), tmp_path / "calls.jsonl")
        return
    with Catalog.open(Path(folder) / "catalog.duckdb") as catalog:
        names = catalog.names()
        tools = catalog.get_many(names[:: max(len(names) // TOOLS, 1)])
        index = ToolIndex.load(Path(folder) / "index", catalog)
        yield World(catalog, index, list(tools.values()), tmp_path / "calls.jsonl")


@pytest.mark.timeout(0)
def test_nothing_that_can_be_written_breaks_an_episode(world: World) -> None:
    turns, seed, seen = 0, 0, Counter[str]()
    while turns < TURNS:
        episode, _ = timed(world.play(seed))
        assert Episode.model_validate_json(episode.model_dump_json()) == episode
        assert -1.0 < score(world.task, episode, RewardConfig()).trajectory < 2.5
        if seed % 8 == 0:
            assert timed(world.play(seed))[0] == episode
        for call in episode.calls:
            assert call.error is None or (call.error.type in ERROR_TYPES and call.error.msg)
            assert call.error is None or "broke off" not in call.error.msg, (seed, call)
        seen.update(f"{turn.family} turns" for turn in episode.turns)
        seen.update(call.error.type if call.error else "success" for call in episode.calls)
        turns, seed = turns + len(episode.turns), seed + 1
    print(f"\n{turns} turns in {seed} episodes: {dict(sorted(seen.items()))}")
    assert {"search turns", "call turns", "mixed turns", "invalid turns", "answer turns"} <= set(seen)
    assert {"success", "InvalidRequestError", "ToolNotFoundError", "NotFoundError", "TimeoutError"} <= set(seen)
