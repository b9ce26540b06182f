"""`paraagent doctor --profile`: a table for a person, one document for a program, and an exit code that tells."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import run


def test_a_profile_that_fits_exits_0_with_figures_and_findings(tmp_path: Path) -> None:
    code, out, errors = run(tmp_path, "doctor", "--profile", "gpu", "--gpu-memory", "80", COLUMNS="120")
    assert (code, errors) == (0, "")
    assert "4,022,468,096 parameters" in out
    assert "1 × 32 × 1" in out
    assert "ok       rollouts        64.5 of 73.6 GiB that can be filled" in out


def test_a_profile_that_does_not_fit_exits_1_and_says_what_to_lower(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "doctor", "--profile", "gpu", "--gpu-memory", "24", "--json")
    document = json.loads(out)
    findings = {finding["what"]: finding for finding in document["findings"]}
    assert code == 1
    assert document["gpu_bytes"] == 24 << 30
    assert findings["rollouts"]["verdict"] == "missing"
    assert findings["rollouts"]["advice"].startswith("lower rl.prompts")
    memory = document["memory_bytes"]["rollouts"]
    assert memory["total"] == sum(size for part, size in memory.items() if part != "total")


def test_settings_that_contradict_each_other_exit_1(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "doctor", "--profile", "smoke", "--set", "sft.micro_batch=3")
    assert code == 1
    assert "WRONG    sft.batch_size  4 is no multiple of sft.micro_batch = 3" in out


def test_a_gpu_without_a_profile_is_wrong_usage(tmp_path: Path) -> None:
    code, _, errors = run(tmp_path, "doctor", "--gpu-memory", "24")
    assert code == 2
    assert "--set and --gpu-memory belong to --profile" in errors


def test_without_a_profile_the_machine_is_looked_at(tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, "doctor", "--json")
    document = json.loads(out)
    assert {"python", "memory", "disk", "gpu", "profile smoke"} <= set(document)
    assert document["python"]["verdict"] == "ok"
