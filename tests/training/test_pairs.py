"""What a simulator learns: word for word what the backend asks, and answers that it would take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paraagent.agents.transcript import Transcriber
from paraagent.catalog.splits import split_of
from paraagent.catalog.store import Catalog
from paraagent.files import write_lines
from paraagent.llm import LlmClient
from paraagent.toolenv.language import LanguageBackend
from paraagent.toolenv.recorded import Recordings
from paraagent.training.pairs import Pair, Pairs, draw_pairs, grounded, recorded_pairs, write_pairs
from tests.endpoint import serving

Draw = Callable[..., tuple[Pairs, Pairs]]


@pytest.fixture(scope="module")
def draw(tiny_catalog: Catalog, transcriber: Transcriber) -> Draw:
    """Draws for the thirty tools of the tiny catalog."""

    def drawn(learned: int = 30, held_out: int = 10, absent: float = 0.2, seed: int = 3) -> tuple[Pairs, Pairs]:
        return draw_pairs(
            tiny_catalog,
            (learned, held_out),
            lambda pair: len(transcriber.render(pair.messages).ids),
            absent,
            max_length=8_000,
            seed=seed,
        )

    return drawn


@pytest.fixture(scope="module")
def drawn(draw: Draw) -> tuple[Pairs, Pairs]:
    return draw()


def test_services_that_are_learned_are_not_held_out(drawn: tuple[Pairs, Pairs]) -> None:
    learned, held_out = ({split_of(pair.tool.provider, pair.tool.service) for pair in each.taken} for each in drawn)
    assert learned == {"train"}
    assert held_out
    assert "train" not in held_out


def test_there_are_as_many_as_wanted_though_tools_are_fewer(drawn: tuple[Pairs, Pairs]) -> None:
    learned, held_out = drawn
    assert (len(learned.taken), len(held_out.taken)) == (30, 10)
    assert len({pair.tool.name for pair in learned.taken}) < 30
    assert len({pair.messages[1]["content"] for pair in learned.taken}) == 30


def test_a_share_asks_for_what_is_not_there(drawn: tuple[Pairs, Pairs], draw: Draw) -> None:
    learned, _ = drawn
    gone = [pair for pair in learned.taken if pair.absent]
    assert len(gone) == 6
    assert {pair.outcome for pair in gone} == {"NotFoundError"}
    assert {pair.outcome for pair in draw(absent=0.0)[0].taken} == {"success"}


def test_the_answer_is_what_the_world_says_and_another_world_says_another(drawn: tuple[Pairs, Pairs]) -> None:
    taken = drawn[0].taken
    again = [[grounded(pair.tool, pair.arguments, pair.absent, seed) for pair in taken] for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]
    kinds = [[response.error is None for response in responses] for responses in again]
    assert kinds[0] == kinds[2] == [pair.outcome == "success" for pair in taken]


def test_the_same_seed_draws_the_same(drawn: tuple[Pairs, Pairs], draw: Draw) -> None:
    def texts(pairs: tuple[Pairs, Pairs]) -> list[list[str]]:
        return [[message["content"] for pair in each.taken for message in pair.messages] for each in pairs]

    assert texts(draw()) == texts(drawn) != texts(draw(seed=4))


def test_what_is_learned_is_what_the_backend_asks_and_takes(drawn: tuple[Pairs, Pairs]) -> None:
    for pair in (drawn[0].taken[0], next(pair for pair in drawn[0].taken if not pair.absent)):
        with serving(pair.answer) as endpoint:
            backend = LanguageBackend(LlmClient(endpoint.config()))
            response = asyncio.run(backend.answer(pair.tool, pair.arguments))
        assert [body["messages"] for body in endpoint.asked] == [pair.messages[:-1]]
        assert response is not None
        assert (response.error, response.result) == pair.response[:2]


def test_pairs_that_are_too_long_are_left_out_and_counted(
    tiny_catalog: Catalog, drawn: tuple[Pairs, Pairs], transcriber: Transcriber
) -> None:
    lengths = sorted(pair.n_tokens for pair in drawn[0].taken)

    def count(pair: Pair) -> int | None:
        tokens = len(transcriber.render(pair.messages).ids)
        return tokens if tokens <= lengths[3] else None

    learned, _ = draw_pairs(tiny_catalog, (30, 10), count, 0.2, 8_000, 3)
    assert learned.left_out["too long"] > 0
    assert max(pair.n_tokens for pair in learned.taken) <= lengths[3]


def test_recorded_calls_are_learned_where_the_backend_would_take_them(tiny_catalog: Catalog, tmp_path: Path) -> None:
    order = {"order_id": "ord_1", "customer_name": "Ada", "total": 12.5, "currency": "EUR", "status": "open"}
    about = {"tool": "orders_get_order"}
    rows = [
        {**about, "arguments": {"order_id": "ord_1"}, "response": order},
        {**about, "arguments": {"order_id": "ord_2"}, "error": {"type": "PermissionError", "msg": "not yours"}},
        {**about, "arguments": {"order_id": "ord_3"}, "error": {"type": "TimeoutError", "msg": "too slow"}},
        {**about, "arguments": {"order_id": "ord_4"}, "response": {**order, "total": "much"}},
        {**about, "arguments": {"order": 5}, "response": order},
        {"tool": "of_another_catalog", "arguments": {}, "response": 1},
    ]
    write_lines(tmp_path / "calls.jsonl", rows)
    made = recorded_pairs(tiny_catalog, Recordings([tmp_path / "calls.jsonl"]), (9, 9), lambda pair: 1)
    taken = [pair for pairs in made for pair in pairs.taken]
    assert [(pair.arguments["order_id"], pair.outcome) for pair in taken] == [
        ("ord_1", "success"),
        ("ord_2", "PermissionError"),
    ]
    assert sum((pairs.left_out for pairs in made[1:]), made[0].left_out) == {
        "answers that the backend would not take": 2,
        "arguments that are not valid": 1,
    }


def test_the_file_says_where_each_pair_comes_from(drawn: tuple[Pairs, Pairs], tmp_path: Path) -> None:
    write_pairs(drawn[0].taken, tmp_path / "pairs.parquet")
    rows = pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert [row["messages"] for row in rows] == [pair.messages for pair in drawn[0].taken]
    assert {(row["split"], row["backend"], row["width"]) for row in rows} == {("train", "grounded", 1)}
    assert {row["outcome"] for row in rows} == {"success", "NotFoundError"}
