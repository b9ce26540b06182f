"""Calls that a tool accepts, made up from its parameters' schemas: for measuring, checking and showing tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.seeds import derive
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.world import World


def draw_arguments(
    tool: ToolInterface,
    seed: int,
    optional: Iterable[str] = (),
    value_of: Callable[[str, Any], Any] = lambda name, made: made,
) -> dict[str, Any] | None:
    """Arguments for all required parameters and the optional ones that are named, in the order of the schema.

    Args:
        value_of: from a parameter's name and the value made for it, the value to give.

    Returns:
        None where what was made is not valid: some pattern is too hard, or the schema contradicts itself.
    """
    chosen, compiler, now = {*tool.required, *optional}, Compiler(), World(seed).now
    arguments = {}
    for name, schema in tool.properties.items():
        if name in chosen:
            made = compiler.compile_field(name, schema)(derive(seed, "argument", name), now, None)
            arguments[name] = value_of(name, made)
    return arguments if check_arguments(tool, arguments) is None else None
