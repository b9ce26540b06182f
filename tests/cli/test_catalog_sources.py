"""`catalog add`, `remove` and `sources`: tools of one's own come and go, and nothing that was there changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from typer.testing import CliRunner

from paraagent.catalog.store import Catalog
from paraagent.cli import app
from pipelines.settings import load_profile

TREE = """
openapi: 3.0.3
info: {title: Family tree, version: "1"}
paths:
  /people/{personId}:
    get:
      operationId: getPerson
      summary: Get a person with all ancestors
      parameters: [{name: personId, in: path, required: true, schema: {type: string}, description: Who it is.}]
      responses:
        "200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Person"}}}}
components:
  schemas:
    Person:
      type: object
      properties:
        name: {type: string, description: Full name.}
        mother: {$ref: "#/components/schemas/Person"}
        father: {$ref: "#/components/schemas/Person"}
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the catalog of the profile smoke; each test leaves it without added sources."""
    home = tmp_path_factory.mktemp("home")
    tree = home.parent / "tree.yaml"
    tree.write_text(TREE)
    result = CliRunner(env={"PARAAGENT_HOME": str(home)}).invoke(
        app, ["catalog", "add", f"openapi:{tree}", "--profile", "smoke"]
    )
    assert result.exit_code == 0, result.stderr
    result = CliRunner(env={"PARAAGENT_HOME": str(home)}).invoke(
        app, ["catalog", "remove", "openapi:tree.yaml", "--profile", "smoke"]
    )
    assert result.exit_code == 0, result.stderr
    return home


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PARAAGENT_HOME", str(home))

    def run(*words: str) -> Done:
        profile = ["--profile", "smoke"] if words[0] != "sources" else []
        result = CliRunner().invoke(app, ["catalog", *words, *profile])
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


def _rows(home: Path) -> list[tuple[Any, ...]]:
    with Catalog.open(home / "catalog.duckdb") as catalog:
        return catalog.rows("SELECT tool_id, name FROM tools ORDER BY ALL")


def test_a_recursive_yaml_file_is_added_searched_and_removed(run: Any, home: Path, tmp_path: Path) -> None:
    before = _rows(home)
    (tmp_path / "tree.yaml").write_text(TREE)
    spec = f"openapi:{tmp_path / 'tree.yaml'}"
    done = run("add", spec)
    assert (done.code, done.out.strip()) == (0, "Added 1 tool of openapi:tree.yaml: tree_get_person")
    assert set(before) < set(_rows(home))
    found = orjson.loads(run("search", "ancestors of a person", "-k", "1", "--json").out)
    assert "tree_get_person" in orjson.dumps(found).decode()
    assert orjson.loads(run("sources", "--json").out)["added"] == [{"source": "openapi:tree.yaml", "spec": spec}]
    done = run("remove", spec)
    assert (done.code, done.out.strip()) == (0, f"Removed openapi:tree.yaml: the catalog has {len(before)} tools")
    assert _rows(home) == before
    assert "No source was added" in run("sources").out


def test_a_source_that_changed_is_read_again_when_it_is_added_again(run: Any, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text(TREE)
    assert run("add", f"openapi:{path}").code == 0
    path.write_text(TREE.replace("getPerson", "readPerson"))
    done = run("add", f"openapi:{path}")
    assert (done.code, done.out.strip()) == (0, "Added 1 tool of openapi:tree.yaml: tree_read_person")
    assert not any(name == "tree_get_person" for _, name in _rows(home))
    assert len(orjson.loads(run("sources", "--json").out)["added"]) == 1
    assert run("remove", "openapi:tree.yaml").code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n", "holds no usable operation"),
        ("just: text\n", "holds no usable operation"),
        ("a: &a [*a]\n", "holds no usable operation (tree.yaml: unreadable, the alias"),
        ("\xff", "holds no usable operation"),
    ],
)
def test_a_document_without_an_operation_is_not_added(
    run: Any, home: Path, tmp_path: Path, text: str, says: str
) -> None:
    before = _rows(home)
    (tmp_path / "tree.yaml").write_text(text, encoding="latin-1")
    done = run("add", f"openapi:{tmp_path / 'tree.yaml'}")
    assert done.code == 2
    assert says in done.err
    assert "the catalog is as it was" in done.err
    assert _rows(home) == before
    assert orjson.loads(run("sources", "--json").out)["added"] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "openapi:/no/such.yaml"), "does not exist"),
        (("add", "petstore.yaml"), "Cannot read the catalog source 'petstore.yaml'"),
        (("add", "mcp:no-such-server"), "There is no command 'no-such-server'"),
        (("add", "mcp:serve --token hunter2"), "looks like a secret"),
        (("remove", "openapi:tree.yml"), "was not added"),
    ],
)
def test_wrong_usage_is_one_sentence(run: Any, home: Path, words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert not any(b"hunter2" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_list_of_sources_that_was_changed_by_hand_says_what_to_do(run: Any, home: Path) -> None:
    (home / "sources.json").write_text("{torn")
    done = run("sources")
    (home / "sources.json").unlink()
    assert done.code == 1
    assert "sources.json is not valid JSON" in done.err
    assert "remove it and add the sources again" in done.err


def test_a_profile_of_ones_own_is_used_again_as_long_as_its_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAAGENT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    [source] = load_profile("smoke").catalog.sources
    (tmp_path / "mine.toml").write_text(f'[catalog]\nsources = ["{source}"]\nmax_depth = 3\n')
    (tmp_path / "tree.yaml").write_text(TREE)

    def run(*words: str) -> Done:
        result = CliRunner().invoke(app, ["catalog", *words])
        return Done(result.exit_code, result.stdout, result.stderr)

    assert run("add", "openapi:tree.yaml", "--profile", "mine.toml").code == 0
    assert run("build", "--profile", "mine.toml").code == 0
    for words in (("remove", "openapi:tree.yaml"), ("add", "openapi:tree.yaml")):
        assert run(*words).code == 0
        last = max((tmp_path / "home" / "runs").glob("*.json"))
        record = orjson.loads(last.read_bytes())
        assert (record["profile"]["name"], record["file"]) == ("mine", str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").unlink()
    done = run("add", "openapi:tree.yaml")
    assert done.code == 2
    gone = f"its file {tmp_path / 'mine.toml'} is gone: name one with --profile"
    assert done.err.splitlines()[-1] == f"Error: The profile used last is mine, but {gone}"
