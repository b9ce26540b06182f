"""Help imports no command, so that it answers at once, and every command shows how it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paraagent.cli import _Commands
from paraagent.cli.lazy import hoist, load


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom paraagent.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('pipelines', 'flows', 'torch', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", list(_Commands.entries))
def test_command_shows_an_example(name: str) -> None:
    command = load(name, _Commands.entries[name])
    leaves = list(getattr(command, "commands", {}).values()) or [command]
    assert all("Example" in (leaf.help or "") for leaf in leaves), [leaf.name for leaf in leaves]


def test_command_line_lists_all_commands_of_the_table() -> None:
    done = subprocess.run([sys.executable, "-m", "paraagent", "--help"], capture_output=True, text=True, check=True)
    assert all(f" {name} " in done.stdout for name in _Commands.entries)


def test_home_and_debug_may_follow_the_command() -> None:
    assert hoist(["run", "--home", "/x", "--debug"]) == ["--home", "/x", "--debug", "run"]
    assert hoist(["sql", "--", "--home", "/x"]) == ["sql", "--", "--home", "/x"]


def test_unknown_subcommand_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "paraagent", "catalog", "serach"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: No such command 'serach'. Did you mean 'search'?")
