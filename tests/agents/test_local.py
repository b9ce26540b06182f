import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from paraagent.agents.decoding import Decoder
from paraagent.agents.language_model import LanguageModel, load_language_model
from paraagent.agents.local import LocalPolicy
from paraagent.agents.policy import Conversation
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


def _reference(loaded: LanguageModel, prompt: list[int], budget: int) -> list[int]:
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(budget):
            ids.append(int(loaded.model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def test_ragged_rows_and_reused_beginnings_decode_like_one_row_from_scratch(exact: LanguageModel) -> None:
    decoder = Decoder(exact.model, frozenset({-1}))
    chance = random.Random(0)
    shared = [chance.randrange(300) for _ in range(40)]
    prompts = [[*shared, *(chance.randrange(300) for _ in range(size))] for size in (3, 30, 1, 11)]
    budgets = [9, 2, 14, 5]
    first = decoder.generate(prompts, budgets, [chance] * 4, 0.0)
    assert first == [_reference(exact, prompt, budget) for prompt, budget in zip(prompts, budgets, strict=True)]
    longer = [[*prompt, *ids, 7, 8, 9] for prompt, ids in zip(prompts, first, strict=True)][::-1][:3]
    second = decoder.generate(longer, [6] * 3, [chance] * 3, 0.0)
    assert second == [_reference(exact, prompt, 6) for prompt in longer]


def test_a_stop_token_ends_its_row_and_no_other(exact: LanguageModel) -> None:
    prompts = [[5, 6, 7], [50, 60, 70, 80]]
    free = Decoder(exact.model, frozenset({-1})).generate(prompts, [8, 8], [random.Random(0)] * 2, 0.0)
    stop = next(token for token in free[0] if token not in free[1])
    stopped = Decoder(exact.model, frozenset({stop})).generate(prompts, [8, 8], [random.Random(0)] * 2, 0.0)
    assert stopped[0] == free[0][: free[0].index(stop) + 1]
    assert stopped[1] == free[1]


def test_the_models_tokens_stay_verbatim_and_masked(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft", temperature=1.0, seed=3)
    conversation = _conversation("a", "hello")
    [completion] = asyncio.run(policy.act([conversation]))
    own = [token for token, mine in zip(conversation.token_ids, conversation.model_mask, strict=True) if mine]
    assert len(own) == completion.completion_tokens
    assert policy.transcriber.text(own) == completion.text
    before = list(conversation.token_ids)
    conversation.messages += [
        {"role": "assistant", "content": completion.text},
        {"role": "user", "content": "observation"},
    ]
    asyncio.run(policy.act([conversation]))
    assert conversation.token_ids[: len(before)] == before


def _sampled(policy: LocalPolicy, *names: str) -> list[str]:
    conversations = [_conversation(name, f"request {name}") for name in names]
    return [completion.text for completion in asyncio.run(policy.act(conversations))]


def test_samples_depend_on_seed_and_task_not_on_the_company(exact: LanguageModel) -> None:
    def sampled(seed: int, *names: str) -> list[str]:
        return _sampled(LocalPolicy(exact, CONFIG, name="rl", temperature=1.0, seed=seed), *names)

    assert sampled(1, "a", "b", "c") == sampled(1, "a", "b", "c")
    assert sampled(1, "a", "b", "c")[1] == sampled(1, "b")[0]
    assert sampled(1, "a")[0] != sampled(2, "a")[0]


def test_a_new_group_does_not_depend_on_what_was_decoded_before(tiny_model_dir: Path) -> None:
    policy = LocalPolicy(tiny_model_dir, CONFIG, name="sft")
    fresh = _sampled(policy, "a", "b")
    _sampled(policy, "c")
    assert _sampled(policy, "a", "b") == fresh


def test_a_full_context_is_exhausted_and_the_others_go_on(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft")
    full, small = _conversation("a", "word " * 500), _conversation("b", "hi")
    completions = asyncio.run(policy.act([full, small]))
    assert [completion.exhausted for completion in completions] == [True, False]
    assert full.token_ids == []
    assert 0 < completions[1].completion_tokens <= CONFIG.max_new_tokens


def test_a_failed_batch_leaves_nothing_behind_in_the_buffer(exact: LanguageModel, monkeypatch: Any) -> None:
    decoder = Decoder(exact.model, frozenset({-1}))
    prompt, chance = list(range(30)), [random.Random(0)]
    right = decoder.generate([prompt], [4], chance, 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("paraagent.agents.decoding._choose", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            decoder.generate([[*prompt[:20], 99]], [4], chance, 0.0)
    assert decoder.generate([prompt], [4], chance, 0.0) == right
