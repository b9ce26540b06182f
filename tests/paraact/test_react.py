"""The turn grammar of ReAct: what is read from any text, with one sentence for everything that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraagent.paraact.protocol import AnswerBlock, Block, CallBlock, ParsedTurn, SearchBlock
from paraagent.paraact.react import parse, render

FORM = "write Thought, Action and Action Input, each on a line of its own"


def turn(action: str, given: str, thought: str = "Thought: t\n") -> str:
    return f"{thought}Action: {action}\nAction Input: {given}"


@pytest.mark.parametrize(
    ("text", "block"),
    [
        (turn("send", '{"to": 1}'), CallBlock("send", {"to": 1})),
        (turn("`send`", '{"to": 1}'), CallBlock("send", {"to": 1})),
        (
            turn("send", '{"text": "Action: x\\nObservation: y"}'),
            CallBlock("send", {"text": "Action: x\nObservation: y"}),
        ),
        (turn("send", '\n{\n"to": [1]\n}\n'), CallBlock("send", {"to": [1]})),
        (turn("search_tool", '{"query": "send a mail"}'), SearchBlock("", "send a mail")),
        (turn("search_tool", "send a mail"), SearchBlock("", "send a mail")),
        (turn("Finish", '{"answer": "It is 7."}'), AnswerBlock("It is 7.")),
        (turn("Finish", "It is 7,\nor 8."), AnswerBlock("It is 7,\nor 8.")),
        (turn("Finish", "7"), AnswerBlock("7")),
    ],
)
def test_one_action_is_read(text: str, block: Block) -> None:
    assert parse(text, searches=True) == ParsedTurn("t", None, (block,), ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", f"no action: {FORM}"),
        ("I would send it.", f"no action: {FORM}"),
        (turn("send", "{}", thought=""), "no thought: begin the turn with Thought: …"),
        (f"Well.\n{turn('send', '{}')}", "text before the thought"),
        ("Thought: t\nAction: send", f"no Action Input after the action: {FORM}"),
        ("Thought: t\nAction: send\nto me\nAction Input: {}", f"no Action Input after the action: {FORM}"),
        (turn("send", "{oops}"), "Action Input is not valid JSON at character 2"),
        (turn("send", '{"a": NaN}'), "Action Input is NaN is not JSON"),
        (turn("send", "[1]"), 'Action Input must be a JSON object: {"argument": value}'),
        (turn("", "{}"), f"Action names no tool: {FORM}"),
        (turn("search_tool", "{}"), 'search_tool takes {"query": "what the tool must do"}'),
        (turn("Finish", '{"answer": ""}'), 'Finish takes {"answer": "…"}, which may not be empty'),
        (turn("send", "{} and so on"), "text after Action Input"),
        (
            f"{turn('send', '{}')}\nAction: send\nAction Input: {{}}",
            "more than one action: only the first is carried out",
        ),
        (f"{turn('send', '{}')}\nObservation: sent", "an observation is not yours to write"),
        (turn("send", '{"a": "' + "x" * 100_001 + '"}'), "Action Input has more than 100000 characters"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, problem: str) -> None:
    assert any(found.startswith(problem) for found in parse(text, searches=True).problems)


def test_what_a_model_makes_up_after_its_action_never_runs() -> None:
    read = parse(f"{turn('send', '{}')}\nObservation: sent\n{turn('Finish', 'done')}", searches=True)
    assert read.blocks == (CallBlock("send", {}),)
    assert read.family == "call"


def test_where_tools_are_given_the_search_is_a_tool_like_any_other() -> None:
    assert parse(turn("search_tool", '{"query": "x"}'), searches=False).blocks == (
        CallBlock("search_tool", {"query": "x"}),
    )


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(bool)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True)
_BLOCK = st.one_of(
    st.builds(CallBlock, _NAME, st.dictionaries(_TEXT, _JSON, max_size=3)),
    st.builds(lambda need: SearchBlock("", need), _TEXT),
    st.builds(AnswerBlock, _TEXT),
)


@given(_BLOCK, st.from_regex(r"[A-Za-z][\w ,.]{0,40}[\w.]", fullmatch=True))
def test_what_is_written_is_read_back(block: Block, thought: str) -> None:
    written = ParsedTurn(thought, None, (block,), ())
    assert parse(render(written, searches=True), searches=True) == written


@given(
    st.text()
    | st.lists(st.sampled_from(["Thought:", "Action:", "Action Input:", "Observation:", "\n", "{", "}", '"', "x"])).map(
        "".join
    )
)
def test_any_text_is_read(text: str) -> None:
    read = parse(text, searches=True)
    assert len(read.blocks) <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        ParsedTurn("t", None, ()),
        ParsedTurn("t", "{}", (AnswerBlock("x"),)),
        ParsedTurn("t", None, (SearchBlock("label", "need"),)),
        ParsedTurn("t", None, (AnswerBlock("x"), AnswerBlock("y"))),
        ParsedTurn("a\nAction: x", None, (AnswerBlock("x"),)),
    ],
)
def test_what_the_grammar_cannot_say_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="ReAct"):
        render(wrong, searches=True)
