"""Stage `model`: the base model with our chat template.

Artifact: `model/` (a transformers folder: bfloat16 safetensors, tokenizer, verbatim ChatML template).
"""

from __future__ import annotations

from pathlib import Path

from paraagent.config import Profile
from pipelines.home import Home
from pipelines.stage import Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Fetch and convert the model that the profile names."""
    from paraagent.training.pretrained import prepare_model

    source, target = context.profile.model.source, context.out / "model"
    parameters = prepare_model(source, context.downloads, target, context.seed("model"), context.progress)
    return StageResult(rows={}, metrics={"source": source, "parameters": parameters})


def _external(profile: Profile, home: Path) -> dict[str, str]:
    from paraagent.training.pretrained import source_hashes

    return source_hashes(profile.model.source, Home(home).downloads)


STAGE = Stage(
    name="model",
    version=2,
    title="Fetch and convert the base model",
    build=build,
    sections=("model",),
    external=_external,
    network=True,
)
