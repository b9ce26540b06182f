"""A real Prefect server and workers: `up`, the smoke profile through its deployments, what the UI is given, `down`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pytest

ROOT = Path(__file__).parents[2]
STAGES = ["catalog", "tasks", "model", "demos", "sft", "rl", "evaluate", "report"]

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


class Here:
    """A home with its server."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.port = port
        self.url = f"http://127.0.0.1:{port}/api"

    @property
    def environment(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
        return {
            **clean,
            "PARAAGENT_HOME": str(self.home),
            "PREFECT_API_URL": self.url,
            "PREFECT_HOME": str(self.home / "prefect"),
            "OMP_NUM_THREADS": "1",
        }

    def command(self, *arguments: str, module: str = "paraagent") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def deploy_and_watch(self, deployment: str, **parameters: Any) -> int:
        given = [word for name, value in parameters.items() for word in ("--param", f"{name}={json.dumps(value)}")]
        run = self.command("deployment", "run", f"paraagent/{deployment}", *given, "--watch", module="prefect")
        return run.returncode

    def filter(self, what: str, **body: Any) -> list[dict[str, Any]]:
        request = Request(
            f"{self.url}/{what}/filter",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(request) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def last_run(self) -> dict[str, Any]:
        return self.filter("flow_runs", sort="START_TIME_DESC", limit=1)[0]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = Here(tmp_path_factory.mktemp("served") / "home", port)
    try:
        up = here.command("up", "--port", str(port), "--json")
        assert up.returncode == 0, up.stderr
        yield here
    finally:
        here.command("down")


def test_smoke_runs_through_its_deployments_and_the_ui_has_all_of_it(here: Here) -> None:
    assert here.deploy_and_watch("full-pipeline", profile="smoke") == 0, here.last_run()
    run = here.last_run()
    assert run["state_type"] == "COMPLETED"
    tasks = here.filter("task_runs", flow_runs={"id": {"any_": [run["id"]]}})
    assert sorted(task["name"].split("@")[0] for task in tasks) == sorted(STAGES)
    assert all(task["state_type"] == "COMPLETED" and "paraagent" in task["tags"] for task in tasks)

    artifacts = {artifact["key"]: artifact for artifact in here.filter("artifacts", limit=200) if artifact["key"]}
    assert {f"smoke-{stage}-counts" for stage in STAGES} <= set(artifacts)
    assert "smoke-catalog-contract-tools" in artifacts
    for stage in ("sft", "rl", "report"):
        assert "data:image/svg+xml;base64," in artifacts[f"smoke-{stage}-curves"]["data"]
    progress = [artifact for key, artifact in artifacts.items() if key.endswith("-progress")]
    assert progress
    assert all(float(artifact["data"]) == 100.0 for artifact in progress)

    # One stage alone, from the UI: nothing changed, so it is reused; forced, it is built again.
    manifest = here.home / "artifacts" / "report"
    before = {path: path.read_bytes() for path in manifest.glob("*/manifest.json")}
    assert here.deploy_and_watch("report", profile="smoke") == 0
    assert {path: path.read_bytes() for path in manifest.glob("*/manifest.json")} == before
    assert here.deploy_and_watch("report", profile="smoke", force=["report"]) == 0
    assert {path: path.read_bytes() for path in manifest.glob("*/manifest.json")} != before


def test_gpu_stage_goes_to_its_own_deployment_where_the_profile_says_so(here: Here) -> None:
    overrides = {"machine.dispatch": "workers", "sft.max_demos": 6}
    code = here.deploy_and_watch(
        "full-pipeline", profile="smoke", stages=["catalog", "tasks", "model", "demos", "sft"], overrides=overrides
    )
    assert code == 0, here.last_run()
    runs = here.filter("flow_runs", sort="START_TIME_DESC", limit=2)
    child = next(run for run in runs if run["parent_task_run_id"])
    assert child["work_pool_name"] == "paraagent-gpu"
    assert child["parameters"]["stages"] == ["sft"]
    assert child["state_type"] == "COMPLETED"


def test_failed_flow_run_carries_the_sentence(here: Here) -> None:
    assert here.deploy_and_watch("full-pipeline", profile="smok") != 0
    run = here.last_run()
    assert run["state_type"] == "FAILED"
    assert "There is no profile smok: did you mean smoke?" in run["state"]["message"]


def test_up_again_starts_nothing_twice(here: Here) -> None:
    before = json.loads((here.home / "server.json").read_text())
    again = here.command("up", "--port", str(here.port), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["processes"] == {process["name"]: process["pid"] for process in before["processes"]}


def test_port_that_is_taken_is_one_sentence(here: Here, tmp_path: Path) -> None:
    other = Here(tmp_path / "home", here.port)
    taken = other.command("up", "--port", str(here.port))
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"Error: Port {here.port} on 127.0.0.1 is taken")
    assert taken.stderr.count("\n") == 1


def test_run_whose_server_goes_away_says_so(here: Here) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "paraagent", "run", "--profile", "smoke", "--force", "tasks"],
        cwd=ROOT,
        env={**here.environment, "PREFECT_CLIENT_MAX_RETRIES": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    assert any("tasks@" in line for line in run.stderr)
    assert here.command("down").returncode == 0
    said = run.stderr.read()
    assert run.wait() == 1
    assert "Error: The Prefect server of this run stopped answering (" in said
    assert here.command("up", "--port", str(here.port)).returncode == 0


def test_down_stops_its_own_processes_and_may_be_repeated(here: Here) -> None:
    pids = [process["pid"] for process in json.loads((here.home / "server.json").read_text())["processes"]]
    assert len(pids) == 3
    down = here.command("down", "--json")
    assert json.loads(down.stdout)["stopped"] == ["worker-paraagent-cpu", "worker-paraagent-gpu", "server"]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert here.command("down").stdout == "Nothing of this home was running\n"
