"""The card of a fine-tuned model: what it learned from, with which settings, and how it did along the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paraagent.config import Profile
from paraagent.files import write_atomic
from paraagent.markdown import render_markdown
from paraagent.training.sft import SftReport


def write_card(model: Path, report: SftReport, profile: Profile, inputs: Mapping[str, str]) -> None:
    """Write `README.md` beside the weights.

    Args:
        model: the folder of the weights.
        report: how they were trained.
        profile: with which settings.
        inputs: fingerprints of the artifacts that they come from, by stage.
    """
    text = render_markdown(
        Path(__file__).parent / "card.md.jinja",
        name=f"{profile.name}-sft",
        base=profile.model.source,
        report=report,
        adapter=bool(profile.sft.lora_rank),
        made={"profile": profile.name, "seed": profile.seed, **inputs},
        settings=profile.sft.model_dump(mode="json"),
    )
    write_atomic(model / "README.md", text.encode())
