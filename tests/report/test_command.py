"""`paraagent report`: the evaluation at a glance, and where the page is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from paraagent.files import write_json
from paraagent.report import summary_table
from paraagent.report.collect import Facts


def report(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paraagent", "--home", str(home), "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(artifacts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(artifacts["evaluate"], home / "artifacts" / "evaluate" / "abc")
    page = home / "artifacts" / "report" / "def"
    page.mkdir(parents=True)
    (page / "report.html").write_text("<!doctype html>")
    write_json(page / "manifest.json", {})
    write_json(home / "current.json", {"made-up": {"evaluate": "abc", "report": "def"}})
    return home


def test_it_prints_the_table_and_the_path(home: Path) -> None:
    run = report(home, "--profile", "made-up")
    assert run.returncode == 0, run.stderr
    assert run.stdout.rstrip().endswith("artifacts/report/def/report.html")
    assert "oracle" in run.stdout
    assert "24/24" in run.stdout


def test_json_has_success_per_system(home: Path) -> None:
    run = report(home, "--profile", "made-up", "--json")
    document = json.loads(run.stdout)
    assert document["report"].endswith("report.html")
    assert document["success"]["oracle"]["rate"] == 1.0


def test_a_profile_without_a_report_is_one_sentence_that_names_the_way_out(home: Path) -> None:
    run = report(home, "--profile", "quick")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "paraagent run --profile quick" in run.stderr
    assert "built are made-up" in run.stderr


def test_the_terminal_table_has_one_row_a_system() -> None:
    summary = {
        "tasks": 3,
        "confidence": 0.95,
        "systems": ["base", "sft"],
        "success": {name: {"n": 3, "solved": 1, "rate": 1 / 3, "low": 0.06, "high": 0.79} for name in ("base", "sft")},
        "means": {
            "base": {"turns": 2.0, "calls_per_turn": None, "tool_hit_rate": 0.0},
            "sft": {"turns": 3.0, "calls_per_turn": 1.5, "tool_hit_rate": 1.0},
        },
        "differences": [{"system": "sft", "baseline": "base", "difference": 0.0, "low": -0.5, "high": 0.5}],
    }
    table = summary_table(summary)
    assert table.row_count == 2
    cells = [list(column.cells) for column in table.columns]
    assert cells[2:5] == [["33%", "33%"], ["6–79%", "6–79%"], ["", "+0 (-50…+50)"]]
    assert cells[6] == ["–", "1.5"]


def test_the_terminal_table_fits_eighty_columns(facts: Facts) -> None:
    console = Console(width=80, file=StringIO(), record=True)
    console.print(summary_table(facts.summary))
    rows = [line for line in console.export_text().splitlines() if line.startswith(("oracle", "base", "sft", "rl"))]
    assert len(rows) == 4
    assert all(row.rstrip().endswith("%") for row in rows)
