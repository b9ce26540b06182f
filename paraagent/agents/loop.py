"""The loop: a policy and many episodes.

Each episode goes at its own pace, so that a slow tool or a slow answer delays no other. Where what shares a batch is
part of the result, episodes go in lockstep instead: one `act` call for all live conversations, then all environments
whose turn is finished step at once, and the next units take the places of the episodes that ended. So who shares a
batch is part of the plan, not of timing. An exception ends the episode that raised it, with `end="error"`, and no
other.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from paraagent.agents.policy import Completion, Conversation, Policy
from paraagent.errors import ParaAgentError
from paraagent.task import Task
from paraagent.toolenv.env import Step, ToolEnv
from paraagent.trace import Episode


class Rollout(NamedTuple):
    """An episode and what its policy saw of it (messages, tokens, mask)."""

    episode: Episode
    conversation: Conversation


class _Live(NamedTuple):
    env: ToolEnv
    conversation: Conversation


def _nothing() -> None:
    pass


async def run_episodes(
    policy: Policy,
    env: Callable[[], ToolEnv],
    units: Sequence[tuple[Task, int]],
    ended: Callable[[], None] = _nothing,
) -> list[Episode]:
    """Run every (task, seed); the episodes come in the order of the units. `ended` is called after each of them."""
    return [rollout.episode for rollout in await run_rollouts(policy, env, units, ended)]


async def run_rollouts(
    policy: Policy,
    env: Callable[[], ToolEnv],
    units: Sequence[tuple[Task, int]],
    ended: Callable[[], None] = _nothing,
) -> list[Rollout]:
    """Like `run_episodes`, with the conversations. Where this is cancelled, nothing is left running."""
    if policy.lockstep:
        return await _play(policy, env, units, ended)
    slots = asyncio.Semaphore(policy.group)

    async def play(unit: tuple[Task, int]) -> Rollout:
        async with slots:
            return (await _play(policy, env, [unit], ended))[0]

    return list(await asyncio.gather(*map(play, units)))


def _begin(env: ToolEnv, task: Task, seed: int) -> _Live:
    messages = env.reset(task, seed)
    own = Conversation(task, seed, messages, paradigm=env.paradigm, found=lambda: env.found, phase=lambda: env.phase)
    return _Live(env, own)


async def _play(
    policy: Policy, env: Callable[[], ToolEnv], units: Sequence[tuple[Task, int]], ended: Callable[[], None]
) -> list[Rollout]:
    """Play units, at most `policy.group` at once; the rollouts come in the order of the units."""
    waiting = iter(enumerate(units))
    live: dict[int, _Live] = {}
    played: dict[int, Rollout] = {}
    while len(played) < len(units):
        for place, (task, seed) in itertools.islice(waiting, policy.group - len(live)):
            live[place] = _begin(env(), task, seed)
        completions = await _act(policy, [each.conversation for each in live.values()])
        turns = {place: done for place, done in zip(live, completions, strict=True) if done is not None}
        goes_on = await asyncio.gather(*(_step(live[place], done) for place, done in turns.items()))
        for place, on in zip(turns, goes_on, strict=True):
            if not on:
                gone = live.pop(place)
                played[place] = Rollout(gone.env.episode(policy.name), gone.conversation)
                ended()
    return [played[place] for place in range(len(units))]


async def _act(policy: Policy, conversations: Sequence[Conversation]) -> list[Completion | Exception | None]:
    """A completion or an error for each conversation, None where its turn is not finished.

    Where the common call fails, each conversation is tried on its own.
    """
    lengths = [len(conversation.token_ids) for conversation in conversations]
    try:
        completions = await policy.act(conversations)
        if len(completions) == len(conversations) and any(completion is not None for completion in completions):
            return list(completions)
        given = sum(completion is not None for completion in completions)
        error = RuntimeError(f"{policy.name} gave {given} completions for {len(conversations)} conversations")
    except ParaAgentError as raised:
        error = RuntimeError(str(raised))
    except Exception as raised:
        error = RuntimeError(f"{type(raised).__name__}: {raised}")
    for conversation, length in zip(conversations, lengths, strict=True):
        del conversation.token_ids[length:], conversation.model_mask[length:]
    if len(conversations) == 1:
        return [error]
    return [(await _act(policy, [conversation]))[0] for conversation in conversations]


async def _step(live: _Live, completion: Completion | Exception) -> bool:
    """Carry out one turn of one episode; returns whether it goes on."""
    if isinstance(completion, Exception):
        live.env.fail(str(completion))
        return False
    try:
        step: Step = await live.env.step(completion)
    except Exception as error:
        live.env.fail(f"{type(error).__name__}: {error}")
        return False
    if not completion.exhausted:
        live.conversation.messages.append({"role": "assistant", "content": completion.text})
    if not step.done:
        live.conversation.messages.append({"role": "user", "content": step.observation})
    return not step.done
