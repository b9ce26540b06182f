import asyncio
import random
from pathlib import Path

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from paraagent.agents.language_model import LanguageModel, load_language_model
from paraagent.agents.local import LocalPolicy
from paraagent.agents.policy import Conversation
from paraagent.agents.prefix import Columns
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


def test_columns_hold_what_a_concatenating_layer_holds_also_where_rows_are_chosen_anew() -> None:
    ours, plain = Columns(), DynamicLayer()
    chance = torch.Generator().manual_seed(0)
    for width in (300, 1, 1, 300, 1):
        new = [torch.randn(3, 2, width, 4, generator=chance) for _ in range(2)]
        held = ours.update(*new)
        torch.testing.assert_close(held, plain.update(*new), rtol=0, atol=0)
        for layer in (ours, plain):
            layer.reorder_cache(torch.tensor([2, 0, 0]))


def _reference(loaded: LanguageModel, prompt: list[int], budget: int) -> list[int]:
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(budget):
            ids.append(int(loaded.model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def _policy(loaded: LanguageModel, stop: int) -> LocalPolicy:
    policy = LocalPolicy(loaded, CONFIG, name="sft")
    policy.stop = [stop]
    return policy


def test_ragged_rows_decode_like_one_row_alone(exact: LanguageModel) -> None:
    chance = random.Random(0)
    prompts = [[chance.randrange(300) for _ in range(size)] for size in (43, 70, 41, 51)]
    budgets = [9, 2, 14, 5]
    written = _policy(exact, stop=299)._sample(prompts, budgets, seed=0)
    for prompt, budget, ids in zip(prompts, budgets, written, strict=True):
        alone = _reference(exact, prompt, budget)
        end = alone.index(299) + 1 if 299 in alone else budget
        assert ids == alone[:end]


def test_a_turn_reads_only_what_is_new_and_writes_what_a_fresh_reader_writes(exact: LanguageModel) -> None:
    chance = random.Random(1)

    def some(size: int) -> list[int]:
        return [chance.randrange(298) for _ in range(size)]

    policy = _policy(exact, stop=299)
    prompts = [some(size) for size in (43, 70, 41, 51)]
    budgets = [9, 2, 14, 5]
    read = []
    hook = exact.model.get_input_embeddings().register_forward_hook(lambda _, args, __: read.append(args[0].shape))
    try:
        for kept in ([0, 1, 2, 3], [3, 0, 2], [2, 1], [1]):
            prompts, budgets = [prompts[row] for row in kept], [budgets[row] for row in kept]
            read.clear()
            written = policy._sample(prompts, budgets, seed=0)
            first = read[0]
            for prompt, budget, ids in zip(prompts, budgets, written, strict=True):
                assert ids == _reference(exact, prompt, budget)[: len(ids)]
                assert len(ids) == budget or ids[-1] == 299
            new = [some(size) for size in (6, 30, 1, 12)][: len(prompts)]
            assert first[1] <= (70 if len(kept) == 4 else 31), "a later turn reads the observation and one own token"
            prompts = [prompt + ids + more for prompt, ids, more in zip(prompts, written, new, strict=True)]
    finally:
        hook.remove()


def test_a_prompt_that_begins_otherwise_is_read_anew(exact: LanguageModel) -> None:
    policy = _policy(exact, stop=299)
    [first] = policy._sample([[5, 6, 7, 8]], [6], seed=0)
    changed = [5, 6, 9, 8, *first, 11]
    assert policy._sample([changed], [6], seed=0) == [_reference(exact, changed, 6)]


def test_a_stop_token_ends_its_row_and_no_other(exact: LanguageModel) -> None:
    prompts = [[5, 6, 7], [50, 60, 70, 80]]
    free = [_reference(exact, prompt, 8) for prompt in prompts]
    stop = next(token for token in free[0] if token not in free[1])
    stopped = _policy(exact, stop)._sample(prompts, [8, 8], seed=0)
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


def test_samples_depend_on_the_seed_and_the_group_alone(exact: LanguageModel) -> None:
    def sampled(seed: int, *names: str) -> list[str]:
        return _sampled(LocalPolicy(exact, CONFIG, name="rl", temperature=1.0, seed=seed), *names)

    first = sampled(1, "a", "b", "c")
    torch.rand(3)
    assert sampled(1, "a", "b", "c") == first
    assert sampled(2, "a", "b", "c") != first


def test_sampling_leaves_the_global_random_state_alone(exact: LanguageModel) -> None:
    before = torch.get_rng_state()
    _sampled(LocalPolicy(exact, CONFIG, name="rl", temperature=1.0), "a")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_full_context_is_exhausted_and_the_others_go_on(exact: LanguageModel) -> None:
    policy = LocalPolicy(exact, CONFIG, name="sft")
    full, small = _conversation("a", "word " * 500), _conversation("b", "hi")
    completions = asyncio.run(policy.act([full, small]))
    assert [completion.exhausted for completion in completions] == [True, False]
    assert full.token_ids == []
    assert 0 < completions[1].completion_tokens <= CONFIG.max_new_tokens
