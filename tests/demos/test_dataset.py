"""The data set on disk: `datasets` and TRL read it unchanged, its card says what is in it, two runs write the same."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paraagent.demos.attempts import Attempt
from paraagent.demos.dataset import CARD, FILES, Statistics, data_card, distinct, features, write_demos

Rows = dict[str, list[dict[str, Any]]]
MADE = {"team": "a script", "seed": "0"}


@pytest.fixture(scope="module")
def rows(attempts: list[Attempt]) -> Rows:
    """By split."""
    found = [orjson.loads(attempt.row) for attempt in attempts]
    return {split: [row for row in found if row["split"] == split] for split in FILES}


@pytest.fixture(scope="module")
def statistics(attempts: list[Attempt]) -> Statistics:
    counted = Statistics()
    for attempt in attempts:
        counted.add(orjson.loads(attempt.row), attempt.facts["licences"])
    return counted


@pytest.fixture(scope="module")
def folder(rows: Rows, statistics: Statistics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole artifact: both files, the card, and what lies beside them."""
    folder = tmp_path_factory.mktemp("data-set")
    (folder / "episodes.jsonl").write_bytes(b'{"version":3}\n')
    (folder / "rejected.json").write_bytes(b'{"too long":1}\n')
    for split, name in FILES.items():
        write_demos(rows[split], folder / name)
    (folder / CARD).write_text(data_card(statistics.summary(), MADE, [*FILES.values()]), encoding="utf-8")
    return folder


def load(path: str, cache: Path, **more: Any) -> Any:
    from datasets import load_dataset

    return load_dataset(path, cache_dir=str(cache), **more)


