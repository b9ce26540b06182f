"""Why a tool or a task is not taken."""

from __future__ import annotations


class RejectionError(Exception):
    """The text is the key of the count."""
