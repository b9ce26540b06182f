"""HTML: facts into one self-contained file. No script, no request, no clock: the same facts give the same bytes.

Everything that a tool, a model or a source wrote is escaped by the template engine; a content policy in the page
forbids scripts and requests on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paraagent.evaluation import LABELS, MEANINGS, OUTCOMES
from paraagent.evaluation.metrics import REWARDS
from paraagent.report import plots
from paraagent.report.collect import Facts

_FOLDER = Path(__file__).parent
_CONTROL = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), 127) if chr(code) not in "\t\n"}


def draw(facts: Facts) -> dict[str, str]:
    """The plots of the page as stand-alone SVG, by file name without ending."""
    summary = facts.summary
    success, failures, means = (
        {system: summary[part][system] for system in summary["systems"]} for part in ("success", "failures", "means")
    )
    return {
        "success": plots.success(success),
        "failures": plots.failures(failures),
        "rewards": plots.rewards(means, REWARDS),
        **dict([plots.training(facts.sft), plots.training(facts.rl)]),
        **({"sft-validation": plots.validation(facts.validation)} if facts.validation else {}),
    }


def render(facts: Facts, drawn: Mapping[str, str]) -> str:
    """The whole page; `drawn` comes from `draw`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters |= {"count": _count, "percent": _percent, "number": _number, "points": _points}
    return environment.get_template("report.html.jinja").render(
        facts=facts,
        css=Markup((_FOLDER / "report.css").read_text("utf-8")),
        plots={name: Markup(plots.themed(svg, name)) for name, svg in drawn.items()},
        palette=plots.PALETTE,
        headline=headline(facts.summary),
        labels=LABELS,
        meanings=MEANINGS,
        bins=[name for name in OUTCOMES if any(row[name] for row in facts.summary["failures"].values())],
        rewards=REWARDS,
        channels=plots.CHANNELS,
        shapes=sorted(next(iter(facts.summary["by_shape"].values())), key=_width),
        settings=facts.profile.model_dump_json(exclude={"machine"}, indent=2),
    )


def headline(summary: Mapping[str, Any]) -> str:
    """The result in two sentences, for people who read no further."""
    solved = [f"{system} solved {summary['success'][system]['solved']}" for system in summary["systems"]]
    sentence = f"Of {summary['tasks']} held-out tasks, {', '.join(solved)}."
    for row in summary["differences"]:
        certain = row["low"] > 0 or row["high"] < 0
        verdict = "a difference" if certain else "no difference that this many tasks can show"
        sentence += (
            f" From {row['baseline']} to {row['system']}: {_points(row['difference'])} points "
            f"({_points(row['low'])} to {_points(row['high'])}), {verdict}."
        )
    return sentence


def _width(shape: str) -> tuple[int, str]:
    """Narrow shapes first: single, parallel-2, parallel-3."""
    _, _, width = shape.rpartition("-")
    return int(width) if width.isdecimal() else 1, shape


def _printable(value: Any) -> Any:
    return value.translate(_CONTROL) if type(value) is str else value


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}".replace("-", "−")


def _points(share: float) -> str:
    """A difference of shares in percentage points, signed."""
    return f"{100 * share:+.1f}".replace("-", "−")
