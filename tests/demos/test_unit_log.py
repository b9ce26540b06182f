"""Rows of a log of units: found by where they lie, without the rest in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.stage import UnitLog

ROWS = [("a", {"n": 1, "text": "ä\n"}), ("b", {"n": 2, "text": "x" * 5_000}), ("c", {"n": 3, "text": ""})]


@pytest.fixture
def log(tmp_path: Path) -> UnitLog:
    log = UnitLog(tmp_path, "units")
    log.add(ROWS)
    return log


def number(row: Any) -> int:
    return int(row["n"])


def tear(log: UnitLog, tail: bytes) -> None:
    with log.path.open("ab") as file:
        file.write(tail)


def test_a_scan_takes_what_is_picked(log: UnitLog) -> None:
    assert {unit: picked for unit, (_, picked) in log.scan(number).items()} == {"a": 1, "b": 2, "c": 3}


def test_each_row_lies_where_the_scan_says_in_any_order(log: UnitLog) -> None:
    found = log.scan(number)
    assert list(log.at(found[unit][0] for unit in ("c", "a", "b", "a"))) == [
        dict(ROWS)[unit] for unit in ("c", "a", "b", "a")
    ]


@pytest.mark.parametrize("tail", [b'{"row":{"n":4},"un', b'{"row":{"n":4},"unit":"d"}', b"\xff"])
def test_a_torn_last_line_is_owed(tail: bytes, log: UnitLog) -> None:
    tear(log, tail)
    assert log.scan(number).keys() == {"a", "b", "c"} == log.finished().keys()
    assert log.owed(["a", "d"]) == ["d"]


def test_what_follows_a_torn_line_is_found_where_it_lies(log: UnitLog) -> None:
    tear(log, b'{"row":{"n":4},"un')
    log.add([("d", {"n": 5})])
    found = log.scan(number)
    assert found["d"][1] == 5
    assert [row["n"] for row in log.at(place for place, _ in found.values())] == [1, 2, 3, 5]


def test_a_unit_that_was_played_twice_counts_as_it_was_last(log: UnitLog) -> None:
    log.add([("a", {"n": 9})])
    [again] = log.at([log.scan(number)["a"][0]])
    assert again == log.finished()["a"] == {"n": 9}


def test_without_a_file_nothing_is_found(tmp_path: Path) -> None:
    assert UnitLog(tmp_path, "units").scan(number) == {}


@settings(deadline=None, max_examples=60)  # every example waits for the disk
@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=9)), max_size=6), st.integers(0, 40))
def test_a_scan_finds_what_a_whole_reading_finds(rows: list[tuple[str, str]], torn: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = UnitLog(Path(folder), "units")
        log.add(rows)
        log.path.write_bytes(log.path.read_bytes()[: max(0, log.path.stat().st_size - torn)])
        found = log.scan(orjson.dumps)
        whole = log.finished()
        assert {unit: orjson.loads(picked) for unit, (_, picked) in found.items()} == whole
        assert dict(zip(found, log.at(place for place, _ in found.values()), strict=True)) == whole
