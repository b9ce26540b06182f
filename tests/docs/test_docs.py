"""The documents say what is there: commands and files that exist, every setting, every table, view and query."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from paraagent.config import Profile

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _commands() -> list[str]:
    """Every `paraagent …` line of a code block and every inline `paraagent …`, without comments."""
    found: dict[str, None] = {}
    for path in DOCUMENTS:
        text = path.read_text("utf-8")
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
            found.update(dict.fromkeys(line.split("  #")[0].strip() for line in block.splitlines()))
        found.update(dict.fromkeys(re.findall(r"`(paraagent [^`]+)`", text)))
    return [command for command in found if re.match(r"paraagent\s", command)]


@pytest.mark.parametrize("command", _commands())
def test_every_command_of_the_documents_exists(command: str) -> None:
    words = shlex.split(command.split("&&")[0])[1:]
    name = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
    options = {word for word in words if word.startswith("-")}
    run = subprocess.run(
        [sys.executable, "-m", "paraagent", *name, "--help"],
        capture_output=True,
        text=True,
        env={"COLUMNS": "200", "PATH": "", "TERM": "dumb"},
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert {option for option in options if option not in run.stdout} == set()


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"`?make ([a-z]+)", (ROOT / "README.md").read_text("utf-8")))
    rules = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"run", "test"} <= targets <= rules


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_files_named_in_the_documents_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:paraagent|pipelines|flows|sql|tests|data_contracts)/[\w/]*(?:\.\w+|/))`", text)
    missing = [link for link in links if not (path.parent / link).exists()]
    missing += [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
    assert missing == []


def _sections(model: type[BaseModel] = Profile, prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every section of a profile, those within others as `env.llm`."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield prefix + name, field.annotation
            yield from _sections(field.annotation, f"{prefix}{name}.")


def test_every_setting_stands_in_the_documents_with_its_default() -> None:
    text = (ROOT / "docs" / "profiles.md").read_text("utf-8")
    found = {}
    for section in text.split("\n## ")[1:]:
        name = section[2 : section.index("]`")]
        found[name] = re.findall(r"^\| `(\w+)` \| `(.+?)` \| \S.+ \|$", section, re.M)
    expected = {}
    for name, model in _sections():
        defaults = ((key, field.get_default(call_default_factory=True)) for key, field in model.model_fields.items())
        plain = ((key, default) for key, default in defaults if not isinstance(default, BaseModel))
        expected[name] = [(key, json.dumps(default, ensure_ascii=False)) for key, default in plain]
    assert found == expected


def _described(heading: str) -> list[str]:
    """First column of the table under a heading of docs/catalog.md."""
    text = (ROOT / "docs" / "catalog.md").read_text("utf-8")
    part = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", part, re.M)


def test_every_table_view_and_query_is_described() -> None:
    tables = re.findall(r"^CREATE TABLE (\w+)", (ROOT / "sql" / "schema.sql").read_text("utf-8"), re.M)
    views = re.findall(r"^CREATE VIEW (\w+)", (ROOT / "sql" / "views.sql").read_text("utf-8"), re.M)
    assert sorted(_described("Tables")) == sorted(tables)
    assert sorted(_described("Views")) == sorted(set(views) - set(tables))
    assert _described("Saved queries") == [path.stem for path in sorted((ROOT / "sql" / "queries").glob("*.sql"))]
