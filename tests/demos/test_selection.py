"""Selection: every attempt is kept or has a reason, near-duplicates go, and every beginning is balanced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.demos.attempts import Attempt
from paraagent.demos.selection import Facts, Selection, select
from paraagent.demos.sketch import likeness, sketch
from paraagent.trace import Episode
from tests.rewards.builders import episode, turn

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "seven",
    "wise",
    "owls",
    "look",
    "on",
    "from",
    "their",
    "old",
    "oak",
    "tree",
    "at",
    "dusk",
]
SKETCHES = st.lists(st.integers(0, 50), max_size=12).map(lambda values: sorted({*values}))


def told(*texts: str, request: str = "Tell me about it.") -> Episode:
    """An episode of these turns."""
    turns = (turn().model_copy(update={"text": text}) for text in texts)
    return episode(*turns).model_copy(update={"request": request})


def facts(number: int = 0, **changes: Any) -> dict[str, Any]:
    values = {
        "split": "train",
        "shape": "single",
        "width": 1,
        "reach": "service",
        "recoveries": [],
        "targets": ["get"],
        "sketch": [number],
    }
    return values | changes


FACTS = st.builds(
    facts,
    split=st.sampled_from(["train", "validation"]),
    shape=st.sampled_from(["single", "chain"]),
    width=st.integers(1, 2),
    reach=st.sampled_from(["service", "provider"]),
    recoveries=st.sampled_from([[], ["other tool"]]),
    targets=st.sampled_from([["get"], ["put", "get"]]),
    sketch=SKETCHES,
)
ATTEMPTS = st.lists(st.tuples(st.sampled_from(["", "", "", "too long"]), FACTS), max_size=30)


def group(each: Facts) -> tuple[Any, ...]:
    return each["split"], each["shape"], each["width"], each["reach"], tuple(each["recoveries"])


def kept(attempts: Sequence[dict[str, Any]], limit: int = 0, max_likeness: float = 0.9) -> list[int]:
    return select([("", each) for each in attempts], limit, max_likeness).kept


# Likeness


def test_the_same_text_is_wholly_alike() -> None:
    one = told(" ".join(WORDS))
    assert likeness(sketch(one), sketch(one)) == 1.0


def test_values_with_digits_are_one_and_the_same() -> None:
    first = told("look up order ord_17 of 2024-01-31 at 10:45 and say what became of it in v1.2/a7")
    second = told("look up order ord_99 of 2019-11-02 at 23:00 and say what became of it in v9.9/b6")
    assert sketch(first) == sketch(second)


def test_words_are_not_folded() -> None:
    first = told("look up the order of Ada and say what became of it")
    second = told("look up the order of Bob and say what became of it")
    assert 0.2 < likeness(sketch(first), sketch(second)) < 0.9


def test_case_and_white_space_do_not_count() -> None:
    assert sketch(told("Look  UP\nthe order now")) == sketch(told("look up the order now"))


def test_the_request_counts_and_observations_do_not() -> None:
    base = told(" ".join(WORDS))
    seen = base.model_copy(update={"turns": (base.turns[0].model_copy(update={"observation": "a long result"}),)})
    assert sketch(seen) == sketch(base)
    assert sketch(base.model_copy(update={"request": "Something else is asked for."})) != sketch(base)


def test_unrelated_texts_are_hardly_alike() -> None:
    first = told(" ".join(WORDS * 3), request="What of the fox?")
    second = told(" ".join(f"{word}ish" for word in WORDS * 3), request="Name every owl that was seen.")
    assert likeness(sketch(first), sketch(second)) < 0.05


def test_one_word_among_many_matters_little() -> None:
    words = [f"{first}{second}" for first in WORDS for second in WORDS]
    changed = [*words[:200], "another", *words[201:]]
    assert likeness(sketch(told(" ".join(words))), sketch(told(" ".join(changed)))) > 0.85


@pytest.mark.parametrize(
    ("first", "second"), [((0, 300), (184, 484)), ((0, 420), (64, 484)), ((0, 240), (0, 484)), ((100, 484), (300, 420))]
)
def test_likeness_is_the_share_of_common_runs_to_one_part_in_eight(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    """Two windows of one long text."""
    words = [f"{one}{other}" for one in WORDS for other in WORDS]
    sketches = [sketch(told(" ".join(words[slice(*window)]), request="")) for window in (first, second)]
    common, whole = {*range(*first)} & {*range(*second)}, {*range(*first)} | {*range(*second)}
    assert likeness(*sketches) == pytest.approx(len(common) / len(whole), abs=0.125)


@given(SKETCHES, SKETCHES)
def test_likeness_is_a_share_and_has_no_direction(first: list[int], second: list[int]) -> None:
    assert 0.0 <= likeness(first, second) == likeness(second, first) <= 1.0
    assert likeness(first, first) == 1.0


def test_a_sketch_is_small_however_long_the_episode(attempts: list[Attempt]) -> None:
    assert len(sketch(told(*(f"{word} {number}{word}" for number in range(50) for word in WORDS)))) <= 64
    assert all(len(attempt.facts["sketch"]) <= 64 for attempt in attempts)


# Selection


@given(ATTEMPTS, st.integers(0, 4), st.floats(0, 1))
def test_every_attempt_is_kept_or_has_a_reason(
    attempts: list[tuple[str, Facts]], limit: int, max_likeness: float
) -> None:
    chosen = select(attempts, limit, max_likeness)
    assert sorted([*chosen.kept, *chosen.reasons]) == [*range(len(attempts))]
    assert all(chosen.reasons.values())
    assert all(chosen.reasons[place] == reason for place, (reason, _) in enumerate(attempts) if reason)
    assert select(attempts, limit, max_likeness) == chosen


@given(ATTEMPTS, st.integers(1, 4))
def test_no_split_has_more_than_the_limit_and_none_is_cut_short(attempts: list[tuple[str, Facts]], limit: int) -> None:
    limited, free = select(attempts, limit, 0.9), select(attempts, 0, 0.9)
    for split in ("train", "validation"):
        places = [place for place in free.kept if attempts[place][1]["split"] == split]
        assert [place for place in limited.kept if attempts[place][1]["split"] == split] == places[:limit]
    late = {place: reason for place, reason in limited.reasons.items() if place not in free.reasons}
    assert {*late.values()} <= {"more than demos.limit"}


@given(ATTEMPTS, st.floats(0, 1))
def test_no_two_that_are_kept_are_nearly_the_same(attempts: list[tuple[str, Facts]], max_likeness: float) -> None:
    left = [attempts[place][1] for place in select(attempts, 0, max_likeness).kept]
    for place, first in enumerate(left):
        for second in left[:place]:
            alike = likeness(first["sketch"], second["sketch"]) > max_likeness
            assert not (alike and first["targets"] == second["targets"])


@given(ATTEMPTS)
def test_every_beginning_is_balanced(attempts: list[tuple[str, Facts]]) -> None:
    order = [group(attempts[place][1]) for place in select(attempts, 0, 0.9).kept]
    totals = Counter(order)
    for length in range(len(order) + 1):
        counts = Counter(order[:length])
        most = max(counts.values(), default=0)
        assert all(counts[each] >= min(totals[each], most - 1) for each in totals)


def test_of_two_nearly_the_same_the_first_is_kept() -> None:
    same = [facts(sketch=[1, 2, 3]), facts(sketch=[1, 2, 3])]
    assert select([("", each) for each in same], 0, 0.9) == Selection([0], {1: "nearly the same as another"})


def test_a_rejected_attempt_leaves_room_for_its_like() -> None:
    same = [("too long", facts(sketch=[1])), ("", facts(sketch=[1]))]
    assert select(same, 0, 0.9).kept == [1]


def test_the_same_words_about_other_tools_are_not_the_same() -> None:
    assert kept([facts(1, targets=["get"]), facts(1, targets=["put"])]) == [0, 1]


def test_a_likeness_of_one_keeps_even_copies() -> None:
    assert kept([facts(1), facts(1)], max_likeness=1.0) == [0, 1]


def test_what_is_rare_comes_early_and_what_is_frequent_fills_the_end() -> None:
    many = [facts(number) for number in range(8)]
    rare = [facts(20, shape="chain"), facts(21, recoveries=["other tool"])]
    assert {8, 9} < {*kept([*many, *rare])[:3]}
    assert {8, 9} < {*kept([*many, *rare], limit=3)}


def test_nothing_selected_from_nothing() -> None:
    assert select([], 3, 0.9) == Selection([], {})
    assert select([("too long", {})], 3, 0.9) == Selection([], {0: "too long"})


def test_real_attempts_at_one_task_are_told_apart(attempts: list[Attempt]) -> None:
    chosen = select([(attempt.reason, attempt.facts) for attempt in attempts], 0, 0.9)
    assert len(chosen.kept) > len(attempts) / 2
    assert {*chosen.reasons.values()} <= {"nearly the same as another"}
