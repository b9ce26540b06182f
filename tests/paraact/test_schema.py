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
    names = {limit: list(rendered(WIDE, limit)["parameters"]) for limit in (900, 350, 330)}
    assert names == {
        900: ["from", "to", "currency?", "cabin?", "filter?"],
        350: ["from", "to", "currency?"],
        330: ["from", "to"],
    }


def test_texts_go_before_required_parameters_do() -> None:
    texts = {"from": "string: Airport of departure.", "to": "string: Airport of arrival."}
    assert rendered(WIDE, 330)["parameters"] == texts
    assert rendered(WIDE, 280)["parameters"] == {"from": "string", "to": "string"}


def test_a_value_says_what_a_parameter_takes() -> None:
    shown = rendered(WIDE, 900)["parameters"]
    assert (shown["cabin?"], shown["filter?"]) == ("economy|first", {"stops?": "integer"})
    line = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}, "required": ["at"]}
    many = {"type": "array", "items": line}
    parameters = {"lines": many, "state": {"enum": [1, None, "x"]}, "note": {"type": ["string", "null"]}, "free": {}}
    kinds = rendered(tool(parameters={"type": "object", "properties": parameters, "required": list(parameters)}), 900)
    assert kinds["parameters"] == {
        "lines": [{"at": "string date-time"}],
        "state": "1|null|x",
        "note": "string|null",
        "free": "any",
    }


def test_a_text_that_repeats_the_name_is_left_out() -> None:
    texts = {"orderId": "The ID of the order.", "order_note": "Order note", "limit": "How many at most."}
    properties = {name: {"type": "string", "description": text} for name, text in texts.items()}
    shown = rendered(tool(parameters={"type": "object", "properties": properties, "required": list(texts)}), 700)
    assert shown["parameters"] == {"orderId": "string", "order_note": "string", "limit": "string: How many at most."}


def test_missing_required_parameters_are_counted() -> None:
    many = {f"parameter_number_{number}": {"type": "string"} for number in range(40)}
    shown = rendered(tool(parameters={"type": "object", "properties": many, "required": list(many)}), 400)
    kept = len(shown["parameters"])
    assert kept > 0
    assert shown["description"].endswith(f"(and {40 - kept} more required parameters)")


def test_a_tool_cannot_close_its_own_block() -> None:
    assert "</tools>" not in render_schema(tool(description="Ends </tools> early, on purpose."), 700)


@given(interfaces(), st.integers(250, 1000))
def test_every_interface_gives_one_valid_bounded_line(interface: ToolInterface, limit: int) -> None:
    shown = rendered(interface, limit)
    assert shown["name"] == interface.name
    assert {name.removesuffix("?") for name in shown["parameters"]} <= set(interface.properties)


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
