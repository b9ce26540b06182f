"""The loop: a policy and many episodes.

Each episode goes at its own pace, so that a slow tool or a slow answer delays no other. Where what shares a batch is
part of the result, episodes go in lockstep instead: consecutive slices of the units make one `act` call for all their
live conversations, then step all their environments at once, so that the batches are part of the plan, not of timing.
An exception ends the episode that raised it, with `end="error"`, and no other.
"""

from __future__ import annotations

import asyncio
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


async def run_episodes(policy: Policy, env: Callable[[], ToolEnv], units: Sequence[tuple[Task, int]]) -> list[Episode]:
    """Run every (task, seed); the episodes come in the order of the units."""
    return [rollout.episode for rollout in await run_rollouts(policy, env, units)]


async def run_rollouts(policy: Policy, env: Callable[[], ToolEnv], units: Sequence[tuple[Task, int]]) -> list[Rollout]:
    """Like `run_episodes`, with the conversations. Where this is cancelled, nothing is left running."""
    slots = asyncio.Semaphore(1 if policy.lockstep else policy.group)
    size = policy.group if policy.lockstep else 1

    async def play(some: Sequence[tuple[Task, int]]) -> list[Rollout]:
        async with slots:
            group = [_begin(env(), task, seed) for task, seed in some]
            await _run_group(policy, group)
        return [Rollout(live.env.episode(policy.name), live.conversation) for live in group]

    groups = [units[start : start + size] for start in range(0, len(units), size)]
    return [rollout for rollouts in await asyncio.gather(*map(play, groups)) for rollout in rollouts]


def _begin(env: ToolEnv, task: Task, seed: int) -> _Live:
    messages = env.reset(task, seed)
    own = Conversation(task, seed, messages, paradigm=env.paradigm, found=lambda: env.found, phase=lambda: env.phase)
    return _Live(env, own)


async def _run_group(policy: Policy, group: Sequence[_Live]) -> None:
    live = list(group)
    while live:
        completions = await _act(policy, [each.conversation for each in live])
        goes_on = await asyncio.gather(*(_step(each, done) for each, done in zip(live, completions, strict=True)))
        live = [each for each, on in zip(live, goes_on, strict=True) if on]


async def _act(policy: Policy, conversations: Sequence[Conversation]) -> list[Completion | Exception]:
    """One completion or error a conversation. Where the common call fails, each conversation is tried on its own."""
    lengths = [len(conversation.token_ids) for conversation in conversations]
    try:
        completions = await policy.act(conversations)
        if len(completions) == len(conversations):
            return list(completions)
        error = RuntimeError(
            f"{policy.name} gave {len(completions)} completions for {len(conversations)} conversations"
        )
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
