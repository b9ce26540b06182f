"""What a person sees while an agent works: calls as they go out and come back, then each turn as a whole.

On a terminal the running calls stand below with their clocks, and give way to the finished turn; elsewhere each start
and each end is a line.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live as Area
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from paraagent.cli.episode import show_turn
from paraagent.paraact.protocol import compact

if TYPE_CHECKING:
    from paraagent.catalog.interface import ToolInterface
    from paraagent.paraact.executor import Outcome
    from paraagent.paraact.paradigm import Paradigm
    from paraagent.paraact.protocol import CallBlock, ParsedTurn
    from paraagent.trace import Episode, Turn

_SHOWN = 100
"""Characters of a call's arguments."""


class Live:
    """A `Watcher` of ToolEnv that draws."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._area: Area | None = None
        self._title = ""
        self._running: dict[int, tuple[CallBlock, float, str]] = {}

    def begin(self, request: str, who: str) -> None:
        """Say what is asked, and of whom."""
        self.stop()
        self._console.print(Panel(Text(request), title="request", title_align="left", expand=False))
        self._console.print(Text(who, style="dim"))

    def starting(self, servers: Iterable[str]) -> None:
        """The servers are started, which may take a minute where they install themselves first."""
        title = f"starting {', '.join(servers)}: a first start may take a minute"
        self._draw(title)
        if self._area is None:
            self._line(f"… {title}")

    def note(self, text: str) -> None:
        """Something that a person should know."""
        self._console.print(Text(f"! {text}", style="yellow"), soft_wrap=True)

    def thinking(self) -> None:
        """The policy is asked."""
        self._draw("thinking")

    def turn(self, number: int, parsed: ParsedTurn) -> None:
        """A turn was read."""
        self._running.clear()
        if parsed.family == "call":
            self._draw(f"turn {number}: calling")

    def begun(self, place: int, call: CallBlock) -> None:
        """A call goes out."""
        self._running[place] = (call, time.monotonic(), "")
        if self._area is None:
            self._line(f"… {call.name} {_short(call)}")
        self._refresh()

    def ended(self, place: int, call: CallBlock, outcome: Outcome) -> None:
        """It came back."""
        _, began, _ = self._running[place]
        seconds = outcome.seconds or time.monotonic() - began
        mark = f"✗ {outcome.error.type}" if outcome.error else "✓"
        self._running[place] = (call, began, f"{mark} {seconds:.1f} s")
        if self._area is None:
            self._line(f"{mark} {call.name} {seconds:.1f} s")
        self._refresh()

    def show(self, turn: Turn, number: int, paradigm: Paradigm, raw: bool) -> None:
        """The whole turn."""
        self.stop()
        show_turn(self._console, turn, number, paradigm, raw)

    def end(self, episode: Episode) -> None:
        """How it ended, and what it took."""
        turns, calls = _counted(len(episode.turns), "turn"), _counted(len(episode.calls), "call")
        together = max((len(turn.calls) for turn in episode.turns), default=0)
        read = sum(turn.prompt_tokens for turn in episode.turns)
        written = sum(turn.completion_tokens for turn in episode.turns)
        parts = [turns, f"{calls}, up to {together} together" if together > 1 else calls]
        parts += [f"{read:,} tokens read, {written:,} written"] if written else []
        self._console.print()
        if episode.end == "answer":
            self._console.print(Text(f"answered in {', '.join(parts)}", style="dim"))
        else:
            why = episode.error or "it " + {"turn_limit": "ran out of turns", "token_limit": "ran out of context"}.get(
                episode.end, "broke off"
            )
            self._console.print(Text(f"! no answer: {why} ({', '.join(parts)})", style="yellow"), soft_wrap=True)

    async def confirm(self, tool: ToolInterface, arguments: dict[str, Any]) -> bool:
        """Ask whether a call that may change something may go out; where nobody can be asked, it may not."""
        self.stop()
        self._line(
            f"? {tool.source_name} of {tool.provider} may change something ({tool.effect}): {compact(arguments)}"
        )
        if not sys.stdin.isatty():
            self._line("  not allowed: there is no terminal to ask at, and --yes was not given")
            return False
        print("  allow it? [y/N] ", end="", file=sys.stderr, flush=True)
        typed, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(sys.stdin, typed.set)  # a thread that reads would outlive Ctrl-C
        try:
            await typed.wait()
        finally:
            loop.remove_reader(sys.stdin)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def stop(self) -> None:
        """Take away what is drawn below."""
        if self._area is not None:
            self._area.stop()
            self._area = None

    def _draw(self, title: str) -> None:
        self._title = title
        if self._area is None and self._console.is_terminal:
            self._area = Area(self, console=self._console, transient=True, refresh_per_second=8)
            self._area.start()
        self._refresh()

    def _refresh(self) -> None:
        if self._area is not None:
            self._area.refresh()

    def __rich__(self) -> Group:
        table = Table(box=None, show_header=False, padding=(0, 1))
        for call, began, state in self._running.values():
            clock = state or f"{time.monotonic() - began:.1f} s"
            table.add_row(Text(call.name, style="bold"), Text(_short(call), style="dim"), Text(clock))
        return Group(Spinner("dots", Text(self._title, style="dim")), *([table] if self._running else []))

    def _line(self, text: str) -> None:
        self._console.print(Text(text, style="dim"), soft_wrap=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _short(call: CallBlock) -> str:
    text = compact(call.arguments)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
