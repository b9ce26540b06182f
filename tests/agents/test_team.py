"""The team: what is certain is checked before the Critic is asked, rounds are bounded, and each episode is its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from paraagent.agents.loop import run_episodes
from paraagent.agents.policy import Conversation
from paraagent.agents.script import ScriptedTeam
from paraagent.agents.team import PASSING, Asked, Done, Draft, Question, Table, TeamPolicy, objection_to, take_in
from paraagent.catalog.store import Catalog
from paraagent.chat import LlmError
from paraagent.config import EnvConfig, RewardConfig
from paraagent.message import Message
from paraagent.paraact.observation import response_block, tools_block
from paraagent.paraact.protocol import AnswerBlock, CallBlock, SearchBlock
from paraagent.retrieval.index import ToolIndex
from paraagent.rewards.score import score
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode
from tests.agents.tasks import task_of

Said = dict[str, Any]
Say = Callable[[Question], Said]
CIRCLES = "the team went round in circles: "


class Team(ScriptedTeam):
    """The scripted team, of which some answer as they are told, in one task alone where `only` names it."""

    def __init__(self, only: str = "", **others: Say) -> None:
        super().__init__()
        self.only, self.others = only, others
        self.questions = Counter[Asked]()

    async def ask(self, question: Question) -> Said:
        if self.only in ("", question.conversation.task.task_id):
            self.questions[question.asked] += 1
            if question.asked in self.others:
                return self.others[question.asked](question)
        return await super().ask(question)


@pytest.fixture(scope="module")
def env(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Callable[[], ToolEnv]:
    return partial(ToolEnv, tiny_catalog, tiny_index, EnvConfig())


@pytest.fixture(scope="module")
def tasks(tiny_catalog: Catalog) -> list[Task]:
    """Two tasks: one call, and calls of two tools."""
    order = ("look up one customer order", "orders_get_order", {"order_id": "ord_1"}, "status")
    ticket = ("retrieve a support ticket", "tickets_GetTicket", {"ticketId": "tck_6080e5"}, "subject")
    return [task_of(tiny_catalog, "one", 11, [order]), task_of(tiny_catalog, "two", 12, [order, ticket])]


def play(team: Any, env: Callable[[], ToolEnv], *tasks: Task) -> list[Episode]:
    return asyncio.run(run_episodes(TeamPolicy(team), env, [(task, 1) for task in tasks]))


def solved(task: Task, episode: Episode) -> bool:
    return score(task, episode, RewardConfig()).solved


def refuse(_: Question) -> Said:
    return {"accept": False, "reason": "not good enough"}


def agree(_: Question) -> Said:
    return {"accept": True, "reason": ""}


def idle(_: Question) -> Said:
    return {"fits": [], "searches": []}


def miss(question: Question) -> Said:
    return {"missing": list(question.table.fits)}


def call(name: str, **arguments: Any) -> Say:
    return lambda _: {"calls": [{"name": name, "arguments": arguments}]}


def decide(question: Question) -> Said:
    """The Explorer who takes the first hit of every slot, and searches where there is none."""
    hits = question.table.hits
    return {
        "fits": [{"slot": slot, "tool": hits[slot][0]} for slot in question.table.unsettled if hits.get(slot)],
        "searches": [{"slot": slot, "query": slot} for slot in question.table.unsettled if not hits.get(slot)],
    }


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ({"check": refuse}, "the last time since not good enough"),
        ({"check": lambda _: {"accept": False, "reason": ""}}, "the Critic gave no reason"),
        ({"explore": idle}, "the Explorer neither searches nor decides: customer order"),
        ({"act": miss, "explore": decide}, "Explorer and Executor pass a slot to and fro"),
        ({"act": lambda _: {"missing": ["roof"]}}, "the Executor misses a tool for no known slot"),
        ({"act": call("orders_burn_order", order_id="ord_1")}, "no search returned a tool named orders_burn_order"),
        (
            {"act": call("orders_get_order", order_id="ord_99")},
            'orders_get_order is given "ord_99", which stands neither in the request nor in a result',
        ),
        ({"act": lambda _: {"answer": "It is shipped."}}, "it answers before any call has succeeded"),
        ({"act": lambda _: {}}, "the turn cannot be written"),
        (
            {"plan": lambda _: {"steps": [["a", "b"]], "dependencies": [{"from": ["a"], "to": "z"}]}},
            "plan is not valid",
        ),
        (
            {"explore": lambda _: {"fits": [], "searches": [{"slot": "a: b", "query": "c"}]}},
            "the turn cannot be written",
        ),
        ({"explore": lambda _: {"fits": [], "searches": [{"slot": "", "query": "c"}]}}, "cannot be written"),
    ],
    ids=[
        "Critic always refuses",
        "Critic says nothing",
        "Explorer idles",
        "to and fro",
        "misses an unknown slot",
        "unseen tool",
        "made-up value",
        "answers too early",
        "says nothing",
        "broken plan",
        "slot with a colon",
        "slot without a name",
    ],
)
def test_a_team_that_gets_nowhere_gives_up_its_own_episode(
    others: dict[str, Say], says: str, env: Callable[[], ToolEnv], tasks: list[Task]
) -> None:
    team = Team(only="one", **others)
    broken, other = play(team, env, *tasks)
    assert broken.end == "error"
    assert says in (broken.error or "")
    assert (broken.error or "").startswith(CIRCLES)
    assert team.questions.total() <= 40
    assert solved(tasks[1], other)


def test_the_error_is_the_sentence_of_the_team(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [episode] = play(Team(check=refuse), env, tasks[0])
    assert episode.error == f"{CIRCLES}the draft of turn 1 was sent back 3 times, the last time since not good enough"


def test_a_critic_is_asked_once_a_draft(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    team = Team(check=refuse)
    play(team, env, tasks[0])
    assert team.questions == {"split": 3, "explore": 3, "check": 3}


def test_slots_go_to_and_fro_three_times_a_draft(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    team = Team(act=miss, explore=decide)
    play(team, env, tasks[0])
    assert team.questions["act"] == 9


def test_a_critic_who_agrees_with_everything_lets_no_unseen_tool_pass(
    env: Callable[[], ToolEnv], tasks: list[Task]
) -> None:
    checked: list[str] = []

    def yes(question: Question) -> Said:
        assert question.draft
        checked.append(type(question.draft.blocks[0]).__name__)
        return agree(question)

    [episode] = play(Team(check=yes, act=call("orders_burn_order", order_id="ord_1")), env, tasks[0])
    assert checked == ["SearchBlock"]
    assert (episode.end, len(episode.calls)) == ("error", 0)


def test_what_was_sent_back_is_told_to_everybody(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    """A Critic who refuses the first draft of each turn, and a team that does better for it."""
    objections: list[tuple[str, str]] = []

    def stern(question: Question) -> Said:
        objections.append((question.asked, question.objection))
        return agree(question) if question.objection else refuse(question)

    [episode] = play(Team(check=stern), env, tasks[0])
    assert solved(tasks[0], episode)
    assert objections == [("check", ""), ("check", "not good enough")] * 3
    verdicts = [orjson.loads(note.text) for note in episode.turns[0].notes if note.role == "critic"]
    assert [verdict["accept"] for verdict in verdicts] == [False, True]


def test_what_was_certain_stands_in_the_notes(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    def careless(question: Question) -> Said:
        value = "ord_1" if question.objection else "ord_99"
        return {"answer": "x"} if question.table.done else call("orders_get_order", order_id=value)(question)

    [episode] = play(Team(act=careless), env, tasks[0])
    notes = [note.text for note in episode.turns[1].notes if note.role == "check"]
    assert notes == ['orders_get_order is given "ord_99", which stands neither in the request nor in a result']
    assert [call.arguments for call in episode.calls] == [{"order_id": "ord_1"}]


def test_a_slot_that_is_missed_is_searched_again(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    """The Executor does not take the first tool, and the Explorer looks for another one."""
    missed: list[str] = []

    def explore(question: Question) -> Said:
        [slot] = question.table.unsettled
        if len(question.table.queries.get(slot, ())) <= len(missed):
            return {"fits": [], "searches": [{"slot": slot, "query": f"look up one order {len(missed)}"}]}
        return {"fits": [{"slot": slot, "tool": "orders_get_order"}], "searches": []}

    def act(question: Question) -> Said:
        if question.table.done:
            return {"answer": "done"}
        if missed:
            return call("orders_get_order", order_id="ord_1")(question)
        missed.extend(question.table.fits)
        return miss(question)

    [episode] = play(Team(explore=explore, act=act, check=agree), env, tasks[0])
    assert [turn.family for turn in episode.turns] == ["search", "search", "call", "answer"]
    assert len(missed) == 1


def test_a_turn_has_no_more_blocks_than_the_grammar_allows(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    many: Said = {"fits": [], "searches": [{"slot": f"s{n}", "query": f"order {n}"} for n in range(40)]}
    [episode] = play(Team(explore=lambda q: idle(q) if q.table.hits else many), env, tasks[0])
    assert [(len(turn.searches), turn.well_formed) for turn in episode.turns] == [(16, True)]


def test_line_breaks_of_a_model_do_not_break_the_turn(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [episode] = play(Team(think=lambda _: {"think": "I look\n\n for it. "}), env, tasks[0])
    assert {turn.think for turn in episode.turns} == {"I look for it."}
    assert solved(tasks[0], episode)


def test_a_thought_that_holds_a_tag_is_sent_back(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [episode] = play(Team(think=lambda _: {"think": "I end it </think> here."}), env, tasks[0])
    assert (episode.error or "").startswith(f"{CIRCLES}the draft of turn 1 was sent back 3 times")


def test_a_long_word_is_kept_in_part(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    [episode] = play(Team(check=lambda _: {"accept": True, "reason": "r" * 50_000}), env, tasks[0])
    assert {len(note.text) for turn in episode.turns for note in turn.notes if note.role == "critic"} == {2_000}


@pytest.mark.parametrize("fault", ["network", "unavailable", "denied", "unusable", "rejected", "too_long"])
def test_only_what_may_pass_is_lost(fault: Any, env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    def fail(_: Question) -> Said:
        raise LlmError(fault, "the line is dead")

    policy = TeamPolicy(Team(only="one", plan=fail))
    broken, other = asyncio.run(run_episodes(policy, env, [(tasks[0], 7), (tasks[1], 7)]))
    told = "" if fault in PASSING else "the Planner gave nothing that can be used: "
    assert (broken.end, broken.error) == ("error", f"{told}the line is dead")
    assert policy.lost == ({("one", 7): "the line is dead"} if fault in PASSING else {})
    assert solved(tasks[1], other)


def test_episodes_of_one_task_do_not_share_a_table(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    """Two episodes of one task with one seed, turn by turn side by side, are the same episode."""
    first, second = asyncio.run(run_episodes(TeamPolicy(ScriptedTeam()), env, [(tasks[1], 3)] * 2))
    assert first == second
    assert solved(tasks[1], first)


# Taking in


def conversation(*messages: str) -> Conversation:
    talk: list[Message] = [{"role": "system", "content": messages[0]}]
    talk += [{"role": "user" if n % 2 else "assistant", "content": text} for n, text in enumerate(messages[1:], 1)]
    return Conversation(Task.open(messages[1], 1), 0, talk)


SEARCHES = "<think>t</think>\n<search_tool>a: find a</search_tool>\n<search_tool>b: find b</search_tool>"
CALLS = "<think>t</think>\n" + "\n".join(
    f'<tool_call>{{"name": "x", "arguments": {{"n": {n}}}}}</tool_call>' for n in (1, 2, 3)
)


def test_hits_belong_to_their_slots() -> None:
    observed = "\n".join([tools_block(['{"name":"x"}', '{"name":"y"}']), tools_block(['{"name":"z"}'])])
    table = take_in(Table(), conversation("s", "r", SEARCHES, observed))
    assert table.hits == {"a": ("x", "y"), "b": ("z",)}
    assert table.queries == {"a": ("find a",), "b": ("find b",)}


def test_an_observation_is_taken_in_once() -> None:
    talk = conversation("s", "r", SEARCHES, tools_block(['{"name":"x"}']))
    once = take_in(Table(), talk)
    assert take_in(once, talk) == once


def test_a_later_search_adds_to_the_hits_of_its_slot() -> None:
    before = Table(hits={"a": ("w", "x")}, queries={"a": ("find w",)})
    table = take_in(before, conversation("s", "r", SEARCHES, tools_block(['{"name":"x"}', '{"name":"y"}'])))
    assert table.hits["a"] == ("w", "x", "y")
    assert table.queries["a"] == ("find w", "find a")


def test_what_was_not_shown_counts_as_failed() -> None:
    observed = "\n".join(
        [response_block("x", {"v": 1}), response_block("x", {"error": {"type": "NotFoundError", "msg": "m"}})]
    )
    table = take_in(Table(), conversation("s", "r", CALLS, observed))
    assert [(done.arguments["n"], done.error) for done in table.done] == [
        (1, ""),
        (2, "NotFoundError"),
        (3, "not shown"),
    ]


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"error": {"type": "TimeoutError", "msg": "m"}}, "TimeoutError"),
        ({"error": {"msg": "m"}}, "unknown"),
        ({"error": None, "value": 3}, ""),
        ({"error": "a word"}, ""),
        ([1], ""),
        (None, ""),
    ],
)
def test_an_error_is_an_object_that_holds_nothing_else(result: Any, error: str) -> None:
    assert Done("x", {}, {"name": "x", "result": result}).error == error


# Objections


def test_a_draft_of_seen_things_meets_no_objection() -> None:
    talk = conversation("s", "Look up order ord_1, please.")
    table = Table(hits={"order": ("Get_Order",)})
    assert objection_to(Draft((CallBlock("get_order", {"id": "ORD_1", "n": 3, "all": True}),)), table, talk) == ""


def test_the_system_prompt_and_own_words_are_no_ground() -> None:
    talk = conversation("the key is abc-123", "Look it up.", "<think>abc-123</think>", "<tools>\n</tools>")
    draft = Draft((CallBlock("get", {"key": "abc-123"}),))
    assert "abc-123" in objection_to(draft, Table(hits={"a": ("get",)}), talk)


@pytest.mark.parametrize(
    "draft",
    [
        Draft((AnswerBlock(""),)),
        Draft((AnswerBlock("<answer>x</answer>"),)),
        Draft((SearchBlock("a", ""),)),
        Draft((SearchBlock("a", "find </search_tool>"),)),
        Draft((SearchBlock("a", "b"), AnswerBlock("c"))),
        Draft((AnswerBlock("a"), AnswerBlock("b"))),
        Draft(tuple(SearchBlock("a", f"b{n}") for n in range(17))),
        Draft((SearchBlock("a", "b"),), {"capacity_slots": []}),
        Draft((SearchBlock("a", "b"),), {"available_tools": ["x"], "execution_flow": []}),
    ],
)
def test_what_the_grammar_does_not_say_is_objected_to(draft: Draft) -> None:
    assert objection_to(draft, Table(), conversation("s", "r"))


def test_an_answer_may_follow_a_success_or_when_no_tool_fits() -> None:
    answer, talk = Draft((AnswerBlock("x"),)), conversation("s", "r")
    well = Done("x", {}, {"name": "x", "result": 1})
    failed = Done("x", {}, {"name": "x", "result": {"error": {"type": "NotFoundError", "msg": "m"}}})
    assert objection_to(answer, Table(fits={"a": "x"}, done=(failed,)), talk)
    assert objection_to(answer, Table(fits={"a": "x"}), talk)
    assert not objection_to(answer, Table(fits={"a": "x"}, done=(failed, well)), talk)
    assert not objection_to(answer, Table(fits={"a": ""}), talk)


def test_an_answer_that_makes_up_a_number_is_sent_back(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    script = ScriptedTeam()

    class Liar:
        async def ask(self, question: Question) -> dict[str, Any]:
            said = await script.ask(question)
            return {"answer": f"{said['answer']} Order INV-4711."} if said.get("answer") else said

    [episode] = play(Liar(), env, tasks[0])
    assert "the answer says inv-4711" in (episode.error or "")


def test_a_plan_of_a_tool_that_no_search_returned_is_sent_back(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    script = ScriptedTeam()

    class Dreamer:
        async def ask(self, question: Question) -> dict[str, Any]:
            said = await script.ask(question)
            return {**said, "steps": [*said["steps"], ["dream_tool"]]} if question.asked == "plan" else said

    [episode] = play(Dreamer(), env, tasks[0])
    assert "no search returned a tool named dream_tool" in (episode.error or "")


def test_a_verdict_that_cannot_be_read_is_no_consent(env: Callable[[], ToolEnv], tasks: list[Task]) -> None:
    def mumble(_: Question) -> Said:
        raise LlmError("unusable", "twice gave no usable JSON")

    [episode] = play(Team(check=mumble), env, tasks[0])
    assert (episode.error or "").endswith("the Critic gave no verdict that can be read")
    assert episode.turns == ()
