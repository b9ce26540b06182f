"""Plots: matplotlib figures as SVG text that is the same for the same data, byte for byte.

Every colour comes from `PALETTE`. A stand-alone SVG keeps the light colours; `themed` turns each into the CSS variable
of the same name, so that a plot inside the page follows the reader's light or dark theme. Plots are drawn at the width
of a phone and scale up.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paraagent.evaluation import LABELS, OUTCOMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE: dict[str, str] = {
    "ink": "#1c1e26",
    "muted": "#646a78",
    "line": "#dcd9d1",
    "paper": "#fffefb",
    "oracle": "#7d8390",
    "base": "#c2772b",
    "sft": "#2b6fb8",
    "rl": "#7a4bb3",
    "trajectory": "#2b6fb9",
    "phase": "#22876b",
    "step": "#c2772c",
    "solved": "#2f8f6b",
    "wrong_answer": "#9fc4a5",
    "limit": "#d9cf8f",
    "wrong_arguments": "#e6b566",
    "wrong_tool": "#dd9150",
    "not_found": "#cb6a4b",
    "no_search": "#a8476a",
    "format": "#6d4a7f",
    "error": "#3f4254",
}
"""Name of the CSS variable -> colour on light paper. Values are distinct, since `themed` goes by value."""

CHANNELS = ("trajectory", "phase", "step")
"""The reward channels of reinforcement, in the order of their panels."""

_WIDTH = 4.1
_RC: Any = {
    "svg.hashsalt": "paraagent",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": PALETTE["ink"],
    "axes.edgecolor": PALETTE["line"],
    "axes.labelcolor": PALETTE["muted"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "figure.facecolor": PALETTE["paper"],
    "savefig.facecolor": PALETTE["paper"],
    "grid.color": PALETTE["line"],
    "grid.linewidth": 0.6,
    "xtick.color": PALETTE["muted"],
    "ytick.color": PALETTE["muted"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def themed(svg: str, name: str) -> str:
    """The SVG for use inside a page: colours by CSS variable, ids made unique by `name`."""
    for variable, colour in PALETTE.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return svg[svg.index("<svg") :]


def success(rates: Mapping[str, Mapping[str, float]]) -> str:
    """Dot and interval of each system's success rate, first system on top."""

    def draw(figure: Figure) -> None:
        axes: Axes = figure.add_subplot()
        for row, (system, rate) in enumerate(rates.items()):
            colour = PALETTE[system]
            ends = [rate["low"], rate["high"]]
            axes.plot(ends, [row, row], color=colour, linewidth=3, solid_capstyle="round", alpha=0.45)
            axes.plot([rate["rate"]], [row], "o", color=colour, markersize=8)
            place: Any = {"textcoords": "offset points", "xytext": (0, 9), "ha": "center", "weight": "bold"}
            axes.annotate(f"{100 * rate['rate']:.0f} %", (rate["rate"], row), **place)
        _rows(axes, list(rates))
        axes.set_xlim(-0.04, 1.04)
        _percent(axes)

    return _svg(draw, 0.55 + 0.48 * len(rates))


