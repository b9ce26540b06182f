from pathlib import Path

import pytest
import torch

from paraagent.agents.language_model import load_language_model
from paraagent.training.logits import predicting


@pytest.mark.parametrize("columns", [5, 64, 70])
def test_logits_are_those_of_the_whole_model_at_the_chosen_tokens(tiny_model_dir: Path, columns: int) -> None:
    model = load_language_model(tiny_model_dir, training=True).model
    generator = torch.Generator().manual_seed(columns)
    ids = torch.randint(3, 300, (2, columns), generator=generator)
    chosen = torch.rand(ids.shape, generator=generator) < 0.4
    chosen[:, 0] = False
    whole = model(ids).logits[:, :-1][chosen[:, 1:]]
    torch.testing.assert_close(predicting(model, ids, chosen), whole, atol=1e-5, rtol=0)


def test_what_pads_the_right_changes_nothing(tiny_model_dir: Path) -> None:
    model = load_language_model(tiny_model_dir, training=True).model
    ids = torch.randint(3, 300, (1, 20), generator=torch.Generator().manual_seed(0))
    chosen = torch.zeros(ids.shape, dtype=torch.bool)
    chosen[:, 10:] = True
    padded = torch.cat([ids, torch.full((1, 9), 7)], 1)
    short, long = predicting(model, ids, chosen), predicting(model, padded, torch.nn.functional.pad(chosen, (0, 9)))
    torch.testing.assert_close(short, long, atol=1e-5, rtol=0)


def test_episodes_in_one_row_do_not_see_each_other(tiny_model_dir: Path) -> None:
    model = load_language_model(tiny_model_dir, training=True).model
    generator = torch.Generator().manual_seed(1)
    episodes = [torch.randint(3, 300, (1, length), generator=generator) for length in (9, 30, 12)]
    chosen = [torch.rand(ids.shape, generator=generator) < 0.5 for ids in episodes]
    for each in chosen:
        each[:, 0] = False
    apart = torch.cat([predicting(model, ids, own) for ids, own in zip(episodes, chosen, strict=True)])
    places = torch.cat([torch.arange(ids.shape[1]) for ids in episodes])[None]
    packed = predicting(model, torch.cat(episodes, 1), torch.cat(chosen, 1), places)
    torch.testing.assert_close(packed, apart, atol=1e-5, rtol=0)
