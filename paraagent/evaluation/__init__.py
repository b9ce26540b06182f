"""Evaluation: run systems on held-out tasks, and say how sure the figures are."""

from paraagent.evaluation.behaviour import LABELS, MEANINGS, OUTCOMES, Outcome, classify
from paraagent.evaluation.intervals import Interval, paired_bootstrap, wilson
from paraagent.evaluation.metrics import score_frame, score_row, summarise
from paraagent.evaluation.runner import Unit, plan_units, run_unit, run_units

__all__ = [
    "LABELS",
    "MEANINGS",
    "OUTCOMES",
    "Interval",
    "Outcome",
    "Unit",
    "classify",
    "paired_bootstrap",
    "plan_units",
    "run_unit",
    "run_units",
    "score_frame",
    "score_row",
    "summarise",
    "wilson",
]
