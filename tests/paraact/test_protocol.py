"""The turn grammar, row by row: what a turn does, what is wrong with it, and what survives beside what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.paraact.protocol import (
    MAX_BLOCK_CHARS,
    MAX_BLOCKS,
    AnswerBlock,
    CallBlock,
    ParsedTurn,
    SearchBlock,
    call_identity,
    parse,
    render,
)

THINK = "<think>t</think>"
SEARCH = "<search_tool>mail: send a mail</search_tool>"
CALL = '<tool_call>{"name": "send", "arguments": {"to": "a"}}</tool_call>'
ANSWER = "<answer>done</answer>"
PLAN = '<plan>{"capacity_slots": ["mail"]}</plan>'


@pytest.mark.parametrize(
    ("text", "family", "runs", "well_formed"),
    [
        (THINK + SEARCH, "search", "search", True),
        (THINK + PLAN + SEARCH + SEARCH, "search", "search", True),
        (THINK + CALL, "call", "call", True),
        (THINK + ANSWER, "answer", "answer", True),
        (f"\n {THINK}\n\n{CALL}\n ", "call", "call", True),
        (CALL, "call", "call", False),
        (THINK, "invalid", None, False),
        ("", "invalid", None, False),
        (THINK + SEARCH + CALL, "mixed", "search", False),
        (THINK + CALL + SEARCH, "mixed", "call", False),
        (THINK + ANSWER + CALL, "mixed", "call", False),
        (THINK + ANSWER + ANSWER, "invalid", None, False),
        (THINK + "<answer> </answer>", "invalid", None, False),
        (THINK + "<tool_call>{}</tool_call>" + SEARCH, "mixed", "search", False),
        (THINK + "<tool_call>{}</tool_call>" + CALL, "call", "call", False),
        (THINK + "so I call" + CALL, "call", "call", False),
        (CALL + THINK, "call", "call", False),
        (THINK + CALL + PLAN, "call", "call", False),
        (THINK + PLAN + PLAN + SEARCH, "search", "search", False),
        (THINK + THINK + SEARCH, "search", "search", False),
        (THINK + "<search_tool>send a mail</search_tool>", "search", "search", False),
        (THINK + CALL * (MAX_BLOCKS + 1), "call", "call", False),
    ],
)
def test_each_row_of_the_grammar(text: str, family: str, runs: str | None, well_formed: bool) -> None:
    turn = parse(text)
    assert (turn.family, turn.runs, not turn.problems) == (family, runs, well_formed)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('{"name": "send"}', "`arguments` is missing"),
        ('{"name": "send", "arguments": "{}"}', "`arguments` must be a JSON object"),
        ('{"name": "", "arguments": {}}', "`name` must be the tool's name"),
        ('{"name": 3, "arguments": {}}', "`name` must be the tool's name"),
        ('{"name": "send", "arguments": {}, "id": 1}', "unknown key `id`"),
        ('["send"]', "a call is a JSON object"),
        ('{"name": "send", "arguments": {"a": NaN}}', "NaN is not JSON"),
        ('{"name": "send", "arguments": {"a": 1, "a": 2}}', 'the key "a" stands twice'),
        ('{"name": "send", "arguments": {"a": 1}', "not valid JSON at character 39"),
        ('{"name": "send", "arguments": {"a": "\\ud800"}}', "half of a surrogate pair"),
        ('{"name": "send", "arguments": {"a": 1e999}}', "a number is too large"),
        ('{"name": "send", "arguments": {"a": ' + "9" * 5000 + "}}", "does not fit into 64 bits"),
        ('{"name": "send", "arguments": {"a": ' + "[" * 100 + "]" * 100 + "}}", "nested deeper than 64 levels"),
        ('{"name": "send", "arguments": {"a": ' + "[" * 100_000, "nested deeper than 64 levels"),
        ('{"name": "send", "arguments": {}} {}', "more text follows the JSON value"),
    ],
)
def test_a_bad_call_says_what_is_wrong_and_hides_no_sibling(body: str, says: str) -> None:
    turn = parse(f"{THINK}{CALL}<tool_call>{body}</tool_call>{CALL}")
    first, bad, last = turn.blocks
    assert says in bad.problem
    assert turn.problems == (f"tool_call 2: {bad.problem}",)
    assert first == last == CallBlock("send", {"to": "a"})


def test_an_unclosed_block_ends_where_the_next_one_opens() -> None:
    turn = parse(f'{THINK}<tool_call>{{"name": "a", "arguments": {{}}}}\n{CALL}<answer>almost')
    assert [block.problem for block in turn.blocks] == [
        "<tool_call> is not closed: end it with </tool_call>",
        "",
        "<answer> is not closed: end it with </answer>",
    ]
    assert turn.runs == "call"


def test_an_unclosed_thought_hides_nothing() -> None:
    turn = parse(f"<think>I call it {CALL}")
    assert turn.think == "I call it"
    assert turn.blocks == (CallBlock("send", {"to": "a"}),)


def test_a_thought_may_mention_tags() -> None:
    turn = parse(f"<think>no <answer> yet, first a <tool_call></think>{SEARCH}")
    assert not turn.problems
    assert turn.blocks == (SearchBlock("mail", "send a mail"),)


def test_an_answer_that_holds_a_call_is_no_answer() -> None:
    turn = parse(f"{THINK}<answer>I will {CALL}</answer>")
    assert turn.runs == "call"


def test_strings_of_a_call_may_hold_tags() -> None:
    arguments = {"html": "<answer>x</answer></tool_call><tool_call>"}
    assert parse(f'{THINK}<tool_call>{{"name":"a","arguments":{{"html":"{arguments["html"]}"}}}}</tool_call>') == (
        ParsedTurn("t", None, (CallBlock("a", arguments),))
    )


def test_blocks_over_the_limit_are_counted_and_not_read() -> None:
    turn = parse(THINK + CALL * 20)
    assert len(turn.blocks) == MAX_BLOCKS
    assert turn.problems == ("4 blocks too many: a turn has at most 16, the rest is not read",)


def test_calls_compare_by_folded_name_and_sorted_arguments() -> None:
    assert call_identity(" Send ", {"a": 1, "b": [2]}) == call_identity("send", {"b": [2], "a": 1})
    assert call_identity("send", {"a": 1}) != call_identity("send", {"a": "1"})


TAGS = ["think", "plan", "search_tool", "tool_call", "answer"]
PIECES = st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + [CALL, SEARCH, PLAN, "{", '"'])
SOUP = st.lists(PIECES | st.text(st.characters(), max_size=8), max_size=30).map("".join)


@given(SOUP)
def test_parse_accepts_every_text_and_gives_every_block_a_verdict(text: str) -> None:
    turn = parse(text)
    assert turn == parse(text)
    assert len(turn.blocks) <= MAX_BLOCKS
    assert turn.runs is None or any(not block.problem for block in turn.blocks)
    assert (turn.family in ("mixed", "invalid")) <= bool(turn.problems)


@given(SOUP, SOUP)
def test_a_good_call_after_closed_garbage_is_never_lost(before: str, after: str) -> None:
    for tag in TAGS:
        before, after = before.replace(f"<{tag}>", ""), after.replace(f"<{tag}>", "")
    assert CallBlock("send", {"to": "a"}) in parse(f"{before}{CALL}{after}").blocks


@pytest.mark.parametrize("unit", ["<think>", "<plan>", "<tool_call>[1,", '<tool_call>{"a":"', "[", "</answer>", " "])
def test_ten_megabytes_of_anything_are_read(unit: str) -> None:
    assert parse(unit * (10_000_000 // len(unit))).runs is None


TEXT = st.text(st.characters(exclude_characters="<>:", exclude_categories=["Cs"]), min_size=1, max_size=30).map(
    str.strip
)
WORDS = TEXT.filter(bool)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc<", max_size=3), inner, max_size=3),
    max_leaves=10,
)
CALLS = st.builds(CallBlock, name=WORDS, arguments=st.dictionaries(st.text("xyz", max_size=3), JSON, max_size=3))
SEARCHES = st.builds(SearchBlock, slot=WORDS, need=WORDS)
BLOCKS = (
    st.lists(CALLS, min_size=1, max_size=4) | st.lists(SEARCHES, min_size=1, max_size=4)
    | st.lists(st.builds(AnswerBlock, text=WORDS), min_size=1, max_size=1)
)  # fmt: skip
TURNS = st.builds(ParsedTurn, think=TEXT, plan=st.none() | TEXT, blocks=BLOCKS.map(tuple))


@given(TURNS)
def test_what_is_written_reads_back_the_same(turn: ParsedTurn) -> None:
    assert parse(render(turn)) == turn


@pytest.mark.parametrize(
    "turn",
    [
        ParsedTurn("t", None, (AnswerBlock("a </answer> b"),)),
        ParsedTurn("t", None, (SearchBlock("a: b", "c"),)),
        ParsedTurn(" t", None, (AnswerBlock("a"),)),
        ParsedTurn(None, None, (AnswerBlock("a"),)),
        ParsedTurn("t", None, ()),
        ParsedTurn("t", None, (AnswerBlock("a"),), ("a problem",)),
    ],
)
def test_a_turn_that_the_grammar_cannot_say_is_not_written(turn: ParsedTurn) -> None:
    with pytest.raises(ValueError, match="turn grammar"):
        render(turn)


def test_a_block_that_is_too_long_is_refused_and_its_siblings_stand() -> None:
    long = CALL.replace('"a"', '"' + "a" * MAX_BLOCK_CHARS + '"')
    turn = parse(THINK + long + SEARCH.replace("mail:", "m" * MAX_BLOCK_CHARS) + CALL)
    call, search, last = turn.blocks
    assert isinstance(call, CallBlock)
    assert (call.name, call.arguments) == ("send", {})
    assert "characters are too many: a block has at most 100000" in call.problem
    assert "characters are too many" in search.problem
    assert last == CallBlock("send", {"to": "a"})
