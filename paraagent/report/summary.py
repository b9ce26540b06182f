"""The evaluation in the terminal: one line a system, then what changes from one to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def summary_table(summary: Mapping[str, Any]) -> Table:
    """`summary.json` of the stage `evaluate` as a table for rich's console."""
    from rich.table import Table

    confidence = f"{100 * summary['confidence']:g} %"
    differences = {row["system"]: row for row in summary["differences"]}
    table = Table(title=f"{summary['tasks']} held-out tasks", title_justify="left", box=None, pad_edge=False)
    table.add_column("system")
    for heading in ("solved", "rate", f"{confidence} interval", "points", "turns", "calls/turn", "found"):
        table.add_column(heading, justify="right", no_wrap=True)
    for system in summary["systems"]:
        row, means = summary["success"][system], summary["means"][system]
        table.add_row(
            system,
            f"{row['solved']}/{row['n']}",
            f"{row['rate']:.0%}",
            f"{100 * row['low']:.0f}–{row['high']:.0%}",
            _difference(differences.get(system)),
            _number(means["turns"]),
            _number(means["calls_per_turn"]),
            "–" if means["tool_hit_rate"] is None else f"{means['tool_hit_rate']:.0%}",
        )
    pairs = " and ".join(f"{row['system']} minus {row['baseline']}" for row in summary["differences"])
    found = "found: share of the needed tools that searches returned"
    table.caption = f"points: {pairs}, with its interval; {found}" if pairs else found
    table.caption_justify = "left"
    return table


def _difference(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{100 * row['difference']:+.0f} ({100 * row['low']:+.0f}…{100 * row['high']:+.0f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
