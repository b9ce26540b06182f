"""Report: what a run did and how well, for the terminal and as one HTML file."""

from paraagent.report.summary import summary_table

__all__ = ["summary_table"]
