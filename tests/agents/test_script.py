"""The scripted team: it solves every shape of task, mends its own slips, and says the same for the same seed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import orjson
import pytest

from paraagent.agents.grounds import ungrounded
from paraagent.agents.loop import Rollout, run_rollouts
from paraagent.agents.reference import facts, listed, plan_of, read, slot_labels, went_well
from paraagent.agents.script import ScriptedTeam, Slip
from paraagent.agents.team import TeamPolicy
from paraagent.agents.wording import _FORMS, word
from paraagent.catalog.store import Catalog
from paraagent.config import DemosConfig, EnvConfig, RewardConfig, TasksConfig
from paraagent.demos.attempts import demo_env
from paraagent.demos.recoveries import Recovery, mistakes, recoveries
from paraagent.paraact.executor import RETRYABLE
from paraagent.paraact.prompt import NO_TOOL_ANSWER
from paraagent.retrieval.index import ToolIndex
from paraagent.rewards.score import score
from paraagent.seeds import rng
from paraagent.task import ReferenceCall, Task
from paraagent.tasks.synthesis import synthesise
from paraagent.toolenv.env import ToolEnv
from paraagent.trace import Episode, Turn

Unit = tuple[Task, int]


@dataclass(frozen=True)
class Stage:
    """Tasks of several shapes and the world that they are played in."""

    tasks: list[Task]
    catalog: Catalog
    index: ToolIndex

    def play(
        self,
        units: Sequence[Unit],
        imperfect: float = 0.0,
        group: int = 64,
        fault_rate: float = 0.0,
        plain: bool = False,
    ) -> list[Rollout]:
        config = demo_env(EnvConfig(), DemosConfig(fault_rate=fault_rate))
        policy = TeamPolicy(ScriptedTeam(imperfect, plain), group)
        return asyncio.run(run_rollouts(policy, partial(ToolEnv, self.catalog, self.index, config), units))


@pytest.fixture(scope="module")
def stage(tiny_catalog: Catalog, tiny_index: ToolIndex) -> Stage:
    made = synthesise(tiny_catalog, tiny_index, TasksConfig(train=40, validation=1, test=40), EnvConfig(), 0)
    return Stage([task for task in made.tasks if task.split != "validation"], tiny_catalog, tiny_index)


@pytest.fixture(scope="module")
def units(stage: Stage) -> list[Unit]:
    return [(task, seed) for task in stage.tasks for seed in range(6)]


@pytest.fixture(scope="module")
def smooth(stage: Stage, units: list[Unit]) -> list[Rollout]:
    return stage.play(units)


@pytest.fixture(scope="module")
def slipped(stage: Stage, units: list[Unit]) -> list[Rollout]:
    return stage.play(units, imperfect=1.0)


@pytest.fixture(scope="module")
def faulty(stage: Stage, units: list[Unit]) -> list[Rollout]:
    return stage.play(units, fault_rate=0.1)


def is_solved(task: Task, episode: Episode) -> bool:
    return score(task, episode, RewardConfig()).solved


def slip(episode: Episode) -> list[str]:
    return [note.text for turn in episode.turns for note in turn.notes if note.role == "slip"]


def said(turn: Turn, role: str) -> list[Any]:
    """What a role said at a turn, in order."""
    return [orjson.loads(note.text) for note in turn.notes if note.role == role]


def with_slip(kind: str, units: Sequence[Unit], rollouts: Sequence[Rollout]) -> list[tuple[Task, Rollout]]:
    found = [(task, each) for (task, _), each in zip(units, rollouts, strict=True) if kind in slip(each.episode)]
    assert found
    return found


def test_the_tasks_have_every_shape_that_the_catalog_allows(stage: Stage) -> None:
    assert {task.shape for task in stage.tasks} == {
        "single",
        "parallel",
        "chain",
        "fan-out",
        "mixed",
        "no-tool",
        "unsolvable",
    }
    assert {bool(task.state) for task in stage.tasks} == {True, False}


def test_without_slips_every_task_is_solved(units: list[Unit], smooth: list[Rollout]) -> None:
    unsolved = [
        (task.label, seed, each.episode.error or each.episode.answer)
        for (task, seed), each in zip(units, smooth, strict=True)
        if not is_solved(task, each.episode)
    ]
    assert unsolved == []


@pytest.mark.parametrize("played", ["smooth", "slipped", "faulty"])
def test_turns_are_well_formed_and_keep_the_rule_of_plans(played: str, request: pytest.FixtureRequest) -> None:
    turns = [turn for rollout in request.getfixturevalue(played) for turn in rollout.episode.turns]
    assert turns
    assert [turn.problems for turn in turns if not turn.well_formed] == []
    assert [turn.plan for turn in turns if not turn.plan_rule_kept] == []


@pytest.mark.parametrize("played", ["smooth", "slipped", "faulty"])
def test_nothing_is_used_that_was_not_seen(played: str, request: pytest.FixtureRequest) -> None:
    rollouts: list[Rollout] = request.getfixturevalue(played)
    assert {call.name for rollout in rollouts for call in rollout.episode.calls}
    assert {ungrounded(rollout.episode) for rollout in rollouts} == {""}


def test_without_slips_and_faults_there_is_nothing_to_recover_from(units: list[Unit], smooth: list[Rollout]) -> None:
    for (task, _), rollout in zip(units, smooth, strict=True):
        assert (recoveries(rollout.episode, task), mistakes(rollout.episode)) == ([], [])


def test_independent_calls_go_out_in_one_turn(units: list[Unit], smooth: list[Rollout]) -> None:
    wide = [each.episode for (task, _), each in zip(units, smooth, strict=True) if task.shape == "parallel"]
    assert {tuple(len(turn.calls) for turn in episode.turns if turn.calls) for episode in wide} == {(2,)}


def test_a_request_that_no_tool_serves_gets_the_fixed_answer(units: list[Unit], smooth: list[Rollout]) -> None:
    rest = [each.episode for (task, _), each in zip(units, smooth, strict=True) if task.shape == "unsolvable"]
    assert {(episode.answer, len(episode.calls)) for episode in rest} == {(NO_TOOL_ANSWER, 0)}
    assert {len(episode.searches) > 0 for episode in rest} == {True}


def test_a_request_that_needs_no_tool_is_answered_at_once(units: list[Unit], smooth: list[Rollout]) -> None:
    known = [each.episode for (task, _), each in zip(units, smooth, strict=True) if task.shape == "no-tool"]
    assert {tuple(turn.family for turn in episode.turns) for episode in known} == {("answer",)}


@pytest.mark.parametrize("kind", get_args(Slip))
def test_a_slip_is_mended_in_the_same_episode(kind: Slip, units: list[Unit], slipped: list[Rollout]) -> None:
    found = with_slip(kind, units, slipped)
    assert all(is_solved(task, rollout.episode) for task, rollout in found)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("forgotten", {"search again", "plan revised"}),
        ("wrong tool", {"other tool"}),
        ("left out", {"corrected call"}),
        ("short plan", {"plan restarted"}),
    ],
)
def test_a_slip_shows_its_recovery(kind: Slip, shown: set[Recovery], units: list[Unit], slipped: list[Rollout]) -> None:
    for task, rollout in with_slip(kind, units, slipped):
        assert shown <= {*recoveries(rollout.episode, task)}


def test_a_vague_search_that_misses_is_made_again(units: list[Unit], slipped: list[Rollout]) -> None:
    missed = 0
    for task, rollout in with_slip("vague", units, slipped):
        first = rollout.episode.turns[0].searches
        if task.calls and not {*task.targets} <= {name for search in first for name in search.hits}:
            missed += 1
            assert "search again" in recoveries(rollout.episode, task)
    assert missed


@pytest.mark.parametrize("kind", get_args(Slip))
def test_the_turn_of_a_slip_is_a_mistake(kind: Slip, units: list[Unit], slipped: list[Rollout]) -> None:
    for _, rollout in with_slip(kind, units, slipped):
        places = mistakes(rollout.episode)
        if kind == "vague" and not places:  # it found what was needed all the same
            assert rollout.episode.turns[1].family != "search"
            continue
        [place] = places
        message = rollout.conversation.messages[place]
        wrong = next(turn for turn in rollout.episode.turns if any(note.role == "slip" for note in turn.notes))
        assert (message["role"], message["content"]) == ("assistant", wrong.text)
        assert wrong.family == ("search" if kind in ("vague", "forgotten") else "call")
        if kind == "left out":
            assert "InvalidRequestError" in {call.error.type for call in wrong.calls if call.error}


def test_a_forgotten_slot_joins_the_plan(units: list[Unit], slipped: list[Rollout]) -> None:
    for task, rollout in with_slip("forgotten", units, slipped):
        plans = [turn.plan for turn in rollout.episode.turns if turn.family == "search" and turn.plan]
        slots = [plan.body["capacity_slots"] for plan in plans if plan.body]
        assert [len(each) for each in slots] == [len(slot_labels(task)) - 1, len(slot_labels(task))]


def slips(rollout: Rollout) -> bool:
    return any(note.role == "slip" for turn in rollout.episode.turns for note in turn.notes)


def test_plain_thoughts_depend_on_what_was_seen_alone(stage: Stage, units: list[Unit], smooth: list[Rollout]) -> None:
    """Varied ones differ between attempts at one task; what is searched, called and answered is the same in both."""
    plain = stage.play(units, plain=True)
    for varied, each in zip(smooth, plain, strict=True):
        assert [turn.events for turn in varied.episode.turns] == [turn.events for turn in each.episode.turns]
    courses = {(task.task_id, len(each.episode.turns)) for (task, _), each in zip(units, plain, strict=True)}
    assert distinct_thoughts(units, plain) == len(courses) < distinct_thoughts(units, smooth)


def distinct_thoughts(units: Sequence[Unit], rollouts: Sequence[Rollout]) -> int:
    """How many different sequences of thoughts there are, counted task by task."""
    thoughts = {
        (task.task_id, *(turn.think for turn in each.episode.turns))
        for (task, _), each in zip(units, rollouts, strict=True)
    }
    return len(thoughts)


def test_imperfect_is_the_share_of_episodes_with_a_slip(stage: Stage) -> None:
    task = next(task for task in stage.tasks if task.shape == "parallel")
    played = stage.play([(task, seed) for seed in range(120)], imperfect=0.5)
    assert 40 <= sum(map(slips, played)) <= 80


def test_a_fault_that_may_pass_is_tried_again(units: list[Unit], faulty: list[Rollout]) -> None:
    hit = 0
    for (task, _), rollout in zip(units, faulty, strict=True):
        faults = {call.error.type for call in rollout.episode.calls if call.error}
        hit += bool(faults)
        assert faults <= RETRYABLE
        assert is_solved(task, rollout.episode)
        assert ("fault retried" in recoveries(rollout.episode, task)) == bool(faults)
    assert hit


def test_a_call_that_never_works_is_given_up(stage: Stage) -> None:
    units = [(task, 0) for task in stage.tasks if task.calls]
    for (task, _), rollout in zip(units, stage.play(units, fault_rate=1.0), strict=True):
        episode = rollout.episode
        tries = {(call.name, str(call.arguments)) for call in episode.calls}
        assert (episode.end, is_solved(task, episode)) in {("answer", False), ("error", False)}
        assert len(episode.calls) <= 4 * len(tries)


@pytest.fixture(scope="module")
def hasty(stage: Stage) -> list[tuple[Task, Episode]]:
    """Episodes of one task whose first answer was sent back."""
    task = next(task for task in stage.tasks if task.shape == "parallel" and len(task.atoms) > 1)
    played = [rollout.episode for rollout in stage.play([(task, seed) for seed in range(60)])]
    return [
        (task, episode)
        for episode in played
        if any(not verdict["accept"] for turn in episode.turns for verdict in said(turn, "critic"))
    ]


def test_some_first_answers_are_hasty(hasty: list[tuple[Task, Episode]]) -> None:
    assert 1 <= len(hasty) <= 20


def test_a_hasty_answer_is_sent_back_and_then_whole(hasty: list[tuple[Task, Episode]]) -> None:
    for task, episode in hasty:
        last = episode.turns[-1]
        drafts = [draft["answer"] for draft in said(last, "executor")]
        refusal, agreement = said(last, "critic")
        assert (refusal["accept"], agreement["accept"]) == (False, True)
        assert refusal["reason"]
        assert drafts[1] == episode.answer
        assert drafts[1].startswith(drafts[0])
        assert len(drafts[0]) < len(drafts[1])
        assert is_solved(task, episode)
        assert mistakes(episode) == []


def test_what_every_role_said_stays_beside_the_turn(units: list[Unit], slipped: list[Rollout]) -> None:
    for (task, _), rollout in zip(units, slipped, strict=True):
        episode = rollout.episode
        roles = {note.role for turn in episode.turns for note in turn.notes} - {"slip"}
        assert roles == {"planner", "critic", "writer"} | (
            {"explorer", "executor"} if task.shape != "no-tool" else set()
        )
        assert all(said(turn, "writer") == [{"think": turn.think}] for turn in episode.turns)
        assert Episode.model_validate_json(episode.model_dump_json()) == episode


@pytest.mark.parametrize("group", [1, 3, 64])
def test_the_same_task_and_seed_leave_the_same_bytes_in_any_group(group: int, stage: Stage, units: list[Unit]) -> None:
    some = units[::5]
    alone = [stage.play([unit], imperfect=0.7, fault_rate=0.1)[0].episode.model_dump_json() for unit in some]
    together = stage.play(some, imperfect=0.7, group=group, fault_rate=0.1)
    assert [rollout.episode.model_dump_json() for rollout in together] == alone


def test_words_vary_with_the_seed(units: list[Unit], smooth: list[Rollout]) -> None:
    first = [each.episode.turns[0].think for (task, _), each in zip(units, smooth, strict=True) if task.calls]
    assert len(set(first)) > len(first) / 4


def test_an_answer_states_every_fact_in_the_digits_of_the_result(units: list[Unit], smooth: list[Rollout]) -> None:
    for (task, _), rollout in zip(units, smooth, strict=True):
        results = {
            ref.id: {"result": call.result}
            for ref in task.calls
            for call in rollout.episode.calls
            if (call.name, call.arguments) == (ref.tool, ref.arguments)
        }
        answer = rollout.episode.answer or ""
        assert [value for _, value in facts(task, results) if value not in answer] == []


# What a reference says


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.total", 12.5),
        ("items.1.id", "b"),
        ("open", False),
        ("items", None),
        ("items.2.id", None),
        ("items.first.id", None),
        ("order.total.cents", None),
        ("nothing", None),
    ],
)
def test_a_path_leads_to_a_scalar_of_the_result_or_nowhere(path: str, value: Any) -> None:
    result = {"order": {"total": 12.5}, "items": [{"id": "a"}, {"id": "b"}], "open": False, "nothing": None}
    assert read({"name": "x", "result": result}, path) == value
    assert read(None, path) is None


def test_only_a_response_without_an_error_went_well() -> None:
    responses: list[Any] = [{"result": {}}, {"result": [1]}, {"result": {"error": {}}}, None]
    assert [went_well(response) for response in responses] == [True, True, False, False]


def test_parts_are_listed_as_in_a_sentence() -> None:
    assert [listed("abc"[:number]) for number in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def test_a_plan_may_send_a_call_to_another_tool() -> None:
    first, second, third = (ReferenceCall(id=key, tool=tool, arguments={}) for key, tool in ("ax", "bx", "cy"))
    edges = [("a", "c"), ("b", "c")]
    assert plan_of([[first, second], [third]], edges, lambda call: {"a": "z"}.get(call.id, call.tool)) == {
        "available_tools": ["z", "x", "y"],
        "execution_flow": [{"step": 1, "parallel": ["z", "x"]}, {"step": 2, "parallel": ["y"]}],
        "dependencies": [{"from": ["z", "x"], "to": "y"}],
    }
    assert plan_of([[first, second], [third]], edges)["dependencies"] == [{"from": ["x#1", "x#2"], "to": "y"}]


def test_a_plan_of_what_is_left_forgets_what_is_done() -> None:
    last = ReferenceCall(id="c", tool="y", arguments={})
    assert plan_of([[last]], [("a", "c"), ("b", "c")])["dependencies"] == []


# Wording


@pytest.mark.parametrize("form", _FORMS)
def test_wording_leaves_no_mark_of_its_template(form: str) -> None:
    names = {name for template in _FORMS[form] for name in re.findall(r"{(\w+)}", template)}
    for seed in range(60):
        text = word(form, rng(seed, form), **dict.fromkeys(names, "x"))
        assert not re.search(r"[\[\]{}|]", text)
        assert text == " ".join(text.split())
        assert not re.search(r" [,.;:]|[.;:,][,;:]", text)


@pytest.mark.parametrize(
    "form", [form for form in _FORMS if form not in ("vague", "reworded", "accepted", "refusal_missing")]
)
def test_a_thought_begins_with_a_capital_or_with_a_value(form: str) -> None:
    names = {name for template in _FORMS[form] for name in re.findall(r"{(\w+)}", template)}
    for seed in range(60):
        text = word(form, rng(seed, form), **dict.fromkeys(names, "a_value"))
        assert text[0].isupper() or text.startswith("a_value")
        assert text[-1] in ".?!" or text.endswith("a_value")
