"""Stage `sft`: fine-tune the base model on the demonstrations.

Artifact: `model/` (a transformers folder), `log.jsonl` (one row a step: loss, token accuracy, learning rate, tokens).
"""

from __future__ import annotations

from pipelines.stage import Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Tune on the demonstrations, from the last checkpoint where there is one."""
    from paraagent.training.sft import tune

    report = tune(
        context.inputs["demos"] / "demos.parquet",
        context.inputs["model"] / "model",
        context.out,
        context.profile.sft,
        context.seed("sft"),
        context.progress,
    )
    return StageResult(
        rows={"demos": report.demos, "steps": report.steps},
        metrics={"tokens": report.tokens, "loss_first": report.loss_first, "loss_last": report.loss_last},
    )


STAGE = Stage(
    name="sft",
    version=2,
    title="Fine-tune on the demonstrations",
    build=build,
    inputs=("demos", "model"),
    sections=("sft",),
    gpu=True,
)
