"""What checking the laws found."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

LAWS = {
    1: "the same calls give the same bytes",
    2: "results validate against the tool's schema",
    3: "arguments echo in the fields that name them",
    4: "a thing reads the same through every tool",
    5: "an id that was never issued is not found",
    6: "what was written is read",
    7: "sessions share nothing",
    8: "lists honour filters, limits and pages",
}
_LONGEST = 300
"""Characters that are kept of what was seen."""


class Violation(NamedTuple):
    """A check that failed."""

    law: int
    tool: str
    seen: str


@dataclass
class Findings:
    """What the checks found."""

    checks: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Checks made, by law and tool."""
    violations: list[Violation] = field(default_factory=list)
    outside: dict[str, str] = field(default_factory=dict)
    """Why some law cannot be asked of a tool, by its name."""
    digest: str = ""
    """Of every answer in order: equal in every process."""

    def check(self, law: int, tool: str, holds: bool, seen: str) -> None:
        """Note a check; `seen` says what a violation looks like."""
        self.checks[law, tool] += 1
        if not holds:
            self.violations.append(Violation(law, tool, seen[:_LONGEST]))

    def add(self, other: Findings) -> None:
        """Take over what others found."""
        self.checks += other.checks
        self.violations += other.violations
        self.outside |= other.outside
        self.digest = hashlib.sha256(f"{self.digest}{other.digest}".encode()).hexdigest()
