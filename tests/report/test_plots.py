"""Plots: the same data, the same bytes; colours that follow the theme; text that stays text."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from paraagent.evaluation import OUTCOMES
from paraagent.report import plots

RATES = {
    "base": {"rate": 0.0, "low": 0.0, "high": 0.1},
    "sft": {"rate": 0.5, "low": 0.3, "high": 0.7},
}


def test_the_same_data_draw_the_same_bytes() -> None:
    assert plots.success(RATES) == plots.success(RATES)


def test_no_plot_carries_a_date_or_a_version() -> None:
    svg = plots.loss([1, 2, 3], [3.0, 2.0, 1.0])
    assert "dc:date" not in svg
    assert "matplotlib v" not in svg.lower()


MEANS = {"base": {"outcome": -0.5, "step": None}, "sft": {"outcome": 1.0, "step": 0.5}}
CURVES = {"trajectory": [0.1, 0.2], "phase": [0.0, 0.0], "step": [1.0, 1.0]}
PLAYED = [{"step": n, "solved": n, "tasks": 4, "targets": 0, "found": 0, "called": 0} for n in (1, 2)]
DRAW: dict[str, Callable[[], str]] = {
    "success": lambda: plots.success(RATES),
    "failures": lambda: plots.failures({"base": dict.fromkeys(OUTCOMES, 1), "sft": dict.fromkeys(OUTCOMES, 0)}),
    "rewards": lambda: plots.rewards(MEANS, ["outcome", "step"]),
    "loss": lambda: plots.loss([1], [2.5]),
    "validation": lambda: plots.validation(PLAYED),
    "channels": lambda: plots.channels([1, 2], CURVES),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_themed_plot_is_well_formed_and_names_no_colour(name: str) -> None:
    themed = plots.themed(DRAW[name](), "plot")
    ElementTree.fromstring(themed)
    assert re.findall(r"#[0-9a-f]{6}\b", themed) == []
    assert set(re.findall(r"var\(--(\w+)\)", themed)) <= set(plots.PALETTE)
    assert all(name.startswith("plot-") for name in re.findall(r'\bid="([^"]+)"', themed))


def test_labels_stay_text() -> None:
    assert ">sft</text>" in plots.success(RATES)


def test_palette_colours_are_distinct() -> None:
    assert len(set(plots.PALETTE.values())) == len(plots.PALETTE)
