"""Stage `report`: everything that the run made, on one page that needs no network and no server.

Artifact: `report.html` (self-contained), `plots/*.svg` (the same plots, stand-alone).
"""

from __future__ import annotations

from paraagent.files import write_atomic
from pipelines.stage import Stage, StageContext, StageResult


def build(context: StageContext) -> StageResult:
    """Read the artifacts of all stages, draw, and write the page."""
    from paraagent.report.collect import collect
    from paraagent.report.html import draw, render

    facts = collect(context.inputs, context.profile, context.fingerprint)
    drawn = draw(facts)
    for name, svg in drawn.items():
        write_atomic(context.out / "plots" / f"{name}.svg", svg.encode())
    write_atomic(context.out / "report.html", render(facts, drawn).encode())
    return StageResult(rows={"plots": len(drawn), "episodes": len(facts.examples)})


STAGE = Stage(
    name="report",
    version=2,
    title="Write the report",
    build=build,
    inputs=("catalog", "tasks", "model", "demos", "sft", "rl", "evaluate"),
    sections=("report",),
)
