"""The fixtures of the profile `smoke` hold services of every split, so that there is something to evaluate on."""

import json
from pathlib import Path

import pipelines
from paraagent.catalog.splits import split_of


def test_every_split_has_a_service() -> None:
    specs = sorted((Path(pipelines.__file__).parent / "profiles" / "smoke").glob("*.json"))
    providers = [json.loads(path.read_text("utf-8"))["info"]["x-providerName"] for path in specs]
    splits = {split_of(provider, path.stem) for provider, path in zip(providers, specs, strict=True)}
    assert splits == {"train", "validation", "test"}
