"""Agreement: how far what a model writes in place of a tool is what the tool was to answer.

An answer is read as the backend `llm` reads it. The values of the grounded world follow from its seed, which no model
sees; how far another world agrees is therefore measured beside it: what can be known from the call alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from paraagent.llm import read_json
from paraagent.paraact.jsontext import JsonTextError
from paraagent.toolenv.language import envelope
from paraagent.training.pairs import Pair
from paraagent.validators import compile_validator


class Verdict(NamedTuple):
    """One answer beside the right one."""

    envelope: bool
    """It holds JSON of the form `{"error", "response"}`."""
    valid: bool
    """Its response satisfies the tool's result schema too: the backend would take it."""
    outcome: bool
    """It is taken, and a success or the same kind of error."""
    fields: float | None
    """Share of the fields of the right response that it has; None where the right answer is an error."""
    values: float | None
    """Share of them that hold the same value."""


def judge(pair: Pair, text: str) -> Verdict:
    """Compare what was written with the answer of the pair."""
    formed, said = _read(text, None), _read(text, pair.tool.returns)
    outcome = "" if said is None else said["error"]["type"] if said["error"] else "success"
    verdict = Verdict(formed is not None, said is not None, outcome == pair.outcome, None, None)
    if pair.response.error is not None:
        return verdict
    right = dict(_leaves(pair.response.result))
    given = dict(_leaves(said["response"])) if said is not None and outcome == "success" else {}
    there = [path for path in right if path in given]
    same = sum(_equal(right[path], given[path]) for path in there)
    return verdict._replace(fields=len(there) / len(right), values=same / len(right))


def summarise_agreement(pairs: Sequence[Pair], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Means over the answers, and of `outcome` by the right one; None where there is nothing to take a mean of."""
    by_outcome = defaultdict(list)
    for pair, verdict in zip(pairs, verdicts, strict=True):
        by_outcome[pair.outcome].append(verdict.outcome)
    return {
        **{name: _mean([getattr(verdict, name) for verdict in verdicts]) for name in Verdict._fields},
        "outcomes": {name: _mean(agreed) for name, agreed in sorted(by_outcome.items())},
    }


def _read(text: str, returns: dict[str, Any] | None) -> Any:
    try:
        return read_json(text, compile_validator(envelope(returns)))
    except JsonTextError:
        return None


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Place and value of everything that holds nothing else, empty objects and lists included."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = list(parts)
    if not inner:
        yield path, value
    for name, part in inner:
        yield from _leaves(part, (*path, name))


def _equal(first: Any, second: Any) -> bool:
    """5 and 5.0 are one number, 1 and true are not."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None
