"""A language model in all roles: what each is told, what it may answer, and what an endpoint may do wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from jsonschema import Draft202012Validator

from paraagent.agents.loop import run_episodes
from paraagent.agents.policy import Conversation
from paraagent.agents.roles import EXAMPLES, SCHEMAS, EndpointTeam, messages
from paraagent.agents.script import ScriptedTeam
from paraagent.agents.team import ROLES, Asked, Draft, Question, RoleModel, Table, TeamPolicy
from paraagent.catalog.store import Catalog
from paraagent.config import EnvConfig, LlmConfig, TasksConfig
from paraagent.errors import UsageError
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.paraact.protocol import AnswerBlock, CallBlock, SearchBlock, compact
from paraagent.retrieval.index import ToolIndex
from paraagent.task import Task
from paraagent.tasks.synthesis import synthesise
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode
from tests.endpoint import Raw, serving

Env = Callable[[], ToolEnv]
OPEN = Task.open("Which orders are late?", 3)
ASKED: tuple[Asked, ...] = get_args(Asked)
ANSWERS: dict[Asked, dict[str, Any]] = {
    "split": {"needs": [{"slot": "order", "need": "look up one order"}]},
    "explore": {"fits": [], "searches": [{"slot": "order", "query": "look up one order"}]},
    "plan": {"steps": [["a", "b"], ["c"]], "dependencies": [{"from": ["a", "b"], "to": "c"}]},
    "act": {"calls": [{"name": "a", "arguments": {"x": [1, {"y": None}]}}]},
    "check": {"accept": False, "reason": "a value is made up"},
    "think": {"think": "I look for it."},
}


class Recorded(ScriptedTeam):
    """The scripted team, and everything that it was asked and said."""

    def __init__(self, imperfect: float = 0.0) -> None:
        super().__init__(imperfect)
        self.said: list[tuple[Question, dict[str, Any]]] = []

    async def ask(self, question: Question) -> dict[str, Any]:
        said = await super().ask(question)
        self.said.append((question, said))
        return said


@pytest.fixture(scope="module")
def env(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Env:
    return partial(ToolEnv, tiny_catalog, tiny_index, EnvConfig())


@pytest.fixture(scope="module")
def tasks(tiny_catalog: Catalog, tiny_index: ToolIndex) -> list[Task]:
    made = synthesise(tiny_catalog, tiny_index, TasksConfig(train=1, validation=1, test=40), EnvConfig(), 0)
    return [task for task in made.tasks if task.split == "test"]


@pytest.fixture(scope="module")
def recorded(tasks: list[Task], env: Env) -> Recorded:
    team = Recorded(imperfect=0.7)
    play(team, env, *[(task, seed) for task in tasks for seed in range(12)])
    return team


def play(team: RoleModel, env: Env, *units: tuple[Task, int]) -> list[Episode]:
    return asyncio.run(run_episodes(TeamPolicy(team), env, units))


def table(**changes: Any) -> Table:
    values: dict[str, Any] = {"needs": {"order": "look up one order", "mail": "send a mail"}}
    return Table(**(values | changes))


def ask(asked: Asked, *said: str, task: Task = OPEN, known: Table | None = None, **more: Any) -> list[Any]:
    talk: list[Any] = [{"role": "system", "content": "s"}, {"role": "user", "content": task.request}]
    talk += [{"role": ("assistant", "user")[place % 2], "content": text} for place, text in enumerate(said)]
    return messages(Question(asked, Conversation(task, 0, talk), known or Table(), "required", **more))


def errors(asked: Asked, said: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMAS[asked]).iter_errors(said)]


# Schemas


def test_every_question_has_a_schema_and_a_role() -> None:
    assert set(SCHEMAS) == set(ASKED) == set(ROLES)


@pytest.mark.parametrize("asked", ASKED)
def test_a_schema_is_a_json_schema(asked: Asked) -> None:
    Draft202012Validator.check_schema(SCHEMAS[asked])
    assert errors(asked, ANSWERS[asked]) == []


@pytest.mark.parametrize("asked", ASKED)
def test_a_schema_refuses_what_nobody_asked_for(asked: Asked) -> None:
    assert errors(asked, ANSWERS[asked] | {"more": 1})
    assert errors(asked, [])
    assert errors(asked, dict.fromkeys(ANSWERS[asked], 7))


@pytest.mark.parametrize("asked", [asked for asked in ASKED if asked != "act"])
def test_a_schema_wants_something(asked: Asked) -> None:
    assert errors(asked, {})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("plan", {"steps": []}),
        ("plan", {"steps": [[]]}),
        ("plan", {"steps": [["a"]], "dependencies": [{"from": [], "to": "a"}]}),
        ("explore", {"fits": [], "searches": [{"slot": "s", "query": "q"}] * 17}),
        ("act", {"calls": [{"name": "a"}]}),
        ("act", {"calls": [{"name": "a", "arguments": "x"}]}),
        ("check", {"accept": "yes", "reason": ""}),
        ("think", {"think": ""}),
        ("think", {"think": "t" * 601}),
    ],
)
def test_a_schema_refuses_half_an_answer(asked: Asked, said: Any) -> None:
    assert errors(asked, said)


def test_the_script_says_nothing_that_a_model_may_not_say(recorded: Recorded) -> None:
    assert {question.asked for question, _ in recorded.said} == {*ASKED}
    for question, said in recorded.said:
        own = {name: value for name, value in said.items() if name not in ("slip", "widen")}
        assert errors(question.asked, own) == []


# What a role is told


@pytest.mark.parametrize("asked", ASKED)
def test_each_role_is_told_who_it_is(asked: Asked) -> None:
    system, user = ask(asked)
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].startswith(f"You are the {ROLES[asked].title()}.")
    assert "{" not in system["content"]
    assert OPEN.request in user["content"]


def test_the_executor_knows_the_answer_where_no_tool_helps() -> None:
    assert NO_TOOL_ANSWER in ask("act")[0]["content"]


def test_a_role_sees_the_episode_but_not_the_agents_prompt() -> None:
    talk = ask("explore", "<think>t</think>", "<tools>\n</tools>")[1]["content"]
    assert talk.startswith(
        "Request: Which orders are late?\n\nTurn: <think>t</think>\n\nObservation: <tools>\n</tools>\n\n"
    )
    assert talk.count(OPEN.request) == 1


def test_a_role_sees_what_was_done_for_each_slot() -> None:
    known = table(
        needs={"a": "do a", "b": "do b", "c": "do c"},
        queries={"a": ("do a", "try a"), "b": ("do b",)},
        fits={"a": "tool_a", "b": ""},
    )
    assert ask("explore", known=known)[1]["content"].endswith(
        "Slots:\n- a: do a (tool tool_a; searched: do a; try a)\n- b: do b (no tool does it; searched: do b)\n"
        "- c: do c (open)"
    )


def test_before_the_split_nothing_is_known() -> None:
    assert ask("split")[1]["content"].endswith("Nothing is known yet.")


@pytest.mark.parametrize(
    ("blocks", "shown"),
    [
        ((SearchBlock("order", "look up one order"),), "Draft: search for order: look up one order"),
        ((CallBlock("get", {"id": "o1"}), CallBlock("put", {})), 'Draft: call get with {"id":"o1"}\ncall put with {}'),
        ((AnswerBlock("It is late."),), "Draft: answer: It is late."),
    ],
)
def test_the_critic_sees_the_draft(blocks: Any, shown: str) -> None:
    assert ask("check", draft=Draft(blocks))[1]["content"].endswith(shown)


def test_the_critic_sees_the_plan_of_the_draft() -> None:
    plan = {"available_tools": ["get"]}
    assert ask("check", draft=Draft((CallBlock("get", {}),), plan))[1]["content"].endswith(
        f"Draft: plan {compact(plan)}\ncall get with {{}}"
    )


def test_everybody_hears_why_a_draft_was_sent_back() -> None:
    for asked in ASKED:
        content = ask(asked, objection="the value is made up")[1]["content"]
        assert content.endswith("sent back: the value is made up")


def test_a_long_episode_is_shown_from_its_end() -> None:
    content = ask("act", "<think>t</think>", "early " + "x" * 30_000 + " late")[1]["content"]
    assert " late\n\n" in content
    assert "early" not in content
    assert len(content) < 13_000


def test_a_role_is_told_no_more_of_the_task_than_its_request(tasks: list[Task]) -> None:
    for task in tasks:
        for asked in ASKED:
            content = "".join(message["content"] for message in ask(asked, task=task)).replace(task.request, "")
            hidden = [*task.targets, *(str(atom.value) for atom in task.atoms if len(str(atom.value)) > 3)]
            assert [each for each in hidden if each in content and each != NO_TOOL_ANSWER] == []


# Over the wire


def test_a_model_that_says_what_the_script_says_writes_its_episode(tasks: list[Task], env: Env) -> None:
    for task in tasks:
        team = Recorded()
        [mine] = play(team, env, (task, 1))
        answers = [
            orjson.dumps({name: value for name, value in said.items() if name not in ("slip", "widen")}).decode()
            for _, said in team.said
        ]
        with serving(*answers) as endpoint:
            [theirs] = play(EndpointTeam(endpoint.config()), env, (task, 1))
        assert len(endpoint.asked) == len(answers)
        assert [turn.text for turn in theirs.turns] == [turn.text for turn in mine.turns]
        assert (theirs.answer, theirs.end) == (mine.answer, "answer")


def test_the_question_holds_an_example_and_the_seed_of_the_episode(env: Env) -> None:
    with serving('{"needs": [], "answer": "None."}', '{"accept": true, "reason": ""}', '{"think": "t"}') as endpoint:
        [episode] = play(EndpointTeam(endpoint.config()), env, (OPEN, 2**40 + 5))
    assert episode.answer == "None."
    assert [asked["seed"] for asked in endpoint.asked] == [5, 5, 5]
    questions: tuple[Asked, ...] = ("split", "check", "think")
    for question, sent in zip(questions, endpoint.asked, strict=True):
        assert orjson.dumps(EXAMPLES[question]).decode() in sent["messages"][-1]["content"]


def test_an_answer_that_is_kept_is_not_asked_for_again(env: Env, tmp_path: Path) -> None:
    with serving('{"needs": [], "answer": "None."}', '{"accept": true, "reason": ""}', '{"think": "t"}') as endpoint:
        first, again = (play(EndpointTeam(endpoint.config(), tmp_path), env, (OPEN, 1)) for _ in range(2))
    assert first == again
    assert len(endpoint.asked) == 3


def test_prose_is_sent_back_once_and_mended(env: Env) -> None:
    answers = ("I think no tool is needed.", '{"needs": [], "answer": "None."}', '{"accept": true, "reason": ""}')
    with serving(*answers, 'Well: ```json\n{"think": "t"}\n```') as endpoint:
        [episode] = play(EndpointTeam(endpoint.config()), env, (OPEN, 1))
    assert (episode.end, episode.answer) == ("answer", "None.")
    correction = endpoint.asked[1]["messages"][-2:]
    assert correction[0] == {"role": "assistant", "content": "I think no tool is needed."}
    assert correction[1]["content"].startswith("That is not right: ")


@pytest.mark.parametrize("said", ["No tool is needed.", '{"needs": "none"}', '{"needs": [{"slot": "a"}]}', "[]"])
def test_a_model_that_cannot_say_it_breaks_the_episode_for_good(said: str, env: Env) -> None:
    with serving(said) as endpoint:
        policy = TeamPolicy(EndpointTeam(endpoint.config()))
        [episode] = asyncio.run(run_episodes(policy, env, [(OPEN, 1)]))
    assert len(endpoint.asked) == 2
    assert episode.end == "error"
    assert "twice gave no usable JSON" in (episode.error or "")
    assert policy.lost == {}


@pytest.mark.parametrize("status", [500, 503, 429, 401, 404])
def test_an_endpoint_that_fails_leaves_the_episode_owed(status: int, env: Env) -> None:
    with serving(Raw(b"{}", status)) as endpoint:
        policy = TeamPolicy(EndpointTeam(endpoint.config()))
        first, second = asyncio.run(run_episodes(policy, env, [(OPEN, 1), (OPEN, 2)]))
    assert policy.lost == {(OPEN.task_id, 1): first.error, (OPEN.task_id, 2): second.error}
    assert first.error


def test_nobody_there_leaves_the_episode_owed(env: Env) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = LlmConfig(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", model="tiny", retries=0)
        policy = TeamPolicy(EndpointTeam(config))
        [episode] = asyncio.run(run_episodes(policy, env, [(OPEN, 1)]))
    assert policy.lost == {(OPEN.task_id, 1): episode.error}
    assert "cannot be reached" in (episode.error or "")


@pytest.mark.parametrize(
    "answer",
    [Raw(b'{"error": {"message": "unknown parameter"}}', 400), Raw(b"<html>hello</html>", content_type="text/html")],
)
def test_what_an_endpoint_cannot_be_asked_is_owed(answer: Raw, env: Env) -> None:
    with serving(answer) as endpoint:
        policy = TeamPolicy(EndpointTeam(endpoint.config()))
        [episode] = asyncio.run(run_episodes(policy, env, [(OPEN, 1)]))
    assert episode.end == "error"
    assert policy.lost == {(OPEN.task_id, 1): episode.error}


def test_a_team_needs_the_name_of_a_model() -> None:
    with pytest.raises(UsageError, match="No language model is named"):
        EndpointTeam(LlmConfig())


@pytest.mark.parametrize("asked", EXAMPLES)
def test_an_example_is_of_the_form_that_is_demanded(asked: Asked) -> None:
    assert list(Draft202012Validator(SCHEMAS[asked]).iter_errors(EXAMPLES[asked])) == []


def test_a_long_episode_never_hides_the_request(env: Env) -> None:
    long = {"role": "user", "content": "word " * 10_000}
    spoken = Conversation(
        OPEN, 1, [{"role": "system", "content": "s"}, {"role": "user", "content": OPEN.request}, long]
    )
    told = messages(Question("act", spoken, Table(), "forbidden"))[-1]["content"]
    assert OPEN.request in told
    assert len(told) < 15_000
