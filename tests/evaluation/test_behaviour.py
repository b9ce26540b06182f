"""The funnel: every episode falls into exactly one bin, the first step that is missing."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraagent.evaluation import LABELS, MEANINGS, OUTCOMES, classify

FOUND = ("getUser", "getOrder", "listUsers")


def test_a_solved_episode_is_solved_whatever_it_did(script: Any) -> None:
    assert classify(script.task, script.episode(answer="Ada, 12"), solved=True) == "solved"


def test_free_text_alone_is_a_format_failure(script: Any) -> None:
    episode = script.episode(script.turn("invalid"), script.turn("invalid"), end="turn_limit")
    assert classify(script.task, episode, solved=False) == "format"


def test_an_answer_out_of_nothing_never_searched(script: Any) -> None:
    assert classify(script.task, script.episode(script.turn("answer"), answer="Ada"), solved=False) == "no_search"


def test_a_target_in_no_hit_list_was_not_found(script: Any) -> None:
    episode = script.episode(script.turn("search", script.search("getUser", "listUsers")), end="turn_limit")
    assert classify(script.task, episode, solved=False) == "not_found"


def test_hits_that_the_model_never_saw_do_not_count_as_found(script: Any) -> None:
    episode = script.episode(script.turn("search", script.search(*FOUND, visible=False)), answer="?")
    assert classify(script.task, episode, solved=False) == "not_found"


def test_a_found_target_that_is_never_called_is_the_wrong_tool(script: Any) -> None:
    search = script.turn("search", script.search(*FOUND))
    calls = script.turn("call", script.call("getUser", id="u1"), script.call("listUsers"))
    assert classify(script.task, script.episode(search, calls, answer="Ada"), solved=False) == "wrong_tool"


def test_a_call_that_could_not_be_read_is_a_format_failure(script: Any) -> None:
    search = script.turn("search", script.search(*FOUND))
    calls = script.turn("call", script.call("getUser", id="u1"), script.call("", ok=False))
    assert classify(script.task, script.episode(search, calls, answer="Ada"), solved=False) == "format"


def test_a_swapped_argument_is_a_wrong_argument_even_where_the_call_succeeds(script: Any) -> None:
    search = script.turn("search", script.search(*FOUND))
    calls = script.turn("call", script.call("getUser", id="o1"), script.call("getOrder", id="u1"))
    assert classify(script.task, script.episode(search, calls, answer="Ada"), solved=False) == "wrong_arguments"


def test_a_refused_call_is_a_wrong_argument(script: Any) -> None:
    search = script.turn("search", script.search(*FOUND))
    calls = script.turn("call", script.call("getUser", id="u1"), script.call("getOrder", ok=False))
    assert classify(script.task, script.episode(search, calls, answer="Ada"), solved=False) == "wrong_arguments"


def test_right_calls_and_a_wrong_answer(script: Any) -> None:
    search = script.turn("search", script.search(*FOUND))
    calls = script.turn("call", script.call("getUser", id="u1"), script.call("getOrder", id="o1"))
    done = script.episode(search, calls, script.turn("answer"), answer="Bob")
    assert classify(script.task, done, solved=False) == "wrong_answer"
    stuck = script.episode(search, calls, end="token_limit")
    assert classify(script.task, stuck, solved=False) == "limit"
    lost = script.episode(search, calls, script.turn("invalid"), end="turn_limit")
    assert classify(script.task, lost, solved=False) == "format"


def test_every_bin_has_a_label() -> None:
    assert list(LABELS) == list(MEANINGS) == list(OUTCOMES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bins_are_exclusive_and_complete(script: Any, data: st.DataObject) -> None:
    names = st.sampled_from(["getUser", "getOrder", "listUsers", ""])
    search = st.lists(names, max_size=3).map(lambda hits: script.turn("search", script.search(*hits)))
    call = st.builds(
        lambda name, ok, value: script.turn("call", script.call(name, ok=ok, id=value)),
        names,
        st.booleans(),
        st.sampled_from(["u1", "o1"]),
    )
    turns = data.draw(st.lists(st.one_of(search, call, st.just(script.turn("invalid"))), max_size=5))
    answer = data.draw(st.none() | st.just("Ada"))
    episode = script.episode(*turns, answer=answer, end="answer" if answer else "turn_limit")
    outcome = classify(script.task, episode, solved=False)
    assert outcome in OUTCOMES
    assert outcome not in ("solved", "error")
    assert outcome == classify(script.task, episode, solved=False)