def failures(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Stacked bars: where each system's episodes ended, as shares that fill the bar."""

    def draw(figure: Figure) -> None:
        axes: Axes = figure.add_subplot()
        used = [name for name in OUTCOMES if any(row[name] for row in counts.values())]
        for row, system in enumerate(counts):
            total, left = sum(counts[system].values()) or 1, 0.0
            for name in used:
                share = counts[system][name] / total
                style: Any = {"color": PALETTE[name], "edgecolor": PALETTE["paper"], "linewidth": 1}
                axes.barh(row, share, left=left, height=0.62, **style)
                left += share
        _rows(axes, list(counts))
        axes.set_xlim(0, 1)
        _percent(axes)
        handles = [_patch(PALETTE[name], LABELS[name]) for name in used]
        figure.legend(handles=handles, loc="outside lower left", ncols=2, handlelength=1, handleheight=1)

    used = sum(any(row[name] for row in counts.values()) for name in OUTCOMES)
    return _svg(draw, 0.6 + 0.42 * len(counts) + 0.2 * ((used + 1) // 2))


def rewards(means: Mapping[str, Mapping[str, float | None]], names: Sequence[str]) -> str:
    """Mean of every reward by system: one row a reward, one dot a system."""

    def draw(figure: Figure) -> None:
        axes: Axes = figure.add_subplot()
        for position, (system, row) in enumerate(means.items()):
            shift = (position - (len(means) - 1) / 2) * 0.16
            axes.plot(
                [row[name] or 0.0 for name in names],
                [index + shift for index in range(len(names))],
                "o",
                color=PALETTE[system],
                markersize=6,
                label=system,
            )
        axes.axvline(0, color=PALETTE["muted"], linewidth=0.8)
        _rows(axes, names)
        axes.locator_params(axis="x", nbins=6)
        axes.grid(axis="x")
        figure.legend(loc="outside lower left", ncols=len(means), handletextpad=0.2, columnspacing=1.2)

    return _svg(draw, 0.7 + 0.4 * len(names))


def training(log: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Name and SVG of what a stage's `log.jsonl` shows: the reward channels of `rl`, or the loss of `sft`."""
    steps = [row["step"] for row in log]
    if log and f"{CHANNELS[0]}_mean" in log[0]:
        return "rl-rewards", channels(steps, {name: [row[f"{name}_mean"] for row in log] for name in CHANNELS})
    return "sft-loss", loss(steps, [row["loss"] for row in log])


def loss(steps: Sequence[int], values: Sequence[float]) -> str:
    """SFT loss by step, with a running mean over a tenth of the run."""

    def draw(figure: Figure) -> None:
        axes: Axes = figure.add_subplot()
        window = max(1, len(values) // 10)
        spans = [values[max(0, end - window) : end] for end in range(1, len(values) + 1)]
        axes.plot(steps, values, color=PALETTE["sft"], linewidth=0.9, alpha=0.4, marker="o" if len(values) < 3 else "")
        axes.plot(steps, [sum(span) / len(span) for span in spans], color=PALETTE["sft"], linewidth=2)
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")

    return _svg(draw, 2.5)


def validation(rows: Sequence[Mapping[str, Any]]) -> str:
    """SFT in closed loop: shares of validation tasks solved, and of the tools they need found and called right."""
    lines = (
        ("tools found", "phase", [_share(row["found"], row["targets"]) for row in rows]),
        ("called right", "step", [_share(row["called"], row["targets"]) for row in rows]),
        ("tasks solved", "sft", [_share(row["solved"], row["tasks"]) for row in rows]),
    )

    def draw(figure: Figure) -> None:
        axes: Axes = figure.add_subplot()
        for label, colour, values in lines:
            axes.plot(
                [row["step"] for row in rows], values, color=PALETTE[colour], linewidth=2, marker="o", label=label
            )
        axes.set_xlabel("step")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.03)
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.grid(axis="y")
        figure.legend(loc="outside lower left", ncols=3, handlelength=1.2, columnspacing=1.2)

    return _svg(draw, 2.7)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def channels(updates: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """RL: the mean reward of each channel by update, one panel a channel, each on its own scale."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, values) in zip(panels, curves.items(), strict=True):
            axes.plot(updates, values, color=PALETTE[name], linewidth=2, marker="o", markersize=4)
            axes.set_title(name, loc="left", fontsize=9, color=PALETTE["ink"])
            axes.margins(y=0.25)
            axes.locator_params(axis="y", nbins=4)
            axes.grid(axis="y")
        panels[-1].set_xlabel("update")
        panels[-1].xaxis.get_major_locator().set_params(integer=True)

    return _svg(draw, 0.4 + 1.15 * len(curves))


def _svg(draw: Any, height: float) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_RC):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return buffer.getvalue()


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", labelcolor=PALETTE["ink"])
    axes.set_ylim(len(labels) - 0.5, -0.6)


def _percent(axes: Axes) -> None:
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.grid(axis="x")


def _patch(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)
