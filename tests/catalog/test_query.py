"""SQL answers questions, and can neither write nor look outside the home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from paraagent.catalog.query import QuerySession
from paraagent.catalog.saved import SavedQuery, saved_queries, saved_query
from paraagent.errors import RunError, UsageError
from paraagent.files import write_lines

QUERIES = saved_queries()

TASK: dict[str, Any] = {
    "task_id": "t1",
    "request": "What is the weather in Oslo?",
    "shape": "single",
    "width": 1,
    "reach": "service",
    "split": "test",
    "seed": 7,
    "slots": [{"text": "weather in a city", "tool": "weather_current"}],
    "calls": [{"id": "a", "tool": "weather_current", "arguments": {"city": "Oslo"}}],
    "atoms": [{"call": "a", "path": "temperature", "value": 3}],
    "hard_edges": [],
    "soft_edges": [],
}


def episode(policy: str, version: int = 1) -> dict[str, Any]:
    turn: dict[str, Any] = {
        "text": "<think>…</think>",
        "plan": None,
        "plan_rule": "required",
        "well_formed": True,
        "problems": [],
    }
    turn |= {"observation": "", "prompt_tokens": 1, "completion_tokens": 5}
    search: dict[str, Any] = {
        "kind": "search",
        "query": "weather",
        "hits": ["weather_forecast", "weather_current"],
        "visible": True,
    }
    call: dict[str, Any] = {
        "kind": "call",
        "name": "weather_current",
        "arguments": {"city": "Oslo"},
        "result": None,
        "visible": True,
    }
    call |= {"error": {"type": "NotFoundError", "msg": "no such city"}, "backend": "grounded", "injected": False}
    if version > 1:
        call |= {"started": 1.5, "seconds": 0.5, "attempts": 2, "occurrence": "weather_current"}
    return {
        "version": version,
        "episode_id": f"{policy}/t1/0",
        "task_id": "t1",
        "policy": policy,
        "paradigm": "paraact",
        "seed": 0,
        "system": "Rules",
        "request": TASK["request"],
        "turns": [turn | {"family": "search", "events": [search]}, turn | {"family": "call", "events": [call]}],
        "answer": None,
        "end": "turn_limit",
        "error": None,
        "rewards": {"outcome": -0.5},
    }


def score(system: str, solved: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "system": system,
        "task_id": "t1",
        "shape": "single",
        "width": 1,
        "reach": "service",
        "seed": 0,
    }
    row |= {"solved": solved, "end": "answer", "turns": 3, "searches": 1, "calls": 1, "completion_tokens": 90}
    names = ("outcome", "step", "phase", "format", "penalty", "trajectory")
    return row | dict.fromkeys(names, 0.5)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny_catalog_path: Path) -> Path:
    home = tmp_path_factory.mktemp("query") / "home"
    for stage in ("catalog", "tasks", "demos", "evaluate/ab12/episodes"):
        (home / "artifacts" / stage).mkdir(parents=True)
    shutil.copy(tiny_catalog_path, home / "artifacts" / "catalog" / "catalog.duckdb")
    write_lines(home / "artifacts" / "tasks" / "tasks.jsonl", [TASK])
    write_lines(home / "artifacts" / "demos" / "episodes.jsonl", [episode("oracle", version=2)])
    evaluate = home / "artifacts" / "evaluate" / "ab12"
    write_lines(evaluate / "episodes" / "base.jsonl", [{"unit": "t1", "row": episode("base")}])
    pl.DataFrame([score("oracle", True), score("base", False)]).write_parquet(evaluate / "scores.parquet")
    demo = {"task_id": "t1", "shape": "single", "split": "train", "messages": [{"role": "user", "content": "Hello"}]}
    pl.DataFrame([demo | {"discovered_tools": ["{}"]}]).write_parquet(home / "artifacts" / "demos" / "demos.parquet")
    (home.parent / "secret.csv").write_text("a\n1\n")
    return home


def files(home: Path) -> dict[str, list[Path]]:
    artifacts = home / "artifacts"
    return {
        "tasks": [artifacts / "tasks" / "tasks.jsonl"],
        "demos": [artifacts / "demos" / "demos.parquet"],
        "episodes": [
            artifacts / "demos" / "episodes.jsonl",
            artifacts / "evaluate" / "ab12" / "episodes" / "base.jsonl",
        ],
        "scores": [artifacts / "evaluate" / "ab12" / "scores.parquet"],
    }


@pytest.fixture(scope="module")
def session(home: Path) -> Iterator[QuerySession]:
    with QuerySession.open(home, home / "artifacts" / "catalog" / "catalog.duckdb", files(home)) as session:
        yield session


def rows(session: QuerySession, sql: str, **values: str) -> list[tuple[Any, ...]]:
    return list(session.run(sql, values).rows)


def test_every_view_answers_after_the_connection_is_locked(session: QuerySession) -> None:
    counts = {name: rows(session, f"SELECT count(*) FROM {name}")[0][0] for name in session.views}
    assert all(session.views.values())
    assert counts.pop("tools") == 30
    assert all(counts.values()), counts


def test_episodes_of_all_stages_unfold_into_turns_searches_and_calls(session: QuerySession) -> None:
    assert rows(session, "SELECT stage, policy, n_turns, ended FROM episodes ORDER BY stage") == [
        ("demos", "oracle", 2, "turn_limit"),
        ("evaluate", "base", 2, "turn_limit"),
    ]
    assert rows(session, "SELECT turn, family FROM turns WHERE policy = 'base' ORDER BY turn") == [
        (1, "search"),
        (2, "call"),
    ]
    assert rows(session, "SELECT turn, tool, error, arguments ->> 'city' FROM calls WHERE policy = 'base'") == [
        (2, "weather_current", "NotFoundError", "Oslo")
    ]
    assert rows(session, "SELECT hits[1] FROM searches WHERE policy = 'base'") == [("weather_forecast",)]


def test_what_an_older_version_did_not_note_is_zero(session: QuerySession) -> None:
    sql = "SELECT policy, started, seconds, attempts, occurrence FROM calls ORDER BY policy"
    assert rows(session, sql) == [("base", 0.0, 0.0, 1, None), ("oracle", 1.5, 0.5, 2, "weather_current")]


def test_a_file_that_is_being_written_shows_its_whole_lines(home: Path, tmp_path: Path) -> None:
    one = orjson.dumps(
        {
            "unit": "a",
            "row": episode("mine")
            | {"opening": [{"kind": "search", "query": "all of it", "hits": ["weather_current"], "visible": True}]},
            "made": {},
        }
    )
    path = tmp_path / "home" / "act" / "episodes.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(one + b"\n" + one[: len(one) // 2])
    with QuerySession.open(
        tmp_path / "home", home / "artifacts" / "catalog" / "catalog.duckdb", {"episodes": [path]}
    ) as now:
        assert rows(now, "SELECT stage, policy, n_turns FROM episodes") == [("act", "mine", 2)]
        assert rows(now, "SELECT turn, query FROM searches ORDER BY turn") == [(0, "all of it"), (1, "weather")]


def test_values_are_parameters_and_never_sql(session: QuerySession) -> None:
    sql = "SELECT count(*) FROM tools WHERE provider = $provider"
    assert rows(session, sql, provider="skyline.example") == [(6,)]
    assert rows(session, sql, provider="x' OR 'a' = 'a") == [(0,)]


@pytest.mark.parametrize("sql", ["FROM tools LIMIT 1", "WITH t AS (SELECT 1) FROM t", "DESCRIBE tools", "SHOW TABLES"])
def test_other_ways_of_asking_are_answered_too(session: QuerySession, sql: str) -> None:
    assert rows(session, sql)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELEKT 1", "syntax error at or near"),
        ("SELECT 1; SELECT 2", "exactly one SELECT, not 2 statements"),
        ("", "exactly one SELECT, not 0 statements"),
        ("-- nothing", "exactly one SELECT, not 0 statements"),
        ("DELETE FROM store.tools", "Only a SELECT is allowed, not DELETE"),
        ("INSERT INTO store.tools DEFAULT VALUES RETURNING name", "not INSERT"),
        ("CREATE TABLE t AS SELECT 1", "not CREATE"),
        ("DROP VIEW tools", "not DROP"),
        ("COPY tools TO '{home}/out.csv'", "not COPY"),
        ("COPY (SELECT 1) TO '/tmp/paraagent-out.csv'", "not COPY"),
        ("ATTACH '{home}/other.duckdb'", "not ATTACH"),
        ("EXPORT DATABASE '{home}/dump'", "not EXPORT"),
        ("SET threads = 1", "not SET"),
        ("SET lock_configuration = false", "not SET"),
        ("INSTALL httpfs", "not INSTALL"),
        ("PRAGMA database_list", "Only a SELECT is allowed"),
        ("SELECT * FROM read_csv('{home}/../secret.csv')", "files below .* only"),
        ("SELECT * FROM '{outside}/secret.csv'", "files below .* only"),
        ("SELECT * FROM read_text('/etc/passwd')", "files below .* only"),
        ("SELECT * FROM glob('/etc/*')", "files below .* only"),
        ("SELECT * FROM read_parquet('https://example.org/x.parquet')", "."),
        ("SELECT * FROM tols", "There is no table tols: the tables are .*tools"),
        ("SELECT nmae FROM tools", 'column "nmae" not found'),
        ("SELECT * FROM tools WHERE name = $name", r"asks for \$name: add --param name=VALUE"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert"),
    ],
)
def test_what_would_write_or_look_elsewhere_is_refused_in_one_sentence(
    session: QuerySession, home: Path, sql: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        rows(session, sql.format(home=home, outside=home.parent))
    assert "\n" not in str(caught.value)


def test_the_catalog_stays_readable_for_others(session: QuerySession, home: Path) -> None:
    with QuerySession.open(home, home / "artifacts" / "catalog" / "catalog.duckdb", {}) as second:
        assert rows(second, "SELECT count(*) FROM tools") == rows(session, "SELECT count(*) FROM tools")


def test_a_file_inside_the_home_may_be_read(session: QuerySession, home: Path) -> None:
    path = home / "artifacts" / "tasks" / "tasks.jsonl"
    assert rows(session, f"SELECT task_id FROM read_json('{path}')") == [("t1",)]


def test_a_table_that_is_not_built_yet_says_how_to_get_it(home: Path) -> None:
    catalog = home / "artifacts" / "catalog" / "catalog.duckdb"
    says = "The table scores is not there yet: run `paraagent run`"
    with QuerySession.open(home, catalog, {"scores": []}) as session, pytest.raises(UsageError, match=says):
        session.run("SELECT * FROM scores")


def test_a_damaged_artifact_is_named(home: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "scores.parquet"
    damaged.write_bytes(b"PAR1 no more")
    with pytest.raises(RunError, match=r"scores\.parquet.*`paraagent run` rebuilds it"):
        QuerySession.open(home, None, {"scores": [damaged]})


def test_json_columns_are_known(session: QuerySession) -> None:
    answer = session.run("SELECT task_id, slots FROM tasks")
    assert answer.columns == ("task_id", "slots")
    assert answer.json_columns == {"slots"}
    [(_, slots)] = answer.rows
    assert orjson.loads(slots) == TASK["slots"]


def test_there_are_ten_saved_queries_and_more() -> None:
    assert len(QUERIES) >= 15
    assert all(query.answers.endswith("?") for query in QUERIES)


@pytest.mark.parametrize(
    ("sql", "values", "says"),
    [
        ("SELECT 1", {"a": "1"}, r"no parameter \$a: it takes none"),
        ("SELECT $b", {"a": "1", "b": "2"}, r"no parameter \$a: it takes \$b"),
        ("FROM tools LIMIT $n::INTEGER", {"n": "abc"}, "Could not convert .*; its values are --param n=abc"),
        ("FROM tools LIMIT $n::INTEGER", {"n": "-1"}, "negative; its values are --param n=-1"),
    ],
)
def test_what_is_wrong_with_a_value_is_told(session: QuerySession, sql: str, values: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        rows(session, sql, **values)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_saved_query_finds_something(session: QuerySession, query: SavedQuery) -> None:
    needed = [parameter.name for parameter in query.parameters if parameter.default is None]
    values = query.values(dict.fromkeys(needed, "calendar_events_get"))
    assert rows(session, query.sql, **values)


def test_saved_queries_answer_what_they_say(session: QuerySession) -> None:
    def answer(name: str, /, **given: str) -> list[tuple[Any, ...]]:
        query = saved_query(name)
        return rows(session, query.sql, **query.values(given))

    assert [row[0] for row in answer("required_parameters", tool="shipping_quote_rate")] == ["country", "weight_kg"]
    assert {row[0] for row in answer("who_returns", field="event_id")} == {
        "calendar_events_get",
        "calendar_events_insert",
        "calendar_events_list",
    }
    assert {row[:3] for row in answer("feeds", tool="calendar_events_get")} == {
        ("eventId", "calendar_events_insert", "eventId"),
        ("eventId", "calendar_events_list", "items[].eventId"),
    }
    assert [row[:2] for row in answer("uses_of_result")] == [("calendar_events_get", "eventId")]
    assert {row[0] for row in answer("who_produces", parameter="event_id", service="calendar")} == {
        "calendar_events_insert",
        "calendar_events_list",
    }
    assert answer("who_produces", parameter="event_id", service="tickets") == []
    way = answer("path_between", tool="orders_place_order", to="orders_cancel_order")
    assert [row[:4] for row in way] == [
        (0, "orders_place_order", None, None),
        (1, "orders_cancel_order", "order_id", "order_id"),
    ]
    assert answer("path_between", tool="orders_cancel_order", to="orders_place_order") == []
    assert answer("similar_names", name="wether_curent", limit="1")[0][0] == "weather_current"
    assert [row[0] for row in answer("search_text", text="Parcel Where")] == ["shipping_track_parcel"]
    assert answer("success_per_system")[0][:4] == ("oracle", 1, 1, 100.0)
    assert answer("targets_found") == [("demos", "oracle", 1, 1, 100.0), ("evaluate", "base", 1, 1, 100.0)]


def test_a_saved_query_says_which_parameter_is_missing_or_unknown() -> None:
    query = saved_query("required_parameters")
    with pytest.raises(UsageError, match=r"needs tool \(name of the tool\): add --param tool=VALUE"):
        query.values({})
    with pytest.raises(UsageError, match=r"has no parameter tol: it takes tool"):
        query.values({"tol": "x"})


def test_an_unknown_query_is_met_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean biggest_services\?"):
        saved_query("bigest_service")
