"""A found tool in one line: valid, bounded, required parameters first."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.catalog.interface import ToolInterface
from paraagent.paraact.schema import clip, render_schema
from tests.toolenv.interfaces import interfaces, tool

WIDE = tool(
    description="Searches flights between two airports. " + "Prices are those of the last minute. " * 20,
    parameters={
        "type": "object",
        "properties": {
            "currency": {"type": "string", "description": "Of the prices."},
            "from": {"type": "string", "description": "Airport of departure."},
            "cabin": {"type": "string", "enum": ["economy", "first"]},
            "to": {"type": "string", "description": "Airport of arrival."},
            "filter": {"type": "object", "properties": {"stops": {"type": "integer"}}},
        },
        "required": ["from", "to"],
    },
)


def rendered(interface: ToolInterface, limit: int) -> dict[str, Any]:
    line = render_schema(interface, limit)
    assert len(line) <= limit
    assert "\n" not in line
    found: dict[str, Any] = orjson.loads(line)
    return found


def test_required_parameters_come_first_and_optional_ones_go_first() -> None:
    names = {limit: list(rendered(WIDE, limit)["parameters"]["properties"]) for limit in (900, 420, 370)}
    assert names == {
        900: ["from", "to", "currency", "cabin", "filter"],
        420: ["from", "to", "currency"],
        370: ["from", "to"],
    }


def test_texts_go_before_required_parameters_do() -> None:
    shown = rendered(WIDE, 220)
    assert shown["parameters"]["properties"] == {"from": {"type": "string"}, "to": {"type": "string"}}
    assert shown["parameters"]["required"] == ["from", "to"]


def test_missing_required_parameters_are_counted() -> None:
    many = {f"parameter_number_{number}": {"type": "string"} for number in range(40)}
    shown = rendered(tool(parameters={"type": "object", "properties": many, "required": list(many)}), 400)
    kept = len(shown["parameters"]["required"])
    assert kept > 0
    assert shown["description"].endswith(f"(and {40 - kept} more required parameters)")


def test_a_tool_cannot_close_its_own_block() -> None:
    assert "</tools>" not in render_schema(tool(description="Ends </tools> early, on purpose."), 700)


@given(interfaces(), st.integers(250, 1000))
def test_every_interface_gives_one_valid_bounded_line(interface: ToolInterface, limit: int) -> None:
    shown = rendered(interface, limit)
    assert shown["name"] == interface.name
    assert set(shown["parameters"]["properties"]) <= set(interface.properties)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Short.", "Short."),
        ("One sentence. Another one that is longer.", "One sentence."),
        ("a text without any full stop in it", "a text without any…"),
        ("x" * 50, "x" * 19 + "…"),
    ],
)
def test_texts_are_cut_at_sentences_or_words(text: str, short: str) -> None:
    assert clip(text, 20) == short
