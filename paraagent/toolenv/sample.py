"""Calls that a tool accepts, made up from its parameters' schemas: for measuring, checking and showing tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from paraagent.catalog.interface import ToolInterface
from paraagent.seeds import derive
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.generate import Compiler
from paraagent.toolenv.lists import ListPlan
from paraagent.toolenv.meaning import Meaning
from paraagent.toolenv.world import World


def draw_call(tool: ToolInterface, key: int) -> dict[str, Any] | None:
    """A first call with its required arguments and half of the optional ones, by the bits of `key`.

    Left out is a page token, which a first call cannot know. None where the arguments are too hard to make.
    """
    token = ListPlan(tool, Meaning(tool)).token
    optional = [name for place, name in enumerate(tool.properties) if key >> place % 60 & 1 and name != token]
    return draw_arguments(tool, key, optional)


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
