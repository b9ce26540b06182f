"""A model behind an endpoint as the agent: what goes over the wire, what is put back, what an endpoint may do wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from paraagent.agents.loop import run_episodes
from paraagent.agents.openai import OpenAIPolicy, turn_text
from paraagent.agents.oracle import OraclePolicy
from paraagent.agents.policy import Conversation
from paraagent.catalog.store import Catalog
from paraagent.chat import Answer, ChatClient, LlmError
from paraagent.config import AgentConfig, EnvConfig
from paraagent.paraact.paradigm import PARADIGMS
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode, ParadigmName
from tests.endpoint import Drop, Endpoint, Hang, Raw, completion, serving

ANSWER = "<think>t</think><answer>x</answer>"
TASK = Task.open("Which orders are late?", 3)


def agent(endpoint: Endpoint, **changes: Any) -> AgentConfig:
    return AgentConfig(base_url=endpoint.url, model="tiny", **{"timeout": 20.0, "retries": 0, **changes})


@pytest.fixture
def env(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Callable[..., ToolEnv]:
    return lambda paradigm="paraact", **changes: ToolEnv(
        tiny_catalog, tiny_index, EnvConfig(**changes), paradigm=PARADIGMS[paradigm]
    )


def play(policy: Any, env: Callable[[], ToolEnv], n: int = 1) -> list[Episode]:
    return asyncio.run(run_episodes(policy, env, [(TASK, seed) for seed in range(n)]))


def converse(paradigm: ParadigmName = "paraact") -> Conversation:
    return Conversation(TASK, 0, [], PARADIGMS[paradigm])


def said(content: str = "", reasoning: str = "", *calls: tuple[str, str]) -> Answer:
    return Answer(content, reasoning, calls, "stop", 0, 0, 0.0)


def test_what_is_asked_is_the_conversation_within_the_budget(env: Callable[..., ToolEnv]) -> None:
    with serving(completion(ANSWER, usage=(70, 9))) as endpoint:
        policy = OpenAIPolicy(agent(endpoint, input_price=2.0, output_price=10.0), EnvConfig(max_new_tokens=77))
        [episode] = play(policy, env)
    [asked] = endpoint.asked
    assert asked["model"] == "tiny"
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert (asked["max_completion_tokens"], asked["temperature"]) == (77, 0.0)
    assert asked["stop"] == ["<tool_response>", "<tools>"]
    assert "seed" not in asked
    [turn] = episode.turns
    assert (turn.prompt_tokens, turn.completion_tokens) == (70, 9)
    assert turn.seconds > 0
    assert episode.policy == "openai:tiny"
    assert policy.usage.cost(policy._config) == pytest.approx((70 * 2 + 9 * 10) / 1e6)


def test_sampling_is_seeded_by_the_episode(env: Callable[..., ToolEnv]) -> None:
    with serving(ANSWER) as endpoint:
        play(OpenAIPolicy(agent(endpoint, temperature=1.0), EnvConfig()), env, 3)
    assert sorted(asked["seed"] for asked in endpoint.asked) == [0, 1, 2]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (said(ANSWER), ANSWER),
        (said("<answer>x</answer>", "I know."), "<think>I know.</think>\n<answer>x</answer>"),
        (said("I know.</think><answer>x</answer>"), "<think>I know.</think><answer>x</answer>"),
        (
            said("<think>t</think>", "", ("send", '{"to": 1}'), ("send", "{oops")),
            (
                '<think>t</think>\n<tool_call>{"name": "send", "arguments": {"to": 1}}</tool_call>'
                '\n<tool_call>{"name": "send", "arguments": {oops}</tool_call>'
            ),
        ),
        (
            said("", "Look.", ("search_tool", '{"slot": "mail", "query": "send a mail"}')),
            "<think>Look.</think>\n\n<search_tool>mail: send a mail</search_tool>",
        ),
    ],
)
def test_what_a_server_moved_out_of_the_text_is_put_back(answer: Answer, text: str) -> None:
    assert turn_text(answer, converse()) == text


def test_native_words_without_a_call_are_the_answer() -> None:
    assert (
        turn_text(said("It is 7.", "Done."), converse(), native=True)
        == "<think>Done.</think>\n<answer>It is 7.</answer>"
    )
    assert turn_text(said("It is 7."), converse("react-eae"), native=True) == (
        'Thought: It is 7.\nAction: Finish\nAction Input: {"answer":"It is 7."}'
    )
    assert turn_text(said("It is 7."), converse()) == "It is 7."


def test_under_react_a_moved_call_is_an_action() -> None:
    assert turn_text(said("", "I look.", ("send", '{"to":1}')), converse("react-eae")) == (
        'Thought: I look.\nAction: send\nAction Input: {"to":1}'
    )


def test_native_tools_are_declared_as_they_are_found(env: Callable[..., ToolEnv]) -> None:
    def function(name: str, **arguments: Any) -> dict[str, Any]:
        call = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        return {"id": "1", "type": "function", "function": call}

    search = [function("search_tool", slot="order", query="look up one customer order")]
    lookups = [function("orders_get_order", order_id=order) for order in ("ord_1", "ord_2")]
    with serving(completion(None, tool_calls=search), completion("Two.", tool_calls=lookups), "Done.") as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint, native_tools=True), EnvConfig()), env)
    names = [[tool["function"]["name"] for tool in asked["tools"]] for asked in endpoint.asked]
    assert names[0] == ["search_tool"]
    assert "orders_get_order" in names[1]
    assert [turn.family for turn in episode.turns] == ["search", "call", "answer"]
    assert [call.ok for call in episode.calls] == [True, True]
    assert episode.answer == "Done."
    roles = [message["role"] for message in endpoint.asked[2]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]
    last = endpoint.asked[2]["messages"]
    assert [call["id"] for call in last[4]["tool_calls"]] == [last[5]["tool_call_id"], last[6]["tool_call_id"]]
    assert orjson.loads(last[5]["content"])["order_id"] == "ord_1"


@pytest.mark.parametrize(
    "fault",
    [
        Raw(b"{}", 500),
        Raw(b"{}", 503, headers={"Retry-After": "0"}),
        Raw(b"{}", 429),
        Raw(b"{}", 429, headers={"Retry-After": "0.01"}),
        Raw(b"{}", 429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Raw(b'{"choices": []}'),
        Raw(b"<html>", content_type="text/html"),
        Raw(b'{"choices": [{"message"'),
        Raw(completion(ANSWER).body, torn=True),
        Drop(),
    ],
    ids=[
        "500",
        "503",
        "429",
        "429 in a moment",
        "429 until a date",
        "no choice",
        "HTML",
        "half JSON",
        "torn",
        "dropped",
    ],
)
def test_what_may_pass_is_tried_again(fault: Raw | Drop, env: Callable[..., ToolEnv]) -> None:
    with serving(fault, ANSWER) as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint, retries=1), EnvConfig()), env)
    assert (episode.end, episode.answer, len(endpoint.asked)) == ("answer", "x", 2)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Raw(b"{}", 401), "wants a key: put a right one into $OPENAI_API_KEY"),
        (Raw(b"{}", 404), "is not there: check `model` and `base_url`"),
        (Raw(b'{"error": {"message": "no tools here"}}', 400), "rejects the request with status 400"),
        (Raw(b"{}", 500), "fails with status 500"),
    ],
)
def test_what_will_not_pass_ends_the_episode_with_one_sentence(
    fault: Raw, says: str, env: Callable[..., ToolEnv]
) -> None:
    with serving(fault) as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint), EnvConfig()), env)
    assert episode.end == "error"
    assert episode.error is not None
    assert says in episode.error
    assert episode.error.startswith("The model tiny at http://127.0.0.1")
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    "overflow",
    [
        Raw(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', 400),
        Raw(b'{"error": {"message": "This model\'s maximum context length is 8192 tokens"}}', 400),
        completion(ANSWER, usage=(20_000, 5)),
    ],
)
def test_a_full_context_ends_the_episode_by_its_budget(overflow: Raw, env: Callable[..., ToolEnv]) -> None:
    with serving(overflow) as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint), EnvConfig()), env)
    assert (episode.end, episode.turns) == ("token_limit", ())


def test_a_slow_endpoint_is_given_up_on(env: Callable[..., ToolEnv]) -> None:
    with serving(Hang()) as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint, timeout=0.1), EnvConfig()), env)
    assert episode.error is not None
    assert "did not answer within 0.1 seconds" in episode.error


def test_a_model_that_says_nothing_has_written_a_turn_without_blocks(env: Callable[..., ToolEnv]) -> None:
    with serving("") as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint), EnvConfig(max_turns=2)), lambda: env(max_turns=2))
    assert (episode.end, [turn.family for turn in episode.turns]) == ("turn_limit", ["invalid", "invalid"])


def test_one_wait_counts_for_every_request() -> None:
    """A 429 with Retry-After holds back the requests of all episodes, not only its own."""
    times: list[float] = []

    def answer(messages: list[dict[str, Any]]) -> str | Raw:
        times.append(time.monotonic())
        return Raw(b"{}", 429, headers={"Retry-After": "0.5"}) if len(times) == 1 else ANSWER

    async def ask(client: ChatClient) -> None:
        request = {"messages": [{"role": "user", "content": "x"}]}
        first = asyncio.create_task(client.complete(request))
        while not times:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await asyncio.gather(first, *(client.complete(request) for _ in range(3)))

    with serving(answer) as endpoint:
        asyncio.run(ask(ChatClient(agent(endpoint, retries=2))))
    assert len(times) == 5
    assert min(times[1:]) - times[0] >= 0.45


def test_a_person_hears_what_is_waited_for(env: Callable[..., ToolEnv]) -> None:
    heard: list[str] = []
    with serving(Raw(b"{}", 429, headers={"Retry-After": "1"}), ANSWER) as endpoint:
        policy = OpenAIPolicy(agent(endpoint, retries=1), EnvConfig())
        policy.tell(heard.append)
        play(policy, env)
    assert len(heard) == 1
    assert heard[0].endswith("takes no more requests now: lower `concurrency`, or wait; the next try is in 1 s")


def test_a_turn_that_its_length_cut_says_so(env: Callable[..., ToolEnv]) -> None:
    cut = Raw(completion("<think>I was cut of").body.replace(b'"stop"', b'"length"'))
    with serving(cut, ANSWER) as endpoint:
        [episode] = play(OpenAIPolicy(agent(endpoint, max_tokens=50), EnvConfig()), env)
    [note] = episode.turns[0].notes
    assert note.text == "max_tokens cut this turn: raise agent.max_tokens and env.max_new_tokens above 50"
    assert episode.turns[1].notes == ()


def test_a_server_that_is_too_slow_for_so_many_gets_fewer_at_once() -> None:
    """One request at a time is all that this server does in time, and it goes on with those that were given up."""
    one = threading.Lock()

    def answer(messages: list[dict[str, Any]]) -> str:
        with one:
            time.sleep(0.1)
        return ANSWER

    async def ask(client: ChatClient) -> list[Answer]:
        return list(await asyncio.gather(*(client.complete({"messages": []}) for _ in range(12))))

    with serving(answer) as endpoint:
        answers = asyncio.run(ask(ChatClient(agent(endpoint, timeout=0.6, retries=20, concurrency=12))))
    assert [each.content for each in answers] == [ANSWER] * 12


def test_requests_a_minute_are_spread() -> None:
    times: list[float] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        times.append(time.monotonic())
        return ANSWER

    async def ask(client: ChatClient) -> None:
        await asyncio.gather(*(client.complete({"messages": []}) for _ in range(4)))

    with serving(answer) as endpoint:
        asyncio.run(ask(ChatClient(agent(endpoint, requests_per_minute=600))))
    assert max(times) - min(times) >= 0.25


def test_many_episodes_survive_an_endpoint_that_often_fails(env: Callable[..., ToolEnv]) -> None:
    """Sixty episodes over an endpoint of which every fifth answer is some fault: all end as without faults."""
    lock, number = threading.Lock(), [0]
    faults = [Raw(b"{}", 500), Raw(b"{}", 429, headers={"Retry-After": "0"}), Drop(), Raw(b"nonsense")]

    def answer(messages: list[dict[str, Any]]) -> str | Raw | Drop:
        with lock:
            number[0] += 1
            if number[0] % 5 == 0:
                return faults[number[0] // 5 % len(faults)]
        done = sum(message["role"] == "assistant" for message in messages)
        return "<think>t</think><search_tool>order: look up one order</search_tool>" if done < 2 else ANSWER

    with serving(answer) as endpoint:
        episodes = play(OpenAIPolicy(agent(endpoint, retries=8, concurrency=16), EnvConfig()), env, 60)
    assert {(episode.end, len(episode.turns)) for episode in episodes} == {("answer", 3)}


def test_a_wrong_key_is_told_and_a_right_one_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    odd = Raw(b'{"error": {"message": "key sk-secret is odd"}}', 400)
    with serving(odd) as endpoint, pytest.raises(LlmError) as caught:
        asyncio.run(ChatClient(agent(endpoint)).complete({"messages": []}))
    assert endpoint.keys == ["Bearer sk-secret"]
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("paradigm", ["paraact", "react-ete", "react-eae"])
def test_every_paradigm_is_one_trace(paradigm: ParadigmName, env: Callable[..., ToolEnv]) -> None:
    """A model that repeats the oracle's turns over the wire leaves the oracle's episode."""
    [mine] = play(OraclePolicy(), lambda: env(paradigm))
    texts = [turn.text for turn in mine.turns]

    def answer(messages: list[dict[str, Any]]) -> str:
        return texts[sum(message["role"] == "assistant" for message in messages)]

    with serving(answer) as endpoint:
        [theirs] = play(OpenAIPolicy(agent(endpoint), EnvConfig(), name="oracle"), lambda: env(paradigm))
    timeless = {"turns": {"__all__": {"seconds", "started"}}}
    assert theirs.model_dump(exclude=timeless) == mine.model_dump(exclude=timeless)
    assert theirs.paradigm == paradigm
