"""ToolEnv: what each kind of turn gets back and leaves in the trace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig
from paraagent.message import Completion
from paraagent.paraact.executor import ERROR_TYPES
from paraagent.paraact.observation import read_responses, read_tools
from paraagent.paraact.prompt import paraact_prompt
from paraagent.paraact.protocol import CallBlock, ParsedTurn, render
from paraagent.retrieval.index import ToolIndex, build_index
from paraagent.task import ReferenceCall, Slot, Task
from paraagent.toolenv.env import Step, ToolEnv
from paraagent.trace import Turn
from tests.paraact.test_protocol import JSON, SOUP

TASK = Task(
    task_id="test-1",
    request="Look up one customer order for order ID ord_1. What is the currency?",
    shape="single",
    width=1,
    reach="service",
    split="test",
    seed=3,
    slots=(Slot(text="look up one customer order", tool="orders_get_order"),),
    calls=(ReferenceCall(id="c1", tool="orders_get_order", arguments={"order_id": "ord_1"}),),
    atoms=(),
)
SEARCH = (
    '<think>t</think><plan>{"capacity_slots":["order"]}</plan>'
    "<search_tool>order: look up one customer order</search_tool>"
)
ORDER = '<tool_call>{"name":"orders_get_order","arguments":{"order_id":"ord_1"}}</tool_call>'


@pytest.fixture(scope="module")
def index(tiny_catalog_path: Path, tmp_path_factory: pytest.TempPathFactory) -> ToolIndex:
    out = tmp_path_factory.mktemp("index")
    build_index(tiny_catalog_path, out)
    return ToolIndex.load(out)


class Session:
    """A running episode with the asynchronous parts out of sight."""

    def __init__(self, catalog: Catalog, index: ToolIndex, **config: Any) -> None:
        self.env = ToolEnv(catalog, index, EnvConfig(**config))
        self.messages = self.env.reset(TASK, seed=5)

    def step(self, text: str, **more: Any) -> Step:
        return asyncio.run(self.env.step(Completion(text, **more)))

    def turns(self) -> tuple[Turn, ...]:
        if self.env._state and self.env._state.end is None:
            self.step("<think>t</think><answer>end</answer>")
        return self.env.episode("test").turns


@pytest.fixture
def session(tiny_catalog: Catalog, index: ToolIndex) -> Session:
    return Session(tiny_catalog, index)


def plan(*names: str) -> str:
    listed = ",".join(f'"{name}"' for name in names)
    flow = f'{{"step":1,"parallel":[{listed}]}}'
    return f'<plan>{{"available_tools":[{listed}],"execution_flow":[{flow}],"dependencies":[]}}</plan>'


def error_of(response: Any) -> tuple[str, str]:
    return response["result"]["error"]["type"], response["result"]["error"]["msg"]


def test_an_episode_begins_with_prompt_and_request(session: Session) -> None:
    assert session.messages == [
        {"role": "system", "content": paraact_prompt(references=False)},
        {"role": "user", "content": TASK.request},
    ]


def test_search_call_answer_leave_a_whole_trace(session: Session) -> None:
    found = session.step(SEARCH)
    assert [len(tools) for tools in read_tools(found.observation)] == [3]
    called = session.step(f"<think>t</think>{plan('orders_get_order')}{ORDER}")
    [response] = read_responses(called.observation)
    assert response["name"] == "orders_get_order"
    assert response["result"]["order_id"] == "ord_1"
    assert session.step("<think>t</think><answer>EUR</answer>") == Step("", True)
    episode = session.env.episode("me")
    assert (episode.episode_id, episode.end, episode.answer) == ("me/paraact/test-1/5", "answer", "EUR")
    assert [turn.family for turn in episode.turns] == ["search", "call", "answer"]
    assert [turn.plan_rule for turn in episode.turns] == ["required", "required", "forbidden"]
    assert all(turn.well_formed and turn.plan_rule_kept for turn in episode.turns)
    assert "orders_get_order" in episode.searches[0].hits
    assert episode.calls[0].ok
    assert episode.calls[0].backend == "grounded"


def test_calls_of_one_turn_answer_in_order_and_errors_stay_where_they_belong(session: Session) -> None:
    step = session.step(
        f'<think>t</think>{ORDER}<tool_call>{{"name":"orders_get_order","arguments":{{"id":"ord_1"}}}}</tool_call>'
        '<tool_call>{"name":"orders_get_ordr","arguments":{}}</tool_call><tool_call>oops</tool_call>' + ORDER
    )
    first, wrong, unknown, broken, last = read_responses(step.observation)
    assert first == last
    assert error_of(wrong)[0] == "InvalidRequestError"
    assert "order_id" in error_of(wrong)[1]
    assert error_of(unknown) == (
        "ToolNotFoundError",
        "there is no tool of this name; call a tool that a search returned",
    )
    assert error_of(broken)[0] == "InvalidRequestError"
    assert "not valid JSON at character 1" in error_of(broken)[1]
    [turn, _] = session.turns()
    assert [call.ok for call in turn.calls] == [True, False, False, False, True]
    assert not turn.well_formed


def test_a_misspelt_name_gets_the_nearest_discovered_ones(session: Session) -> None:
    session.step(SEARCH)
    step = session.step('<think>t</think><tool_call>{"name":"orders_get_ordr","arguments":{}}</tool_call>')
    [response] = read_responses(step.observation)
    assert "did you mean orders_get_order, orders_place_order or orders_cancel_order?" in error_of(response)[1]


def test_names_compare_without_case_once_they_are_discovered(session: Session) -> None:
    session.step(SEARCH)
    step = session.step("<think>t</think>" + ORDER.replace("orders_get_order", " ORDERS_get_order"))
    assert read_responses(step.observation)[0]["result"]["order_id"] == "ord_1"


def test_of_mixed_families_the_first_runs_and_the_others_get_errors(session: Session) -> None:
    step = session.step(f"{SEARCH}{ORDER}<answer>EUR</answer>")
    assert not step.done
    assert [len(tools) for tools in read_tools(step.observation)] == [3]
    refused, answer = read_responses(step.observation)
    assert error_of(refused) == ("InvalidRequestError", "not run: send searches and calls in different turns")
    assert "counts only alone" in error_of(answer)[1]
    [turn, _] = session.turns()
    assert turn.family == "mixed"
    assert turn.plan_rule == "forbidden"
    assert not turn.calls[0].ok


def test_a_turn_may_be_a_text(session: Session) -> None:
    step = asyncio.run(session.env.step(f"<think>t</think>{ORDER}"))
    assert read_responses(step.observation)[0]["result"]["order_id"] == "ord_1"


def test_a_turn_without_a_block_is_told_so(session: Session) -> None:
    step = session.step("I think the answer is EUR.")
    assert not step.done
    assert "nothing to do" in error_of(read_responses(step.observation)[0])[1]


def test_a_bad_plan_makes_the_turn_ill_formed_but_its_calls_run(session: Session) -> None:
    step = session.step(f'<think>t</think><plan>{{"available_tools":["x"]}}</plan>{ORDER}')
    assert read_responses(step.observation)[0]["result"]["order_id"] == "ord_1"
    [turn, _] = session.turns()
    assert turn.plan
    assert turn.plan.kind == "invalid"
    assert not turn.well_formed
    assert not turn.plan_rule_kept


def test_a_second_plan_in_a_phase_is_redundant(session: Session) -> None:
    session.step(f"<think>t</think>{plan('orders_get_order', 'orders_cancel_order')}{ORDER}")
    session.step(f"<think>t</think>{plan('orders_get_order')}{ORDER}")
    _, turn, _ = session.turns()
    assert turn.plan
    assert (turn.plan.kind, turn.plan_rule, turn.plan_rule_kept) == ("redundant", "forbidden", False)
    assert turn.well_formed


def test_the_strict_controller_refuses_what_was_never_discovered(tiny_catalog: Catalog, index: ToolIndex) -> None:
    strict = Session(tiny_catalog, index, controller="strict")
    refused = read_responses(strict.step(f"<think>t</think>{ORDER}").observation)[0]
    assert error_of(refused) == ("InvalidRequestError", "no search has returned this tool yet: search for it first")
    strict.step(SEARCH)
    assert "order_id" in read_responses(strict.step(f"<think>t</think>{ORDER}").observation)[0]["result"]


def test_the_strict_controller_refuses_calls_outside_the_frontier(tiny_catalog: Catalog, index: ToolIndex) -> None:
    strict = Session(tiny_catalog, index, controller="strict")
    strict.step(SEARCH)
    step = strict.step(f"<think>t</think>{plan('orders_get_order')}{ORDER}{ORDER}")
    first, second = read_responses(step.observation)
    assert "order_id" in first["result"]
    assert "does not have this call ready" in error_of(second)[1]


def test_results_of_one_turn_that_do_not_fit_are_dropped_and_earn_nothing(
    tiny_catalog: Catalog, index: ToolIndex
) -> None:
    small = Session(tiny_catalog, index, max_turn_chars=300)
    first, second = read_responses(small.step(f"<think>t</think>{ORDER}{ORDER}").observation)
    assert "order_id" in first["result"]
    assert "left out" in error_of(second)[1]
    assert [call.ok for call in small.turns()[0].calls] == [True, False]


def test_a_search_result_shows_as_many_tools_as_fit(tiny_catalog: Catalog, index: ToolIndex) -> None:
    small = Session(tiny_catalog, index, max_observation_chars=500)
    [tools] = read_tools(small.step(SEARCH).observation)
    assert 0 < len(tools) < 3
    assert small.turns()[0].searches[0].hits == tuple(tool["name"] for tool in tools)


def test_the_turn_limit_ends_the_episode(tiny_catalog: Catalog, index: ToolIndex) -> None:
    short = Session(tiny_catalog, index, max_turns=1)
    assert short.step(SEARCH).done
    assert short.env.episode("me").end == "turn_limit"


def test_turns_in_a_row_without_a_block_end_the_episode(tiny_catalog: Catalog, index: ToolIndex) -> None:
    lost = Session(tiny_catalog, index, max_invalid_turns=2)
    assert [lost.step(text).done for text in ("prose", SEARCH, "prose", "prose")] == [False, False, False, True]
    assert lost.env.episode("me").end == "turn_limit"


def test_a_full_context_takes_back_what_the_model_never_read(session: Session) -> None:
    session.step(SEARCH)
    assert session.step("", exhausted=True).done
    episode = session.env.episode("me")
    assert episode.end == "token_limit"
    assert len(episode.turns) == 1
    assert not episode.searches[0].visible


def test_an_ended_episode_takes_no_more_turns(session: Session) -> None:
    session.step("<think>t</think><answer>x</answer>")
    with pytest.raises(RuntimeError, match="call reset first"):
        session.step("<think>t</think><answer>x</answer>")


def test_half_surrogates_can_be_stored(session: Session) -> None:
    session.step("<think>\ud800</think><search_tool>a: \udfff</search_tool>")
    session.turns()
    assert session.env.episode("me").model_dump_json()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(SOUP, min_size=1, max_size=4), st.sampled_from(["advisory", "strict"]))
def test_no_text_breaks_an_episode(tiny_catalog: Catalog, index: ToolIndex, texts: list[str], controller: str) -> None:
    session = Session(tiny_catalog, index, controller=controller)
    for text in texts:
        if session.step(text).done:
            break
    session.turns()
    episode = session.env.episode("fuzz")
    assert type(episode).model_validate_json(episode.model_dump_json()) == episode
    assert all(turn.observation for turn in episode.turns[:-1])


ARGUMENTS = st.dictionaries(
    st.sampled_from(["order_id", "ticketId", "priority", "country", "weight_kg", "calendarId", "query", "pageSize"])
    | st.text(max_size=5),
    JSON | st.just("low") | st.just("Finland"),
    max_size=4,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), ARGUMENTS)
def test_any_arguments_of_any_tool_get_a_result_or_an_error_that_says_why(
    tiny_catalog: Catalog, index: ToolIndex, data: st.DataObject, arguments: dict[str, Any]
) -> None:
    name = data.draw(st.sampled_from(tiny_catalog.names()))
    session = Session(tiny_catalog, index)
    step = session.step(render(ParsedTurn("t", None, (CallBlock(name, arguments),))))
    [response] = read_responses(step.observation)
    assert response["name"] == name
    [call] = session.turns()[0].calls
    assert call.error is None or (call.error.type in ERROR_TYPES - {"ToolExecutionError"} and call.error.msg)
