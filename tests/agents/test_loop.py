"""The loop: groups in lockstep, and an episode that breaks takes no other with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from paraagent.agents.loop import run_episodes, run_rollouts
from paraagent.agents.oracle import OraclePolicy, Pace
from paraagent.agents.policy import Completion, Conversation
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, RewardConfig
from paraagent.paraact.paradigm import PARADIGMS
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.rewards.score import score
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import ParadigmName
from tests.agents.tasks import task_of


@pytest.fixture(scope="module")
def env(
    tiny_catalog: Catalog, tiny_catalog_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], ToolEnv]:
    out = tmp_path_factory.mktemp("index")
    build_index(tiny_catalog_path, out)
    index = ToolIndex.load(out)
    return lambda: ToolEnv(tiny_catalog, index, EnvConfig())


@pytest.fixture(scope="module")
def tasks(tiny_catalog: Catalog) -> list[Task]:
    """Three tasks in three worlds: one call, two calls of two tools, two calls of one tool."""
    order = ("look up one customer order", "orders_get_order", {"order_id": "ord_1"}, "status")
    other = ("look up one customer order", "orders_get_order", {"order_id": "ord_2"}, "total")
    ticket = ("retrieve a support ticket", "tickets_GetTicket", {"ticketId": "tck_6080e5"}, "subject")
    return [
        task_of(tiny_catalog, "single", 11, [order]),
        task_of(tiny_catalog, "two", 12, [order, ticket]),
        task_of(tiny_catalog, "twice", 13, [order, other]),
    ]


def test_the_oracle_scores_full_marks(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    for task, episode in zip(
        tasks, asyncio.run(run_episodes(OraclePolicy(), env, [(task, 1) for task in tasks])), strict=True
    ):
        rewards = score(task, episode, RewardConfig())
        assert (rewards.outcome, rewards.step, rewards.penalty, rewards.trajectory) == (1.5, 0.5, 0.0, 2.0)
        assert (rewards.phase, rewards.format, rewards.solved) == (0.5, 1.0, True)
        assert [turn.family for turn in episode.turns] == ["search", "call", "answer"]


@pytest.mark.parametrize("group", [1, 2, 64])
def test_the_same_seed_leaves_the_same_bytes_in_any_group(
    env: Callable[[], ToolEnv], tasks: list[Task], group: int
) -> None:
    units = [(task, seed) for seed in range(3) for task in tasks]
    alone = [asyncio.run(run_episodes(OraclePolicy(), env, [unit]))[0].model_dump_json() for unit in units]
    together = asyncio.run(run_episodes(OraclePolicy(group=group), env, units))
    assert [episode.model_dump_json() for episode in together] == alone


def test_the_oracle_varies_its_words_with_the_seed(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    episodes = asyncio.run(run_episodes(OraclePolicy(), env, [(tasks[1], seed) for seed in range(12)]))
    assert len({episode.turns[0].think for episode in episodes}) > 1


def test_the_oracle_reads_its_answer_from_the_world_it_meets(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    moved = tasks[0].model_copy(update={"seed": 99})
    [episode] = asyncio.run(run_episodes(OraclePolicy(), env, [(moved, 1)]))
    assert episode.answer == f"The status is {episode.calls[0].result['status']}."


class Scripted:
    """Answers at once, and does something strange for the tasks named."""

    name = "scripted"
    group = 8
    lockstep = True

    def __init__(self, breaks: str = "", short: bool = False) -> None:
        self.breaks, self.short, self.asked = breaks, short, list[int]()
        self.seen = list[list[int]]()

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        self.asked.append(len(conversations))
        for conversation in conversations:
            conversation.token_ids.append(1)
            conversation.model_mask.append(1)
            if conversation.task.task_id == self.breaks:
                raise ConnectionError("gone")
        completions = [Completion("<think>t</think><answer>x</answer>") for _ in conversations]
        return completions[1:] if self.short else completions


def test_one_exception_ends_one_episode(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    rollouts = asyncio.run(run_rollouts(Scripted(breaks="two"), env, [(task, 1) for task in tasks]))
    assert [rollout.episode.end for rollout in rollouts] == ["answer", "error", "answer"]
    assert rollouts[1].episode.error == "ConnectionError: gone"
    assert [rollout.conversation.token_ids for rollout in rollouts] == [[1], [], [1]]


def test_a_policy_that_loses_completions_is_an_error(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [episode] = asyncio.run(run_episodes(Scripted(short=True), env, [(tasks[0], 1)]))
    assert (episode.end, episode.error) == ("error", "scripted gave 0 completions for 1 conversations")


def test_an_environment_that_breaks_ends_its_own_episode(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    made: list[ToolEnv] = []

    def make() -> ToolEnv:
        made.append(env())
        if len(made) == 2:
            made[1].catalog = None  # type: ignore[assignment]
        return made[-1]

    episodes = asyncio.run(run_episodes(OraclePolicy(), make, [(task, 1) for task in tasks]))
    assert [episode.end for episode in episodes] == ["answer", "error", "answer"]


def test_one_act_call_serves_a_whole_group(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    policy = Scripted()
    asyncio.run(run_episodes(policy, env, [(task, seed) for seed in range(4) for task in tasks]))
    assert policy.asked == [8, 4]


class Unhurried(Scripted):
    """Finishes the turn of its first conversation alone, and is still writing the others."""

    group = 3

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion | None]:  # type: ignore[override]
        self.seen.append([conversation.seed for conversation in conversations])
        return [Completion("<think>t</think><answer>x</answer>"), *[None] * (len(conversations) - 1)]


def test_the_next_episode_takes_the_place_of_one_that_ended(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    policy = Unhurried()
    episodes = asyncio.run(run_episodes(policy, env, [(tasks[0], seed) for seed in range(5)]))
    assert policy.seen == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4], [4]]
    assert [episode.seed for episode in episodes] == [0, 1, 2, 3, 4]
    assert [episode.end for episode in episodes] == ["answer"] * 5


def test_a_policy_that_finishes_no_turn_is_an_error(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    class Stuck(Scripted):
        async def act(self, conversations: Sequence[Conversation]) -> list[Completion | None]:  # type: ignore[override]
            return [None for _ in conversations]

    [episode] = asyncio.run(run_episodes(Stuck(), env, [(tasks[0], 1)]))
    assert (episode.end, episode.error) == ("error", "scripted gave 0 completions for 1 conversations")


def test_the_conversation_holds_every_message(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [rollout] = asyncio.run(run_rollouts(OraclePolicy(), env, [(tasks[0], 1)]))
    said = [(message["role"], message["content"]) for message in rollout.conversation.messages]
    turns = rollout.episode.turns
    assert said == [
        ("system", rollout.episode.system),
        ("user", tasks[0].request),
        ("assistant", turns[0].text),
        ("user", turns[0].observation),
        ("assistant", turns[1].text),
        ("user", turns[1].observation),
        ("assistant", turns[2].text),
    ]


class Waiting(OraclePolicy):
    """The oracle, whose first turn of one task waits until every other episode has ended."""

    def __init__(self, holds: str, others: int) -> None:
        super().__init__()
        self.holds, self.others, self.answered = holds, others, 0
        self.free = asyncio.Event()

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        [conversation] = conversations
        if conversation.task.task_id == self.holds:
            await self.free.wait()
        completions = await super().act(conversations)
        self.answered += "<answer>" in completions[0].text
        if self.answered == self.others:
            self.free.set()
        return completions


def test_an_episode_that_waits_holds_up_no_other(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    async def play() -> list[str]:
        units = [(task, 1) for task in tasks]
        episodes = await asyncio.wait_for(run_episodes(Waiting("single", len(tasks) - 1), env, units), timeout=30)
        return [episode.end for episode in episodes]

    assert asyncio.run(play()) == ["answer"] * 3


def test_cancelled_episodes_leave_nothing_running(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    async def play() -> None:
        others = asyncio.all_tasks()
        policy = Waiting("single", others=99)  # waits for ever
        running = asyncio.create_task(run_episodes(policy, env, [(task, 1) for task in tasks]))
        while policy.answered < 2:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == others

    asyncio.run(asyncio.wait_for(play(), timeout=30))


@pytest.mark.parametrize("paradigm", ["paraact", "react-ete", "react-eae"])
def test_the_oracle_solves_what_a_paradigm_lets_it_find(
    env: Callable[..., ToolEnv], tasks: list[Task], paradigm: ParadigmName
) -> None:
    made = env()
    under = partial(ToolEnv, made.catalog, made.index, EnvConfig(k_request=5), paradigm=PARADIGMS[paradigm])
    for task, episode in zip(
        tasks, asyncio.run(run_episodes(OraclePolicy(), under, [(task, 1) for task in tasks])), strict=True
    ):
        assert (episode.paradigm, episode.end) == (paradigm, "answer")
        assert score(task, episode, RewardConfig()).solved
        assert all(turn.well_formed for turn in episode.turns)
        searched = sum(len(turn.searches) for turn in episode.turns)
        if paradigm == "paraact":
            assert len(episode.turns) == 3
        else:
            assert max(len(turn.calls) + len(turn.searches) for turn in episode.turns) == 1
            assert all(turn.plan is None and turn.plan_rule_kept for turn in episode.turns)
        assert (searched == 0) == (paradigm == "react-ete")
        assert bool(episode.opening) == (paradigm == "react-ete")


@pytest.mark.parametrize(("pace", "turns"), [("layers", [3, 3, 3]), ("single", [3, 5, 4]), ("references", [3, 3, 3])])
def test_a_pace_decides_the_turns_and_not_the_outcome(
    env: Callable[[], ToolEnv], tasks: list[Task], pace: Pace, turns: list[int]
) -> None:
    units = [(task, 1) for task in tasks]
    episodes = asyncio.run(run_episodes(OraclePolicy(pace=pace), env, units))
    assert [len(episode.turns) for episode in episodes] == turns
    assert all(score(task, episode, RewardConfig()).solved for task, episode in zip(tasks, episodes, strict=True))
