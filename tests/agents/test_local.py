import asyncio
from pathlib import Path

import pytest
import torch

from paraagent.agents.language_model import LanguageModel, load_language_model
from paraagent.agents.local import LocalPolicy
from paraagent.agents.policy import Conversation, write_turns
from paraagent.config import EnvConfig
from paraagent.task import Task

CONFIG = EnvConfig(max_new_tokens=12, max_context_tokens=400)


def _task(name: str) -> Task:
    return Task(
        task_id=name,
        request="r",
        shape="single",
        width=1,
        reach="service",
        split="train",
        seed=0,
        slots=(),
        calls=(),
        atoms=(),
    )


def _conversation(name: str, text: str) -> Conversation:
    return Conversation(
        _task(name), 0, [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": text}]
    )


@pytest.fixture(scope="module")
def exact(tiny_model_dir: Path) -> LanguageModel:
    """In float32, where the order of additions does not decide an argmax."""
    return load_language_model(tiny_model_dir, training=True)


@pytest.mark.parametrize(("rows", "tokens"), [(1, 5), (4, 1), (3, 20)])
def test_a_model_for_sampling_computes_what_one_for_training_does(tiny_model_dir: Path, rows: int, tokens: int) -> None:
    sampling = load_language_model(tiny_model_dir).model.float()
    plain = load_language_model(tiny_model_dir, training=True).model
    plain.load_state_dict(sampling.state_dict())
    ids = torch.arange(rows * tokens).reshape(rows, tokens)
    with torch.inference_mode():
        torch.testing.assert_close(sampling(ids).logits, plain(ids).logits)


def _greedy(loaded: LanguageModel, prompt: list[int], budget: int, stop: set[int]) -> list[int]:
    """What the model writes on its own, reading everything anew for every token."""
    ids = list(prompt)
    with torch.inference_mode():
        while len(ids) < len(prompt) + budget and (len(ids) == len(prompt) or ids[-1] not in stop):
            ids.append(int(loaded.model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def _own(conversation: Conversation) -> list[int]:
    return [token for token, own in zip(conversation.token_ids, conversation.model_mask, strict=True) if own]


def test_turns_of_any_length_are_written_as_each_would_be_alone(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft")
    conversations = [
        _conversation(name, f"request {name * length}") for name, length in zip("abcd", (1, 40, 7, 90), strict=True)
    ]
    for _ in range(3):
        prompts = [[*each.token_ids, *policy.transcriber.pending(each).ids] for each in conversations]
        before = [len(_own(each)) for each in conversations]
        said = asyncio.run(write_turns(policy, conversations))
        for conversation, prompt, start, completion in zip(conversations, prompts, before, said, strict=True):
            written = _own(conversation)[start:]
            assert written == _greedy(exact, prompt, CONFIG.max_new_tokens, policy.stop)
            assert conversation.token_ids == [*prompt, *written]
            assert policy.transcriber.text(written) == completion.text
            conversation.messages += [
                {"role": "assistant", "content": completion.text},
                {"role": "user", "content": f"seen {completion.text}"},
            ]
        conversations = [*conversations[1:], _conversation("e", "another")]


def test_a_turn_that_ends_early_waits_for_no_other(exact: LanguageModel) -> None:
    def make() -> tuple[LocalPolicy, Conversation, Conversation]:
        policy = LocalPolicy(exact, CONFIG, name="rl", temperature=1.0, seed=3)
        policy.stop = set()
        return policy, _conversation("a", "request a"), _conversation("b", "another request")

    alone = []
    for place in (0, 1):
        policy, *both = make()
        asyncio.run(write_turns(policy, [both[place]]))
        alone.append(_own(both[place]))
    policy, short, long = make()
    policy.stop = {next(token for token in alone[0] if token not in alone[1])}
    first = asyncio.run(policy.act([short, long]))
    assert first[0] is not None
    assert first[1] is None
    assert long.token_ids == [], "what is still being written is not in the conversation"
    while asyncio.run(policy.act([_conversation("c", "request c"), long]))[1] is None:
        pass
    assert _own(long) == alone[1]


def test_the_models_tokens_stay_verbatim_and_masked(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft", temperature=1.0, seed=3)
    conversation = _conversation("a", "hello")
    [completion] = asyncio.run(write_turns(policy, [conversation]))
    own = _own(conversation)
    assert len(own) == completion.completion_tokens
    assert policy.transcriber.text(own) == completion.text
    before = list(conversation.token_ids)
    conversation.messages += [
        {"role": "assistant", "content": completion.text},
        {"role": "user", "content": "observation"},
    ]
    asyncio.run(write_turns(policy, [conversation]))
    assert conversation.token_ids[: len(before)] == before


def _sampled(policy: LocalPolicy, *names: str) -> list[str]:
    conversations = [_conversation(name, f"request {name}") for name in names]
    return [completion.text for completion in asyncio.run(write_turns(policy, conversations))]


def test_samples_depend_on_the_seed_and_the_conversation_alone(exact: LanguageModel) -> None:
    def sampled(seed: int, *names: str) -> list[str]:
        return _sampled(LocalPolicy(exact, CONFIG, name="rl", temperature=1.0, seed=seed), *names)

    first = sampled(1, "a", "b", "c")
    torch.rand(3)
    assert sampled(1, "a", "b", "c") == first
    assert sampled(1, "c", "a") == [first[2], first[0]]
    assert sampled(2, "a", "b", "c") != first


def test_sampling_leaves_the_global_random_state_alone(exact: LanguageModel) -> None:
    before = torch.get_rng_state()
    _sampled(LocalPolicy(exact, CONFIG, name="rl", temperature=1.0), "a")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_full_context_is_exhausted_and_the_others_go_on(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft")
    full, small = _conversation("a", "word " * 500), _conversation("b", "hi")
    completions = asyncio.run(write_turns(policy, [full, small]))
    assert [completion.exhausted for completion in completions] == [True, False]
    assert full.token_ids == []
    assert 0 < completions[1].completion_tokens <= CONFIG.max_new_tokens
