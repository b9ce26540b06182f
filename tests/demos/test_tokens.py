"""200 episodes of all shapes, with slips and faults: what is learned from them is what the model itself would write."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from paraagent.agents.policy import Conversation
from paraagent.agents.script import ScriptedTeam
from paraagent.agents.transcript import Transcriber
from paraagent.config import DemosConfig, RewardConfig
from paraagent.demos.attempts import plan_units, play
from paraagent.task import Task
from paraagent.toolenv.env import ToolEnv

EPISODES = 200


@pytest.fixture(scope="module")
def played(
    tasks: list[Task], made_env: Callable[..., ToolEnv], transcriber: Transcriber, demos_config: DemosConfig
) -> list[list[Any]]:
    train = [task for task in tasks if task.split == "train"]
    units = plan_units(train, -(-EPISODES // len(train)), 1)[:EPISODES]
    team = ScriptedTeam(demos_config.imperfect)
    attempts = play(units, team, 64, made_env, transcriber, DemosConfig(max_tokens=20_000), RewardConfig())
    return [orjson.loads(attempt.row)["messages"] for attempt in attempts]


def test_the_masks_decode_to_exactly_the_models_turns(played: list[list[Any]], transcriber: Transcriber) -> None:
    assert len(played) == EPISODES
    for messages in played:
        tokens = transcriber.render(messages)
        learned = transcriber.tokenizer.decode([label for label in tokens.labels if label >= 0])
        turns = [message["content"] + "<|im_end|>" for message in messages if message["role"] == "assistant"]
        assert learned == "".join(turns)
        assert turns


def test_what_is_tuned_on_is_what_an_episode_holds_token_by_token(
    played: list[list[Any]], transcriber: Transcriber
) -> None:
    for messages in played:
        conversation = Conversation(Task.open("t", 0), 0, [])
        for message in messages:
            if message["role"] == "assistant":  # as `LocalPolicy` does, in rollouts and in evaluation
                given = transcriber.pending(conversation)
                written = transcriber.tokenizer.encode(
                    message["content"], add_special_tokens=False, split_special_tokens=True
                )
                conversation.token_ids += [*given.ids, *written, transcriber.end]
                conversation.model_mask += [*given.mask, *[1] * (len(written) + 1)]
            conversation.messages.append(message)
        tuned_on = transcriber.render(messages)
        end = len(conversation.token_ids)
        assert conversation.token_ids == tuned_on.ids[:end]
        assert conversation.model_mask == tuned_on.mask[:end]
        assert tuned_on.ids[end:] == transcriber.newline
