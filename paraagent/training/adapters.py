"""Low-rank adapters (LoRA): a few small matrices are trained in place of the weights, and added to them at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def with_adapters(model: Any, rank: int, alpha: int, frozen_layers: int, seed: int) -> Any:
    """The model with adapters on every linear layer above the lowest `frozen_layers`, and nothing else to train."""
    from peft import LoraConfig, get_peft_model
    from transformers import set_seed

    set_seed(seed % 2**32)
    below = "|".join(map(str, range(frozen_layers)))
    settings = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        target_modules="all-linear",
        exclude_modules=rf".*\.layers\.({below})\..*" if below else None,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, settings)


def plain_weights(model: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """A model without its adapters, and the weights by name that it has with them; the model is left as it is."""
    from peft import PeftModel
    from peft.tuners.lora import Linear

    if not isinstance(model, PeftModel):
        return model, model.state_dict()
    base = model.get_base_model()
    weights = {
        name.replace(".base_layer", ""): tensor for name, tensor in base.state_dict().items() if "lora_" not in name
    }
    for name, layer in base.named_modules():
        if isinstance(layer, Linear):
            for adapter in layer.active_adapters:
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + layer.get_delta_weight(adapter)
    return base, weights


def save_adapters(model: Any, out: Path) -> None:
    """Write the adapters alone to `out`, where there are some."""
    from peft import PeftModel

    if isinstance(model, PeftModel):
        for config in model.peft_config.values():
            config.base_model_name_or_path = None  # else the folder of this machine
        model.save_pretrained(str(out))
        (out / "README.md").unlink(missing_ok=True)
