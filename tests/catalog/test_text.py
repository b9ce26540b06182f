"""Cleaning: whatever people wrote comes out as one plain line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.catalog.text import clean, humanise, words

TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("Plain text stays.", "Plain text stays."),
        ("<p>Use <code>x</code> at <a href='y'>the docs</a>.</p>", "Use x at the docs."),
        ("<ul><li>one</li><li>two</li></ul>", "one two"),
        ("a &lt;b&gt; &amp; c", "a & c"),
        ("Give the <bucket-name> here", "Give the {bucket-name} here"),
        ("a < b and b > a", "a < b and b > a"),
        ("<script>alert(1)</script>safe<!-- gone -->", "safe"),
        ("See <https://example.org/x> now", "See https://example.org/x now"),
        ("# Title\n\nSome **bold** and *soft* `code`.", "Title Some bold and soft code."),
        ("[text](http://a.b/c_(d)) and [Foo][google.x.Foo]", "text and Foo"),
        ("* one\n* two", "- one - two"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b | 1 | 2 |"),
        ("keep_snake_case and 5 * 3", "keep_snake_case and 5 * 3"),
        ("  spaced \u00a0 out\n", "spaced out"),
    ],
)
def test_markup_becomes_plain_text(raw: str, plain: str) -> None:
    assert clean(raw, 200) == plain


def test_what_is_no_text_is_empty() -> None:
    assert clean(None, 10) == clean(7, 10) == clean("", 10) == ""


def test_a_long_text_ends_at_a_sentence_or_a_word() -> None:
    assert clean("One sentence here. Another one follows it.", 25) == "One sentence here."
    assert clean("words without any end to them at all", 20) == "words without any…"


@given(st.text(alphabet='<>/&;`*[]()#|\\_- \nabp="!?1', max_size=60))
def test_no_text_leaves_a_tag_or_a_line_break(raw: str) -> None:
    text = clean(raw, 1_000)
    assert not TAG.search(text)
    assert text == " ".join(text.split())


@given(st.text(max_size=400), st.integers(20, 100))
def test_the_limit_holds_for_any_text(raw: str, limit: int) -> None:
    assert len(clean(raw, limit)) <= limit


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DescribeDBInstances", ["describe", "db", "instances"]),
        ("calendar.events.quickAdd", ["calendar", "events", "quick", "add"]),
        ("/v1/customers/{customer}", ["v1", "customers", "customer"]),
        ("listAPIs", ["list", "apis"]),
        ("AssignIPv6Addresses", ["assign", "ipv6", "addresses"]),
        ("Café", ["cafe"]),
    ],
)
def test_names_fall_into_words(name: str, expected: list[str]) -> None:
    assert words(name) == expected


def test_a_name_reads_like_a_phrase() -> None:
    assert humanise("DescribeInstances") == "Describe instances"
