"""`paraagent tasks` over a home with two tasks."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from paraagent.cli import app
from paraagent.files import write_lines
from paraagent.task import Atom, ReferenceCall, Slot, Task
from pipelines.home import Home


def task(number: int, split: str) -> Task:
    return Task.model_validate(
        {
            "task_id": f"{split}-{number:05d}",
            "request": "Please track a parcel for tracking number 278418. Tell me the city.",
            "shape": "single",
            "width": 1,
            "reach": "service",
            "split": split,
            "seed": 1,
            "slots": [Slot(text="track a parcel", tool="shipping_track_parcel")],
            "calls": [ReferenceCall(id="c1", tool="shipping_track_parcel", arguments={"tracking_number": "278418"})],
            "atoms": [Atom(call="c1", path="city", value="Krakow")],
        }
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PARAAGENT_HOME", str(tmp_path))
    home = Home(tmp_path)
    rows = [task(1, "test").model_dump(mode="json"), task(1, "train").model_dump(mode="json")]
    write_lines(home.artifact("tasks", "abc") / "tasks.jsonl", rows)
    (home.artifact("tasks", "abc") / "manifest.json").write_text("{}")
    home.set_current("quick", "tasks", "abc")
    return home


def run(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        app(list(line))
    printed = capsys.readouterr()
    return int(stop.value.code or 0), printed.out, printed.err


def test_list_prints_the_tasks_of_a_split_as_json(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "list", "--split", "train", "--json")
    assert code == 0
    assert [row["task_id"] for row in orjson.loads(out)] == ["train-00001"]


def test_list_prints_a_table_for_people(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "list")
    assert code == 0
    assert "test-00001" in out


def test_show_prints_request_calls_and_facts(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "show", "test-00001")
    assert code == 0
    assert 'shipping_track_parcel {"tracking_number":"278418"}' in out
    assert "city = Krakow" in out


def test_an_unknown_task_names_the_nearest_one(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "tasks", "show", "test-0001")
    assert code == 2
    assert "There is no task test-0001: did you mean test-00001?" in err


def test_an_unknown_split_is_wrong_usage(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "tasks", "list", "--split", "dev")
    assert code == 2
    assert "the splits are train, validation and test" in err


def test_a_home_without_tasks_says_how_to_make_them(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "tasks", "list", "--profile", "smoke")
    assert code == 1
    assert "run `paraagent run --profile smoke`" in err


def test_show_draws_which_call_feeds_which(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    one = task(7, "test")
    calls = [
        one.calls[0].model_copy(update={"id": key, "arguments": arguments})
        for key, arguments in (("c1", {}), ("c2", {"parcel": {"$ref": "c1.items.0.id"}}), ("c3", {"x": 1}))
    ]
    fan = one.model_copy(
        update={"shape": "fan-out", "width": 3, "calls": tuple(calls), "hard_edges": (("c1", "c2"), ("c1", "c3"))}
    )
    none = one.model_copy(update={"task_id": "test-00008", "shape": "unsolvable", "width": 0, "calls": (), "atoms": ()})
    write_lines(home.artifact("tasks", "abc") / "tasks.jsonl", [each.model_dump(mode="json") for each in (fan, none)])
    code, out, _ = run(capsys, "tasks", "show", "test-00007")
    assert code == 0
    assert "c1\n├─▶ c2\n└─▶ c3\n" in out
    assert '{"parcel":{"$ref":"c1.items.0.id"}}' in out
    code, out, _ = run(capsys, "tasks", "show", "test-00008")
    assert code == 0
    assert "no call; right is: No tool can do this." in out
