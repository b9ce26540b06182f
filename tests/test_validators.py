"""A validator exists for every schema, and says as much as of the schema can be read."""

from __future__ import annotations

from typing import Any

import pytest

from paraagent.validators import compile_validator


@pytest.mark.parametrize(
    "part",
    [
        {"pattern": r"[^/:|\000-\037]+"},
        {"pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "urn:nothing"},
    ],
)
def test_a_part_that_cannot_be_read_is_left_out_and_the_rest_is_checked(part: dict[str, Any]) -> None:
    validator = compile_validator({"properties": {"odd": part, "count": {"type": "integer"}}, "required": ["count"]})
    assert validator.is_valid({"odd": "x", "count": 1})
    assert not validator.is_valid({"odd": "x"})
    assert not validator.is_valid({"count": "1"})


def test_a_property_called_like_a_keyword_is_no_keyword() -> None:
    schema = {"properties": {"pattern": {"type": "string", "pattern": "("}, "$ref": {"type": "integer"}}}
    validator = compile_validator(schema)
    assert validator.is_valid({"pattern": "x", "$ref": 1})
    assert not validator.is_valid({"$ref": "x"})


def test_a_recursive_schema_is_checked_at_every_level() -> None:
    validator = compile_validator({"properties": {"child": {"$ref": "#"}, "name": {"type": "string"}}})
    assert validator.is_valid({"child": {"child": {"name": "x"}}})
    assert not validator.is_valid({"child": {"child": {"name": 3}}})


@pytest.mark.parametrize("schema", [{"type": "strin"}, {"properties": 3}, {"required": "a"}, [], "x", {}])
def test_what_is_no_schema_accepts_everything(schema: Any) -> None:
    assert compile_validator(schema).is_valid({"a": [1, None]})
