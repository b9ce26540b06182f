"""Parameters and memory by arithmetic, held against real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from paraagent.errors import RunError
from paraagent.training.architecture import QWEN3_4B, SMOLLM2_135M, Architecture, architecture
from paraagent.training.footprint import FULL, HALF, cached_token, checkpoint, playing, saved_token, tuning

SMALL = {
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
}


def _model(config: dict[str, Any], device: str = "cpu") -> Any:
    settings = dict(config)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(settings.pop("model_type"), **settings))


def _count(model: Any, trained: bool = False) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "llama", "tie_word_embeddings": True},
        {"model_type": "llama", "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
        {"model_type": "llama", "num_key_value_heads": None, "head_dim": 48},
        {"model_type": "mistral", "tie_word_embeddings": False},
        {"model_type": "qwen2", "tie_word_embeddings": True},
        {"model_type": "qwen3", "head_dim": 64, "tie_word_embeddings": True},
        {"model_type": "qwen3", "tie_word_embeddings": False, "attention_bias": True},
        QWEN3_4B,
        SMOLLM2_135M,
    ],
)
def test_parameters_are_those_of_the_real_model(config: dict[str, Any], tmp_path: Path) -> None:
    model = _model({**SMALL, **config}, "meta")
    assert architecture({**SMALL, **config}).parameters == _count(model)
    model.config.save_pretrained(tmp_path)
    assert architecture(orjson.loads((tmp_path / "config.json").read_bytes())).parameters == _count(model)


def test_qwen3_4b_has_as_many_parameters_as_it_has() -> None:
    model = architecture(QWEN3_4B)
    assert model.parameters == 4_022_468_096
    assert tuning(model, 0).total == pytest.approx(72.4e9, rel=1e-3)


@pytest.mark.parametrize("tied", [True, False])
def test_frozen_layers_train_what_the_arithmetic_says(tied: bool) -> None:
    config = {**SMALL, "model_type": "qwen3", "tie_word_embeddings": tied}
    model = _model(config, "meta")
    model.get_input_embeddings().weight.requires_grad_(False)
    for layer in model.model.layers[:2]:
        layer.requires_grad_(False)
    assert architecture(config).trained(frozen_layers=2) == _count(model, trained=True)


@pytest.mark.parametrize("frozen", [0, 2])
def test_adapters_train_what_the_arithmetic_says(frozen: int) -> None:
    from peft import LoraConfig, get_peft_model

    config = {**SMALL, "model_type": "qwen3", "tie_word_embeddings": True}
    linear = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    adapters = LoraConfig(r=5, target_modules=linear, layers_to_transform=list(range(frozen, 3)), task_type="CAUSAL_LM")
    model = get_peft_model(_model(config), adapters)
    assert architecture(config).trained(frozen, lora_rank=5) == _count(model, trained=True)


def test_gradients_and_optimizer_take_what_a_real_step_leaves_behind() -> None:
    config = {**SMALL, "model_type": "llama", "tie_word_embeddings": True}
    model = _model(config)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 4, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    state = [value for entry in optimizer.state.values() for value in entry.values() if value.dim()]
    expected = tuning(architecture(config), 4)
    assert sum(value.nbytes for value in state) == expected.optimizer
    assert sum(p.grad.nbytes for p in model.parameters()) == expected.gradients


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
@pytest.mark.parametrize("lora_rank", [0, 4])
def test_activations_take_what_a_real_forward_pass_keeps(kind: str, lora_rank: int) -> None:
    from peft import LoraConfig, get_peft_model

    tokens, config = 448, {**SMALL, "model_type": kind, "tie_word_embeddings": True}
    model, expected = _model(config), architecture(config)
    run = model
    if lora_rank:
        adapters = LoraConfig(r=lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")
        run = get_peft_model(model, adapters)
    activations, copies = _kept(run, model, tokens)
    arithmetic = tuning(expected, tokens, lora_rank=lora_rank)
    assert activations <= 1.06 * arithmetic.activations
    assert activations >= (0.8 if lora_rank else 1.0) * arithmetic.activations
    held = arithmetic.weights - FULL * _count(run)
    # Nothing below the lowest adapter needs a gradient: its three first matrices are not kept.
    assert (0.85 if lora_rank else 0.95) * held <= copies <= held


def _kept(run: Any, model: Any, tokens: int) -> tuple[int, int]:
    """Bytes that one pass under autocast keeps for its backward pass: of the tokens, and of weights in bfloat16."""
    from paraagent.training.logits import predicting

    own = {parameter.untyped_storage().data_ptr() for parameter in run.parameters()}
    held: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        held.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    chosen = torch.zeros(1, tokens, dtype=torch.bool)
    chosen[0, -1] = True
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with hooks, torch.autocast("cpu", dtype=torch.bfloat16):
        predicting(model, torch.zeros(1, tokens, dtype=torch.long), chosen)
    found = [tensor for place, tensor in held.items() if place not in own]
    activations = sum(tensor.untyped_storage().nbytes() for tensor in found if tokens in tensor.shape)
    weights = sum(tensor.untyped_storage().nbytes() for tensor in found if tokens not in tensor.shape)
    return activations, weights


def test_the_cache_takes_what_a_real_one_does() -> None:
    config = {**SMALL, "model_type": "qwen3", "head_dim": 64, "tie_word_embeddings": True}
    model = _model(config).to(torch.bfloat16)
    cache = model(torch.zeros(3, 7, dtype=torch.long), use_cache=True).past_key_values
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert held == 3 * 7 * cached_token(architecture(config))
    assert held == playing(architecture(config), 3, 7, 0, False).cache


def test_a_checkpoint_of_a_real_run_is_as_large_as_said(tmp_path: Path) -> None:
    config = {**SMALL, "model_type": "llama", "tie_word_embeddings": True}
    model = _model(config)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.zeros(1, 4, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    model.save_pretrained(tmp_path)
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size == pytest.approx(checkpoint(architecture(config)), rel=0.01)


def test_frozen_layers_save_gradients_optimizer_and_activations() -> None:
    model = architecture(QWEN3_4B)
    whole, upper = tuning(model, 1000), tuning(model, 1000, frozen_layers=27)
    assert upper.activations * 4 == whole.activations == 1000 * 36 * saved_token(model)
    assert upper.gradients == 4 * (9 * model.layer + model.hidden)
    assert whole.weights - upper.weights == HALF * 27 * model.layer


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({**SMALL, "model_type": "gpt2"}, "models of the type gpt2 are not counted here, only llama, mistral, qwen2"),
        ({"model_type": "llama", "hidden_size": 8}, "its config.json has no num_attention_heads"),
        ({**SMALL, "model_type": "llama", "vocab_size": "many"}, "its config.json has no vocab_size"),
    ],
)
def test_what_is_not_counted_is_said(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        architecture(config)


def test_widths_follow_from_the_heads() -> None:
    model: Architecture = architecture({**SMALL, "model_type": "qwen3", "head_dim": 64})
    assert (model.queries, model.keys) == (512, 128)
