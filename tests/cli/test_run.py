"""`paraagent run` as a person meets it: a real process, a real (ephemeral) Prefect server, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.cli import command
from tests.cli.command import FAKE, SECONDS
from tests.pipelines.fake import UNITS

start, run = partial(command.start, program=FAKE), partial(command.run, program=FAKE)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_says_so_and_the_same_command_goes_on(
    tmp_path: Path, number: signal.Signals, prefect_server: str
) -> None:
    """Ctrl-C meets a server that was started for the run, SIGTERM one that stands on its own."""
    home = tmp_path / "home"
    server = {} if number == signal.SIGINT else {"PREFECT_API_URL": prefect_server}
    process = start(home, "run", "--profile", "smoke", FAKE_DELAY="0.4", **server)
    units = Path(f"{home}.units")
    deadline = time.monotonic() + SECONDS
    while not (units.exists() and len(units.read_text().split()) >= 3):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # Ctrl-C reaches every process of the terminal
    else:
        process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    last = errors.strip().splitlines()[-1]
    assert process.returncode == 130
    assert last == (
        "Error: Interrupted in numbers: what is finished is kept, and the same command goes on where it stopped"
    )
    assert "Traceback" not in errors
    assert out == ""

    code, out, _ = run(home, "run", "--profile", "smoke", "--json", PREFECT_API_URL=prefect_server)
    assert code == 0
    assert [stage["action"] for stage in json.loads(out)["stages"]] == ["resumed", "built", "built"]
    assert sum(Counter(units.read_text().split()).values()) <= len(UNITS) + 1

    code, out, errors = run(home, "run", "--profile", "smoke", "--json")
    assert code == 0
    assert {stage["action"] for stage in json.loads(out)["stages"]} == {"reused"}
    assert "Prefect" not in errors, "a run with nothing to do starts no server"


def test_server_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "--profile", "smoke", PREFECT_API_URL="http://127.0.0.1:9/api")
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert (
        errors.strip().splitlines()[-1].startswith("Error: The Prefect server http://127.0.0.1:9/api does not answer")
    )
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run", "--profile", "smok"], 2, "There is no profile smok: did you mean smoke?"),
        (["run", "--profile", "smoke", "--stage", "totl"], 2, "There is no stage totl: did you mean total?"),
        (["run", "--profile", "smoke", "--from", "pag"], 2, "There is no stage pag: did you mean page?"),
        (["run", "--profile", "smoke", "--force", "nothing"], 2, "There is no stage nothing: "),
        (
            ["run", "--profile", "smoke", "--set", "sft.epoch=1"],
            2,
            "There is no setting sft.epoch, named in --set: did you mean sft.epochs?",
        ),
        (
            ["run", "--profile", "smoke", "--set", "sft.epochs=many"],
            2,
            'The setting sft.epochs in --set should be a valid integer, not "many"',
        ),
        (
            ["run", "--profile", "smoke", "--stage", "page"],
            1,
            "The stage page needs total, not built yet with these settings of the profile smoke: run --stage total",
        ),
        (["rnu"], 2, "There is no command rnu: did you mean run?"),
        (["run", "--profil", "smoke"], 2, "No such option: --profil"),
    ],
)
def test_bad_input_is_one_sentence_with_its_exit_code(
    tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    found, out, errors = run(tmp_path / "home", *arguments)
    assert (found, out) == (code, "")
    assert errors.startswith(f"Error: {sentence}")
    assert errors.count("\n") == 1
    assert not (tmp_path / "home" / "artifacts").exists()


def test_profile_with_a_typo_names_section_and_key(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text("[sft]\nlearning_rat = 1e-4\n")
    code, _, errors = run(tmp_path / "home", "run", "--profile", str(profile))
    assert code == 2
    where = f"named in the profile {profile}"
    assert errors == f"Error: There is no setting sft.learning_rat, {where}: did you mean sft.learning_rate?\n"


def test_unwritable_home_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, errors = run(tmp_path / "file" / "home", "run", "--profile", "smoke")
    assert code == 1
    assert errors == (
        f"Error: The home {tmp_path / 'file' / 'home'} cannot be written (Not a directory):"
        " make it writable or name another with --home\n"
    )


def test_traceback_appears_with_debug_alone(tmp_path: Path) -> None:
    assert "Traceback" not in run(tmp_path, "run", "--profile", "smok")[2]
    assert "Traceback" in run(tmp_path, "run", "--profile", "smok", "--debug")[2]


def test_an_empty_home_option_is_wrong_usage() -> None:
    done = subprocess.run([sys.executable, "-m", "paraagent", "--home", "", "status"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "Error: --home names no directory: give a path, or leave the option out to use .paraagent here"
    )


def test_status_of_a_home_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x")
    code, _, errors = run(place, "status")
    assert code == 1
    assert errors.strip() == f"Error: The home {place} cannot be read (Not a directory): name another with --home"


def test_a_report_of_an_unknown_profile_names_the_nearest(tmp_path: Path) -> None:
    code, _, errors = run(tmp_path / "home", "report", "--profile", "quik")
    assert code == 2
    assert "quick" in errors
