"""`paraagent catalog` and `paraagent sql` as a person meets them: what they print, say and exit with."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from typer.testing import CliRunner

from paraagent.catalog.saved import saved_queries
from paraagent.cli import app
from paraagent.files import write_json, write_lines
from paraagent.retrieval.index import ToolIndex

Run = Callable[..., "Done"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def home(tmp_path: Path, tiny_catalog_path: Path, tiny_index: ToolIndex) -> Path:
    """A home whose profile `quick` has a catalog and one task, and whose profile `mine` has tasks alone."""
    home = tmp_path / "home"
    catalog = home / "artifacts" / "catalog" / "c1"
    catalog.mkdir(parents=True)
    shutil.copy(tiny_catalog_path, catalog / "catalog.duckdb")
    shutil.copytree(tiny_index.directory, catalog / "index")
    (home / "catalog.duckdb").symlink_to("artifacts/catalog/c1/catalog.duckdb")
    write_lines(home / "artifacts" / "tasks" / "t1" / "tasks.jsonl", [{"task_id": "a", "split": "test"}])
    write_lines(home / "artifacts" / "tasks" / "t2" / "tasks.jsonl", [{"task_id": "b"}, {"task_id": "c"}])
    write_json(home / "current.json", {"quick": {"catalog": "c1", "tasks": "t1"}, "mine": {"tasks": "t2"}})
    write_json(home / "runs" / "1.json", {"started": "2026-01-01", "profile": {"name": "quick"}})
    return home


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PARAAGENT_HOME", str(home))

    def run(*words: str) -> Done:
        result = CliRunner().invoke(app, list(words))
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


def test_info_counts_what_the_catalog_holds(run: Run) -> None:
    done = run("catalog", "info", "--json")
    document = orjson.loads(done.out)
    assert done.code == 0
    assert (document["tools"], document["services"], document["providers"]) == (30, 15, 5)
    assert document["effects"]["read"] == 19
    assert document["sources"] == {"npm:beta-specs 1.0": 16, "pypi:alpha-specs 1.0": 14}
    assert "tools" in run("catalog", "info").out


def test_search_prints_a_table_for_every_slot(run: Run) -> None:
    done = run("catalog", "search", "weather in a city", "track a parcel", "-k", "2")
    assert done.code == 0
    assert done.out.index("weather in a city") < done.out.index("weather_current") < done.out.index("track a parcel")
    assert "shipping_track_parcel" in done.out


def test_search_as_json_keeps_the_order_of_slots(run: Run) -> None:
    slots = ["track a parcel", "weather in a city", "qwertyuiop"]
    results = orjson.loads(run("catalog", "search", *slots, "-k", "2", "--json").out)["results"]
    assert [result["slot"] for result in results] == slots
    assert [len(result["hits"]) for result in results] == [2, 2, 0]
    assert results[0]["hits"][0]["name"] == "shipping_track_parcel"


def test_search_may_keep_to_a_split(run: Run) -> None:
    done = run("catalog", "search", "get identifier", "--split", "test", "--json")
    assert {hit["provider"] for hit in orjson.loads(done.out)["results"][0]["hits"]} == {"clouddesk.example"}


def test_show_describes_a_tool_in_full(run: Run) -> None:
    done = run("catalog", "show", "tickets_CreateTicket")
    assert done.code == 0
    for words in ("Opens a support ticket", "subject", "required", "One of low, normal, high, urgent", "ticketId"):
        assert words in done.out


def test_show_gives_an_example_that_is_a_valid_call(run: Run) -> None:
    import jsonschema

    first, second = (run("catalog", "show", "shipping_quote_rate", "--json").out for _ in range(2))
    document = orjson.loads(first)
    call = document["example"]["call"]
    jsonschema.validate(call["arguments"], document["parameters"])
    jsonschema.validate(document["example"]["response"], document["returns"])
    assert set(call["arguments"]) == {"country", "weight_kg"}
    assert {field["path"] for field in document["fields"]} == {"price", "currency", "days"}
    assert first == second


def test_a_tool_without_parameters_or_result_is_shown_too(run: Run) -> None:
    assert run("catalog", "show", "storage_ListBuckets").code == 0
    assert "the source does not say" in run("catalog", "show", "contacts_people_delete").out


def test_an_unknown_tool_is_met_with_the_nearest(run: Run) -> None:
    done = run("catalog", "show", "weather_curent")
    assert done.code == 2
    assert done.err.startswith("Error: There is no tool weather_curent: did you mean one of weather_current,")


@pytest.mark.parametrize(
    "words",
    [("catalog", "info"), ("catalog", "search", "x"), ("catalog", "show", "x"), ("sql", "SELECT 1")],
)
def test_an_empty_home_says_what_to_run(
    words: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAAGENT_HOME", str(tmp_path / "nothing"))
    done = run(*words)
    assert done.code == 1
    assert "run `paraagent catalog build`" in done.err
    assert "Traceback" not in done.err


def test_an_unknown_profile_is_met_with_the_nearest(run: Run) -> None:
    done = run("catalog", "info", "--profile", "quik")
    assert done.code == 2
    assert "did you mean quick?" in done.err


def test_sql_prints_a_table_csv_and_json(run: Run) -> None:
    sql = "SELECT provider, count(*) AS tools FROM tools GROUP BY ALL ORDER BY tools DESC, provider LIMIT 2"
    assert "northwind.example" in run("sql", sql).out
    written = list(csv.reader(io.StringIO(run("sql", sql, "--format", "csv").out)))
    assert written == [["provider", "tools"], ["clouddesk.example", "9"], ["northwind.example", "7"]]
    rows = orjson.loads(run("sql", sql, "--json").out)
    assert rows == orjson.loads(run("sql", sql, "--format", "json").out)
    assert rows[0] == {"provider": "clouddesk.example", "tools": 9}


def test_sql_as_json_embeds_json_and_tells_columns_of_one_name_apart(run: Run) -> None:
    done = run(
        "sql", """SELECT '{"a": [1]}'::JSON AS x, 1 AS y, 2 AS y, DATE '2026-01-02' AS d, NULL::JSON AS n""", "--json"
    )
    assert orjson.loads(done.out) == [{"x": {"a": [1]}, "y": 1, "y_3": 2, "d": "2026-01-02", "n": None}]


def test_an_answer_without_rows_is_an_empty_array(run: Run) -> None:
    assert orjson.loads(run("sql", "SELECT 1 AS x WHERE false", "--json").out) == []


def test_sql_follows_the_profile_that_ran_last_or_is_named(run: Run) -> None:
    sql = "SELECT count(*) AS n FROM tasks"
    assert orjson.loads(run("sql", sql, "--json").out) == [{"n": 1}]
    assert orjson.loads(run("sql", sql, "--profile", "mine", "--json").out) == [{"n": 2}]


def test_a_saved_query_runs_with_its_parameters(run: Run) -> None:
    done = run("sql", "--query", "who_returns", "--param", "field=order_id", "--json")
    assert {row["tool"] for row in orjson.loads(done.out)} == {
        "orders_get_order",
        "orders_place_order",
        "orders_cancel_order",
    }


@pytest.mark.parametrize("rest", [(), ("--json",), ("--format", "csv")])
def test_query_without_a_name_lists_them(rest: tuple[str, ...], run: Run) -> None:
    done = run("sql", "--query", *rest)
    assert done.code == 0
    assert all(query.name in done.out for query in saved_queries())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("SELECT * FORM tools",), "syntax error"),
        (("DELETE FROM tools",), "Only a SELECT is allowed"),
        (("COPY tools TO 'x.csv'",), "Only a SELECT is allowed"),
        (("ATTACH 'x.duckdb'",), "Only a SELECT is allowed"),
        (("SELECT * FROM read_csv('/etc/passwd')",), "SQL may read files below"),
        (("SELECT 1; SELECT 2",), "exactly one SELECT"),
        (("SELECT * FROM scores",), "The table scores is not there yet: run `paraagent run`"),
        ((), "Give one SELECT in quotes"),
        (("SELECT 1", "--query", "sources"), "Give one SELECT in quotes"),
        (("--query", "souces"), "did you mean sources?"),
        (("--query", "required_parameters"), "add --param tool=VALUE"),
        (("--query", "sources", "--param", "a=b"), "has no parameter a"),
        (("--query", "who_returns", "--param", "field"), "--param takes name=value"),
        (("--query", "biggest_services", "--param", "limit=many"), "Could not convert"),
        (("--query", "who_returns", "--param", "field=a", "--param", "field=b"), "field is given twice: a and b"),
        (("SELECT 1", "--format", "xml"), "xml"),
        (("SELECT 1", "--profile", "nine"), "There is no profile nine"),
    ],
)
def test_wrong_sql_is_one_sentence_and_exit_code_2(words: tuple[str, ...], says: str, run: Run) -> None:
    done = run("sql", *words)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_damaged_catalog_is_a_failed_run(run: Run, home: Path) -> None:
    path = home / "artifacts" / "catalog" / "c1" / "catalog.duckdb"
    path.write_bytes(b"\0" * path.stat().st_size)
    for words in (("catalog", "info"), ("sql", "SELECT 1")):
        done = run(*words)
        assert done.code == 1
        assert "cannot be read" in done.err
        assert done.err.count("\n") == 1


def test_an_index_of_another_catalog_is_a_failed_run(run: Run, home: Path) -> None:
    meta = home / "artifacts" / "catalog" / "c1" / "index" / "meta.json"
    write_json(meta, orjson.loads(meta.read_bytes()) | {"build_hash": "0"})
    done = run("catalog", "search", "weather")
    assert done.code == 1
    assert "made from another catalog: run `paraagent catalog build`" in done.err