def numbers(card: str, title: str) -> dict[str, int]:
    """A table of the card."""
    table = card.partition(f"| {title} | demonstrations |\n|---|---:|\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {name: int(count.replace(",", "")) for name, count in cells}


# Rows


def test_a_file_loads_and_keeps_its_rows(folder: Path, rows: Rows, tmp_path: Path) -> None:
    loaded = load("parquet", tmp_path, data_files=str(folder / FILES["train"]), split="train")
    assert loaded.to_list() == rows["train"]
    assert loaded.features == features()


def test_the_folder_loads_by_its_card_with_both_splits(folder: Path, rows: Rows, tmp_path: Path) -> None:
    loaded = load(str(folder), tmp_path)
    assert {split: part.to_list() for split, part in loaded.items()} == rows


def test_trl_takes_the_rows_as_conversations(rows: Rows) -> None:
    from trl import is_conversational

    assert all(is_conversational({"messages": row["messages"]}) for split in rows.values() for row in split)


def test_two_runs_write_the_same_bytes(folder: Path, rows: Rows, tmp_path: Path) -> None:
    assert write_demos(iter(rows["train"]), tmp_path / "again") == len(rows["train"])
    assert (tmp_path / "again").read_bytes() == (folder / FILES["train"]).read_bytes()


def test_more_rows_than_fit_into_one_group_are_all_written(rows: Rows, tmp_path: Path) -> None:
    many = [row | {"seed": number} for number, row in zip(range(1_100), itertools.cycle(rows["train"]), strict=False)]
    assert write_demos(many, tmp_path / "many.parquet") == 1_100
    loaded = load("parquet", tmp_path / "cache", data_files=str(tmp_path / "many.parquet"), split="train")
    assert loaded["seed"] == [*range(1_100)]


def test_columns_that_nobody_declared_are_left_out(rows: Rows, tmp_path: Path) -> None:
    write_demos([row | {"sketch": [1]} for row in rows["train"]], tmp_path / "more.parquet")
    loaded = load("parquet", tmp_path / "cache", data_files=str(tmp_path / "more.parquet"), split="train")
    assert loaded.column_names == list(features())


def test_a_row_that_lacks_a_column_is_an_error(rows: Rows, tmp_path: Path) -> None:
    short = {name: value for name, value in rows["train"][0].items() if name != "mistakes"}
    with pytest.raises(KeyError, match="mistakes"):
        write_demos([short], tmp_path / "short.parquet")


def test_a_large_seed_and_strange_letters_survive(rows: Rows, tmp_path: Path) -> None:
    text = "naïve \u2028 \U0001f600 \x00 \r\n\t"
    odd = rows["train"][0] | {"seed": 2**63 - 1, "messages": [{"role": "user", "content": text}], "mistakes": []}
    write_demos([odd], tmp_path / "odd.parquet")
    loaded = load("parquet", tmp_path / "cache", data_files=str(tmp_path / "odd.parquet"), split="train")
    assert loaded.to_list() == [odd]


# Statistics


def test_statistics_count_every_row_once(statistics: Statistics, rows: Rows) -> None:
    both = [row for split in rows.values() for row in split]
    summary = statistics.summary()
    assert summary["demos"] == len(both)
    for name in ("splits", "shapes", "reaches"):
        assert sum(summary[name].values()) == len(both)
    assert summary["splits"] == {split: len(rows[split]) for split in rows}
    assert summary["tokens"] == sum(row["n_tokens"] for row in both)
    assert summary["model_tokens"] == sum(row["n_model_tokens"] for row in both)
    assert summary["recovered_share"] == round(sum(bool(row["recoveries"]) for row in both) / len(both), 4)
    assert sum(summary["recoveries"].values()) == sum(len(row["recoveries"]) for row in both)
    assert orjson.loads(orjson.dumps(summary)) == summary


def test_shapes_are_told_apart_by_their_width(statistics: Statistics) -> None:
    shapes = statistics.summary()["shapes"]
    assert {"parallel-2", "single", "no-tool", "unsolvable"} == {*shapes}
    assert list(shapes.values()) == sorted(shapes.values(), reverse=True)


def test_an_empty_data_set_has_statistics() -> None:
    summary = Statistics().summary()
    assert (summary["demos"], summary["tokens"], summary["tokens_p95"], summary["recovered_share"]) == (0, 0, 0, 0.0)


def test_the_median_and_the_95th_percentile_are_tokens_of_a_row(rows: Rows) -> None:
    counted = Statistics()
    for number in range(1, 101):
        counted.add(rows["train"][0] | {"n_tokens": number}, [])
    summary = counted.summary()
    assert summary["tokens_median"] in (50, 51)
    assert summary["tokens_p95"] in (95, 96)


@pytest.mark.parametrize(
    ("texts", "length", "share"),
    [
        (["a b c"], 1, 1.0),
        (["a b A"], 1, 2 / 3),
        (["a b a b"], 2, 2 / 3),
        (["a b", "a b"], 2, 0.5),
        (["a b", "b a"], 2, 1.0),
        (["a", "b"], 2, 0.0),
        ([], 1, 0.0),
        (["a  b\nc"], 3, 1.0),
    ],
)
def test_distinct_is_the_share_of_different_runs(texts: list[str], length: int, share: float) -> None:
    assert distinct(texts, length) == pytest.approx(share)


@given(st.lists(st.text("ab ", max_size=12)), st.integers(1, 3))
def test_the_same_texts_again_halve_what_is_distinct(texts: list[str], length: int) -> None:
    assert distinct([*texts, *texts], length) == pytest.approx(distinct(texts, length) / 2)


# Card


@pytest.fixture(scope="module")
def card(folder: Path) -> str:
    return (folder / CARD).read_text(encoding="utf-8")


def test_the_card_begins_with_what_names_the_files(card: str) -> None:
    _, front, _ = card.split("---\n", 2)
    [config] = yaml.safe_load(front)["configs"]
    assert config["data_files"] == [{"split": split, "path": name} for split, name in FILES.items()]


def test_a_card_names_only_the_files_that_are_there(statistics: Statistics) -> None:
    alone = data_card(statistics.summary(), MADE, [FILES["train"]])
    [config] = yaml.safe_load(alone.split("---\n", 2)[1])["configs"]
    assert config["data_files"] == [{"split": "train", "path": FILES["train"]}]
    assert FILES["validation"] not in alone


def test_the_cards_example_loads_the_data_set(
    card: str, folder: Path, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [example] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(folder)
    found: dict[str, Any] = {}
    exec(example.replace('load_dataset("parquet",', f'load_dataset("parquet", cache_dir={str(tmp_path)!r},'), found)
    assert {split: len(part) for split, part in found["demos"].items()} == {
        split: len(part) for split, part in rows.items()
    }


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("split", "splits"),
        ("shape", "shapes"),
        ("reach", "reaches"),
        ("recovery", "recoveries"),
        ("source and licence", "licences"),
    ],
)
def test_the_cards_tables_are_the_statistics(title: str, key: str, card: str, statistics: Statistics) -> None:
    assert numbers(card, title) == statistics.summary()[key]


def test_the_card_tells_the_licences_and_how_it_was_made(card: str, attempts: list[Attempt]) -> None:
    licences = {licence for attempt in attempts for licence in attempt.facts["licences"]}
    assert "pypi:alpha-specs: Apache-2.0" in licences
    assert all(licence in card.partition("## Licences")[2] for licence in licences)
    assert "| team | a script |\n| seed | 0 |\n" in card
    assert card.startswith("---\nlicense: ")


def test_the_card_tells_the_counts(card: str, statistics: Statistics) -> None:
    summary = statistics.summary()
    assert f"{summary['demos']:,} demonstrations, {summary['tokens']:,} tokens" in card
    assert f"{summary['recovered_share']:.1%} recover from something" in card


def test_a_card_without_recoveries_has_no_table_of_them(rows: Rows) -> None:
    counted = Statistics()
    counted.add(rows["train"][0] | {"recoveries": []}, [])
    card = data_card(counted.summary(), MADE, [FILES["train"]])
    assert "| recovery |" not in card
    assert "| shape |" in card


def test_the_card_has_no_gaps(card: str) -> None:
    assert "\n\n\n" not in card
    assert "{{" not in card
    assert "{%" not in card
    assert card.endswith("|\n")
