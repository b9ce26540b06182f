"""YAML means what JSON would, and costs no more than its size."""

from __future__ import annotations

import pytest

from paraagent.catalog.yaml import MAX_COPIES, YamlError, load


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2024-01-31", "2024-01-31"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("''", ""),
        ("'7'", "7"),
        ("007", 7),
        ("0x1F", 31),
        ("1.5e3", 1500.0),
        (".inf", ".inf"),
        ("9" * 400, "9" * 400),
    ],
)
def test_a_scalar_is_read_by_yaml_1_2_and_never_becomes_a_date(text: str, value: object) -> None:
    found = load(f"key: {text}".encode())["key"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_text_and_merged_mappings_give_way() -> None:
    document = load(b"base: &b {a: 1, b: 2}\n200: {<<: *b, b: 3}\n")
    assert document["200"] == {"b": 3, "a": 1}


def test_a_list_and_a_nested_mapping_come_out_as_they_stand() -> None:
    assert load(b"- a: [1, {b: c}]\n- >\n  two\n  words\n") == [{"a": [1, {"b": "c"}]}, "two words\n"]


def test_a_key_that_stands_twice_is_named_with_its_line() -> None:
    with pytest.raises(YamlError, match="'get' stands twice, the second time in line 4"):
        load(b"get: 1\nput: 2\n\nget: 3\n")


def test_aliases_that_multiply_are_refused_before_they_cost_anything() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(YamlError, match=f"aliases repeat more than {MAX_COPIES:,} nodes"):
        load("\n".join(lines).encode())


def test_an_alias_inside_what_it_names_is_refused() -> None:
    with pytest.raises(YamlError, match=r"\*loop in line 1 stands inside what it names"):
        load(b"a: &loop [1, *loop]")


@pytest.mark.parametrize("text", ["[" * 10_000, "- " * 10_000 + "x", "{a: " * 10_000])
def test_ten_thousand_levels_are_refused(text: str) -> None:
    with pytest.raises(YamlError, match=r"(?i)levels|nest|depth"):
        load(text.encode())


@pytest.mark.parametrize("data", [b"a: \xff\xfe", b"a: [", b"a: b: c", b"a: 1\n---\nb: 2\n", b"? [a]\n: b\n", b"a: *x"])
def test_what_is_no_yaml_is_said(data: bytes) -> None:
    with pytest.raises(YamlError):
        load(data)


def test_a_tag_makes_no_object() -> None:
    assert load(b"a: !!python/object/apply:os.system ['true']") == {"a": ["true"]}
