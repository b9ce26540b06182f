"""How long work says what it does: a protocol, so that the library knows nothing of bars, lines or servers."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receiver of progress; the pipeline's runner shows it as a bar, as plain lines, and in Prefect."""

    def message(self, text: str) -> None: ...
    def start(self, total: int | None, unit: str) -> None: ...
    def advance(self, n: int = 1) -> None: ...


class Quiet:
    """A `Progress` that shows nothing: for library use."""

    def message(self, text: str) -> None:
        pass

    def start(self, total: int | None, unit: str) -> None:
        pass

    def advance(self, n: int = 1) -> None:
        pass
