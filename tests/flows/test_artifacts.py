"""What is handed to the Prefect UI, without a server."""

from __future__ import annotations

import base64
from pathlib import Path

from flows.artifacts import curves, data_uri, key
from paraagent.files import write_lines


def test_keys_hold_only_the_letters_that_prefect_allows() -> None:
    assert key("My_Profile v2", "sft", "curves") == "my-profile-v2-sft-curves"


def test_loss_and_channels_become_images(tmp_path: Path) -> None:
    write_lines(tmp_path / "log.jsonl", [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}])
    ((title, svg),) = curves(tmp_path)
    assert title == "Loss by step"
    assert svg.lstrip().startswith(("<?xml", "<svg"))


def test_image_survives_its_way_into_markdown() -> None:
    uri = data_uri("<svg xmlns='http://www.w3.org/2000/svg'>ä</svg>")
    assert base64.b64decode(uri.removeprefix("data:image/svg+xml;base64,")).decode() == (
        "<svg xmlns='http://www.w3.org/2000/svg'>ä</svg>"
    )


def test_artifact_without_curves_has_no_images(tmp_path: Path) -> None:
    assert list(curves(tmp_path)) == []
