"""LazyGroup: the root of the command line. A command's module is imported when the command runs, not to list it.

It is also where an error becomes one sentence on stderr and an exit code: 1 for a run that failed, 2 for wrong usage,
130 for Ctrl-C. `--home` and `--debug` may stand anywhere on the line.
"""

from __future__ import annotations

import atexit
import difflib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from paraagent.errors import ParaAgentError, UsageError


class Entry(NamedTuple):
    """Where a command lives."""

    module: str
    attribute: str
    """A `typer.Typer` for a group of commands, or a function for one command."""
    help: str


class LazyGroup(TyperGroup):
    """Lists commands from `entries` and loads one when it is invoked."""

    entries: ClassVar[dict[str, Entry]]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For listing: name and one line of help only."""
        entry = self.entries.get(cmd_name)
        return TyperCommand(cmd_name, help=entry.help) if entry else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name = args[0]
        if name not in self.entries:
            near = difflib.get_close_matches(name, list(self.entries), n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else "`paraagent --help` lists them"
            raise UsageError(f"There is no command {name}: {hint}")
        return name, load(name, self.entries[name]), args[1:]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        words = list(sys.argv[1:] if args is None else args)

        def call() -> Any:
            return super(LazyGroup, self).main(
                hoist(words), prog_name, complete_var, False, windows_expand_args, **extra
            )

        if not standalone_mode:
            return call()
        code = guard(call, debug="--debug" in words)
        if code == 130:
            _leave_interrupted()
        sys.exit(code)


def _leave_interrupted() -> NoReturn:
    """End with 130. An interrupt that met `exec` of a text, as in making a dataclass, has CPython end by the signal
    itself even where it was caught, so what runs at exit is run here and the interpreter's own end is left out."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)


def load(name: str, entry: Entry) -> Any:
    """Import the command's module and make a click command of what it exports."""
    found = getattr(import_module(entry.module), entry.attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


def hoist(line: Sequence[str]) -> list[str]:
    """Move `--debug` and `--home X` to the front, so that they work on both sides of the command's name."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(line)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--debug" or word.startswith("--home="):
            front.append(word)
        elif word == "--home":
            value = next(words, None)
            if value is None:
                raise UsageError("--home needs a directory, for example --home /data/paraagent")
            front += [word, value]
        else:
            rest.append(word)
    return front + rest


def guard(call: Callable[[], Any], *, debug: bool) -> int:
    """Run a command and return its exit code; every failure leaves one sentence on stderr."""
    try:
        code = call()
    except ParaAgentError as error:
        return _fail(error, str(error), error.exit_code, debug)
    except KeyboardInterrupt as error:
        return _fail(error, "Interrupted", 130, debug)
    except typer.Abort as error:
        return _fail(error, "Stopped, nothing was changed", 1, debug)
    except Exception as error:
        if callable(getattr(error, "format_message", None)):
            return _usage(error)
        first = (str(error).strip() or "no message").splitlines()[0]
        return _fail(error, f"{type(error).__name__}: {first} (--debug shows where)", 1, debug)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> int:
    """Click's own complaints about the command line; asking for nothing shows the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    path = error.ctx.command_path if getattr(error, "ctx", None) else "paraagent"
    print(f"Error: {error.format_message().rstrip('.')}: see `{path} --help`", file=sys.stderr)
    return int(getattr(error, "exit_code", 2))


def _fail(error: BaseException, sentence: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    print(f"Error: {sentence}", file=sys.stderr)
    return code
