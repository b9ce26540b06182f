"""R_outcome by hand: what an answer states, and what a guess earns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.rewards.atoms import states
from paraagent.rewards.outcome import outcome_reward
from paraagent.task import StateChange
from paraagent.trace import Change, Turn
from tests.rewards.builders import CONFIG, call, episode, search, task, turn

WORKED = (turn(search("a")), turn(call("a")))


@pytest.mark.parametrize(
    ("atoms", "answer", "reward"),
    [
        (["Ada"], "It is Ada.", 1.5),
        (["Ada", 12], "Ada has 12.", 1.5),
        (["Ada", 12], "Ada has 13.", 0.25),
        (["Ada", 12, "x1"], "12", 0.5 / 3),
        (["Ada"], "It is Bob.", -0.5),
        (["Ada"], None, -0.5),
        ([], "It is Ada.", -0.5),
    ],
)
def test_the_share_of_stated_atoms_decides(atoms: list[Any], answer: str | None, reward: float) -> None:
    assert outcome_reward(task("a", atoms=atoms), episode(*WORKED, answer=answer), CONFIG) == pytest.approx(reward)


def test_a_right_guess_without_a_successful_call_earns_nothing() -> None:
    for turns in ((), (turn(search("a")),), (turn(call("a", "NotFoundError")),), (turn(call("a", visible=False)),)):
        assert outcome_reward(task("a"), episode(*turns), CONFIG) == -0.5


def test_a_task_that_needs_no_tool_is_answered_without_one() -> None:
    assert outcome_reward(task(), episode(), CONFIG) == 1.5


def test_a_task_that_needs_no_tool_earns_nothing_once_a_call_was_made() -> None:
    assert outcome_reward(task(), episode(*WORKED), CONFIG) == -0.5


def change(key: str = "0a", deleted: bool = False, links: dict[str, Any] | None = None, **fields: Any) -> Change:
    return Change(kind="shop.example/orders order", key=key, deleted=deleted, fields=fields, links=links or {})


SHIPPED = StateChange(call="a", thing=change(status="shipped", links={"shop.example/orders:customer.id": "cus_1"}))
LINKS = {"shop.example/orders:customer.id": "cus_1"}


@pytest.mark.parametrize(
    ("left", "reward"),
    [
        ([change(status="shipped", links=LINKS)], 1.5),
        ([change(key="0b"), change(status="shipped", note="late", links=LINKS)], 1.5),
        ([change(status="lost", links=LINKS)], 0.25),
        ([change(status="shipped")], 0.25),
        ([change(key="0b", status="shipped", links=LINKS)], 0.25),
        ([change(key="", status="shipped", links=LINKS)], 0.25),
        ([change(status="shipped", links=LINKS, deleted=True)], 0.25),
        ([], 0.25),
    ],
)
def test_what_is_left_in_the_world_counts_like_a_fact(left: list[Change], reward: float) -> None:
    writing = task("orders_ship").model_copy(update={"state": (SHIPPED,)})
    assert outcome_reward(writing, episode(*WORKED, changes=left), CONFIG) == reward


def test_which_tool_was_called_does_not_matter_to_what_is_left() -> None:
    writing = task("orders_ship", atoms=[]).model_copy(update={"state": (SHIPPED,)})
    done = change(status="shipped", links=LINKS)
    for name in ("orders_ship", "orders_v2_ship", "orders_update"):
        assert outcome_reward(writing, episode(turn(search("a")), turn(call(name)), changes=[done]), CONFIG) == 1.5


@pytest.mark.parametrize(
    ("turns", "changes", "answer", "reward"),
    [
        ((turn(search("a")),), [], NO_TOOL_ANSWER, 1.5),
        ((turn(search("a")), turn(call("shop_list_orders"))), [], "no tool can do this", 1.5),
        ((turn(search("a")), turn(call("shop_drop"))), [change(deleted=True)], NO_TOOL_ANSWER, -0.5),
        ((), [], NO_TOOL_ANSWER, -0.5),
        ((turn(search("a")),), [], "It is done.", -0.5),
    ],
)
def test_what_no_tool_can_do_is_declined_after_a_search(
    turns: tuple[Turn, ...], changes: list[Change], answer: str, reward: float
) -> None:
    unsolvable = task(atoms=[]).model_copy(update={"shape": "unsolvable"})
    assert outcome_reward(unsolvable, episode(*turns, answer=answer, changes=changes), CONFIG) == reward


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Ada Lovelace", "she is called ADA LOVELACE."),
        (12, "There are 12."),
        (12, "(12)"),
        (12.0, "exactly 12"),
        (-3, "It is -3 degrees"),
        (-3, "It is −3 degrees"),
        (1234567, "1,234,567 people"),
        (1234.5, "It costs $1,234.50."),
        (8002.41, "8002.41 €"),
        (3e-07, "3e-07"),
        ("1234", "number 1,234"),
        ("2024-03-05", "on March 5, 2024"),
        ("2024-03-05", "on 5th of March 2024"),
        ("2024-03-05", "on Mar. 5 2024"),
        ("2024-03-05", "since 5 sept 2023 and 5 mar 2024"),
        ("March 5, 2024", "2024-03-05"),
        ("2024-03-05T10:30:00Z", "2024-03-05 10:30"),
        ("2024-03-05T10:30:00Z", "March 5, 2024 at 10:30:00 UTC"),
        ("2024-03-05T10:30:00.000Z", "at 2024-03-05T10:30:00Z."),
        (True, "Yes, it is"),
        (False, "that is false"),
        ("true", "yes"),
        ("prod", "It is 'prod'."),
        ("a@b.example", "write to a@b.example."),
        ("v1.2", "v1.2, I think"),
        ("C++", "written in C++"),
    ],
)
def test_form_is_tolerated(value: Any, text: str) -> None:
    assert states(text, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "There are 123."),
        (12, "There are 312."),
        (12, "There are 12.5."),
        (12, "There are -12."),
        (12, "There are 12,345."),
        (12, "on 2024-12-01"),
        (12, "at 12:30"),
        (12, "x12"),
        (12, "twelve"),
        (1.5, "1.55"),
        (1.5, "11.5"),
        ("12", "1.12"),
        ("12", "12.5"),
        ("Ada", "Adam"),
        ("prod", "prod-eu"),
        ("prod", "non-prod"),
        ("a@b.example", "a@b.example.org"),
        ("2024-03-05", "March 6, 2024"),
        ("2024-03-05", "May 3, 2024"),
        ("2024-03-05T10:30:00Z", "March 5, 2024"),
        ("2024-03-05T10:30:00Z", "2024-03-05T10:31:00Z"),
        (True, "no"),
        (True, "yesterday"),
        (False, "nothing"),
        ("", "anything"),
        ("EUR", "€"),
        ("€", "anything"),
    ],
)
def test_nothing_else_is_tolerated(value: Any, text: str) -> None:
    assert not states(text, value)


VALUES = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(min_size=1)


@given(VALUES, st.text(max_size=20), st.text(max_size=20))
def test_a_value_said_on_its_own_is_stated_and_nothing_raises(value: Any, before: str, after: str) -> None:
    assert isinstance(states(f"{before}{value}{after}", value), bool)
    assert isinstance(value, str) or states(f"It is {value}.", value)


@given(st.integers(0, 10**9), st.integers(0, 9))
def test_a_number_is_not_stated_by_a_longer_one(number: int, digit: int) -> None:
    assert not states(f"{number}{digit}", number)
