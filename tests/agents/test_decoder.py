"""The decoder: rows of any length, of any turn, in any place give the logits of one text read on its own."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from paraagent.agents.decoder import Decoder
from paraagent.errors import RunError

VOCABULARY = 300


@pytest.fixture(scope="module", params=[(4, 4), (4, 2), (6, 1)], ids=["all heads", "shared keys", "one key"])
def model(request: pytest.FixtureRequest) -> Any:
    heads, shared = request.param
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16 * heads,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        max_position_embeddings=2048,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture
def read(model: Any) -> Iterator[list[int]]:
    """Tokens of each forward pass."""
    sizes: list[int] = []
    hook = model.get_input_embeddings().register_forward_hook(lambda _, args, __: sizes.append(args[0].numel()))
    yield sizes
    hook.remove()


def _text(chance: Random, size: int) -> list[int]:
    return [chance.randrange(VOCABULARY) for _ in range(size)]


@torch.inference_mode()
def _alone(model: Any, ids: list[int]) -> torch.Tensor:
    logits: torch.Tensor = model(torch.tensor([ids])).logits[0, -1]
    return logits


def _close(model: Any, logits: torch.Tensor, texts: list[list[int]]) -> None:
    for row, ids in zip(logits, texts, strict=True):
        torch.testing.assert_close(row, _alone(model, ids), atol=1e-5, rtol=1e-4)


def test_rows_come_go_and_grow_and_read_what_each_would_read_alone(model: Any) -> None:
    chance, decoder = Random(1), Decoder(model)
    system = _text(chance, 50)
    texts: dict[str, list[int]] = {}
    for turn in range(12):
        for name in chance.sample(sorted(texts), min(len(texts), chance.randrange(3))):
            del texts[name]
        added = [f"{turn}-{number}" for number in range(chance.randrange(1, 4))]
        goes_on = chance.sample(sorted(texts), min(len(texts), 1))
        texts |= {name: [*system, *_text(chance, chance.choice((1, 9, 40, 200)))] for name in added}
        for name in goes_on:
            texts[name] = [*texts[name], *_text(chance, chance.choice((2, 30, 150)))]
        decoder.seat(list(texts))
        begun = [*added, *goes_on]
        _close(model, decoder.begin({name: texts[name] for name in begun}), [texts[name] for name in begun])
        for _ in range(3):
            tokens = {name: chance.randrange(VOCABULARY) for name in texts}
            logits = decoder.step([tokens[name] for name in decoder.names])
            texts = {name: [*ids, tokens[name]] for name, ids in texts.items()}
            _close(model, logits, [texts[name] for name in decoder.names])


def test_rows_that_begin_together_keep_their_places(model: Any) -> None:
    chance, decoder = Random(3), Decoder(model)
    texts = {name: _text(chance, size) for name, size in (("a", 27), ("b", 28), ("c", 90), ("d", 29))}
    decoder.seat(list(texts))
    _close(model, decoder.begin(texts), list(texts.values()))
    _close(model, decoder.step([7] * 4), [[*texts[name], 7] for name in decoder.names])


def test_what_a_row_or_another_holds_is_not_read_again(model: Any, read: list[int]) -> None:
    chance, decoder = Random(2), Decoder(model)
    system = _text(chance, 400)
    first, second = [*system, *_text(chance, 20)], [*system, *_text(chance, 25)]
    decoder.seat(["a", "b"])
    decoder.begin({"a": first, "b": second})
    assert sum(read) < 400 + 3 * 32, "the common beginning is read once"
    decoder.step([1, 2])
    read.clear()
    later = [*first, 1, *_text(chance, 10)]
    decoder.begin({"a": later})
    assert sum(read) <= 32
    decoder.seat(["b", "c"])
    read.clear()
    third = [*system, *_text(chance, 5)]
    _close(model, decoder.begin({"c": third}), [third])
    assert sum(read) <= 32 + len(third), "and once more to be compared with"


def test_a_prompt_that_begins_otherwise_is_read_anew(model: Any) -> None:
    decoder = Decoder(model)
    decoder.seat(["a"])
    decoder.begin({"a": [5, 6, 7, 8]})
    _close(model, decoder.begin({"a": [5, 6, 9, 8, 7]}), [[5, 6, 9, 8, 7]])
    _close(model, decoder.begin({"a": [5, 6]}), [[5, 6]])


def test_weights_that_changed_are_seen_after_forgetting(model: Any) -> None:
    decoder = Decoder(model)
    decoder.seat(["a"])
    decoder.begin({"a": [5, 6, 7, 8]})
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight.mul_(1.5)
    decoder.forget()
    decoder.seat(["a"])
    _close(model, decoder.begin({"a": [5, 6, 7, 8]}), [[5, 6, 7, 8]])


def test_a_model_whose_attention_slides_is_refused_with_a_way_out() -> None:
    config = MistralConfig(
        vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8,
    )  # fmt: skip
    with pytest.raises(RunError, match=r"sliding_attention.*openai:MODEL"):
        Decoder(MistralForCausalLM(config))
