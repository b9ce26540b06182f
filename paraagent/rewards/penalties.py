"""P, what an episode loses: protocol + repeat + dag, each a pure function of the trace."""

from __future__ import annotations

from collections import Counter, defaultdict

from paraagent.config import RewardConfig
from paraagent.files import canonical_json
from paraagent.paraact.executor import RETRYABLE
from paraagent.paraact.protocol import call_identity, fold
from paraagent.paraact.references import ancestors, needs
from paraagent.task import Task
from paraagent.trace import Call, Episode


def penalty(task: Task, episode: Episode, config: RewardConfig) -> float:
    """0.25 · (protocol + repeat + dag)."""
    parts = protocol_penalty(task, episode, config), repeat_penalty(episode, config), dag_penalty(task, episode, config)
    return config.penalty * sum(parts)


def protocol_penalty(task: Task, episode: Episode, config: RewardConfig) -> float:
    """0.5 for one of: searched, then answered with no call; called with no search at all; answered with neither.

    The first and the last are waived where the task's right behaviour makes no call.
    """
    searched, called, answered = bool(episode.searches), bool(_named(episode)), episode.answer is not None
    if called:
        return 0.0 if searched else config.penalty_protocol
    return config.penalty_protocol if answered and task.calls else 0.0


def repeat_penalty(episode: Episode, config: RewardConfig) -> float:
    """0.2 · min(1, n/7) for each of n repeated plans, n repeated searches and n repeated calls."""
    plans = Counter(
        turn.plan.raw.strip().encode() if turn.plan.body is None else canonical_json(turn.plan.body)
        for turn in episode.turns
        if turn.plan
    )
    searches = Counter(fold(" ".join(search.query.split())) for search in episode.searches)
    counts = plans.total() - len(plans), searches.total() - len(searches), repeated_calls(episode)
    return sum(config.penalty_repeat * min(1.0, n / config.penalty_repeat_full) for n in counts)


def repeated_calls(episode: Episode) -> int:
    """Calls beyond the first of their identity; one repeat is free unless the call had failed for good before it."""
    attempts: dict[tuple[str, bytes], list[Call]] = defaultdict(list)
    for call in _named(episode):
        attempts[call_identity(call.name, call.arguments)].append(call)
    return sum(len(calls) - 1 - (len(calls) > 1 and not _for_good(calls[0])) for calls in attempts.values())


def dag_penalty(task: Task, episode: Episode, config: RewardConfig) -> float:
    """0.3 · share of the task's hard edges whose two calls were both sent and never in order.

    In order is: the first call in an earlier turn than the second, or the second refers to the first within a turn.
    Sent in one turn without that, or the other way round, is not.
    """
    turns: dict[str, list[int]] = defaultdict(list)
    referred: set[tuple[str, str]] = set()
    for number, turn in enumerate(episode.turns):
        names = [fold(call.name) for call in turn.calls]
        for name in names:
            turns[name].append(number)
        before = ancestors(needs([(call.name, call.references) for call in turn.calls]))
        referred |= {(names[first], names[second]) for second, places in enumerate(before) for first in places}
    tools = {call.id: fold(call.tool) for call in task.calls}
    pairs = [(tools[first], tools[second]) for first, second in task.hard_edges]
    sent = [(turns.get(first, []), turns.get(second, [])) for first, second in pairs]
    violated = sum(
        bool(earlier and later and min(earlier) >= max(later)) and pair not in referred
        for pair, (earlier, later) in zip(pairs, sent, strict=True)
    )
    return config.penalty_dag * violated / len(sent) if sent else 0.0


def _named(episode: Episode) -> list[Call]:
    """Calls that could be read."""
    return [call for call in episode.calls if call.name]


def _for_good(call: Call) -> bool:
    return call.error is not None and not call.injected and call.error.type not in RETRYABLE
