"""`bench rollout`: a local model writes the turns of episodes, as `LocalPolicy` does and as plain `generate` does.

Both read the same demonstrations and write, for every turn, as many tokens as the demonstration's turn has, so that
speed does not depend on how well the model does. What they write stays in the conversation; what they see next is what
the demonstration saw. Plain means transformers' `generate` on a padded batch: everything is read anew in every turn,
the batch waits for its longest turn, and goes on to the next batch when its last episode has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from paraagent.agents.language_model import LanguageModel, load_language_model
from paraagent.agents.local import LocalPolicy
from paraagent.agents.policy import Conversation
from paraagent.agents.transcript import Tokens, Transcriber
from paraagent.config import EnvConfig
from paraagent.message import Message
from paraagent.progress import Progress
from paraagent.task import Task


class Script(NamedTuple):
    """What an episode shows and how much is written to it."""

    name: str
    opening: list[Message]
    turns: list[int]
    """Tokens of each turn, its end included."""
    seen: list[Message]
    """What is seen after each turn but the last."""


def read_scripts(demos: Path, transcriber: Transcriber, number: int) -> list[Script]:
    """The first demonstrations of a data set."""
    import pyarrow.parquet as pq

    rows = pq.read_table(demos, columns=["task_id", "messages"]).slice(0, number).to_pylist()
    scripts = []
    for row in rows:
        messages: list[Message] = row["messages"]
        first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
        turns = [sum(transcriber.render([each]).mask) for each in messages[first:] if each["role"] == "assistant"]
        seen = [each for each in messages[first:] if each["role"] != "assistant"]
        scripts.append(Script(row["task_id"], messages[:first], turns, seen))
    return scripts


def bench_rollout(model: Path, demos: Path, episodes: int, batch: int, progress: Progress) -> dict[str, Any]:
    """Write `episodes` episodes both ways, `batch` at once; the ways take turns, so that a busy moment meets both.

    Returns:
        `tokens_per_second` and `baseline_tokens_per_second` of tokens written, the time to read what precedes them
        included, and their `ratio`; `episodes`, `batch`, `tokens_written`, `seconds` and `baseline_seconds`.
    """
    loaded = load_language_model(model)
    scripts = read_scripts(demos, Transcriber(loaded.tokenizer), episodes)
    progress.start(2 * len(scripts), "episodes")
    # Weights are touched and kernels chosen once before anything is measured.
    _plain(loaded, [script._replace(turns=[2]) for script in scripts[:batch]])
    asyncio.run(_kept(loaded, [script._replace(turns=[2]) for script in scripts[:batch]], batch))
    spent = {"kept": 0.0, "plain": 0.0}
    for group in _slices(scripts, 4 * batch):
        for way in spent:
            start = time.perf_counter()
            if way == "kept":
                asyncio.run(_kept(loaded, group, batch))
            else:
                for some in _slices(group, batch):
                    _plain(loaded, some)
            spent[way] += time.perf_counter() - start
            progress.advance(len(group))
    written = sum(sum(script.turns) for script in scripts)
    speed = {way: written / seconds for way, seconds in spent.items()}
    return {
        "episodes": len(scripts),
        "batch": batch,
        "tokens_written": written,
        "seconds": round(spent["kept"], 2),
        "baseline_seconds": round(spent["plain"], 2),
        "tokens_per_second": round(speed["kept"], 1),
        "baseline_tokens_per_second": round(speed["plain"], 1),
        "ratio": round(speed["kept"] / speed["plain"], 3),
    }


class _Paced(LocalPolicy):
    """Writes as many tokens as the script's turn has, whatever they are."""

    def __init__(self, loaded: LanguageModel, turns: Mapping[str, Sequence[int]], batch: int) -> None:
        super().__init__(loaded, EnvConfig(max_context_tokens=1 << 20), name="bench", group=batch)
        self.stop = set()
        self.turns = turns

    def budget(self, conversation: Conversation, pending: Tokens) -> int:
        return self.turns[conversation.task.request][_turns(conversation)]


async def _kept(loaded: LanguageModel, scripts: Sequence[Script], batch: int) -> None:
    """As the loop does it: the next episode takes the place of one that ended."""
    policy = _Paced(loaded, {script.name: script.turns for script in scripts}, batch)
    waiting = iter(scripts)
    live: dict[str, tuple[Script, Conversation]] = {}
    while True:
        live |= {script.name: (script, _open(script)) for script in islice(waiting, batch - len(live))}
        if not live:
            return
        said = await policy.act([conversation for _, conversation in live.values()])
        for (script, conversation), completion in zip(list(live.values()), said, strict=True):
            if completion is not None and not _goes_on(script, conversation, completion.text):
                del live[script.name]


@torch.inference_mode()
def _plain(loaded: LanguageModel, scripts: Sequence[Script]) -> None:
    transcriber = Transcriber(loaded.tokenizer)
    live = [(script, _open(script)) for script in scripts]
    while live:
        prompts = [[*each.token_ids, *transcriber.pending(each).ids] for _, each in live]
        width = max(map(len, prompts))
        ids = torch.tensor([[transcriber.end] * (width - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        budgets = [script.turns[_turns(conversation)] for script, conversation in live]
        out = loaded.model.generate(
            input_ids=ids.to(loaded.model.device),
            attention_mask=mask.to(loaded.model.device),
            max_new_tokens=max(budgets),
            min_new_tokens=max(budgets),
            do_sample=False,
            pad_token_id=transcriber.end,
        )
        rows = zip(live, prompts, budgets, out[:, width:].tolist(), strict=True)
        goes_on = []
        for (script, conversation), prompt, budget, written in rows:
            conversation.token_ids = [*prompt, *written[:budget]]
            goes_on.append(_goes_on(script, conversation, transcriber.text(written[:budget])))
        live = [each for each, on in zip(live, goes_on, strict=True) if on]


def _open(script: Script) -> Conversation:
    return Conversation(Task.open(script.name, 0), 0, list(script.opening))


def _turns(conversation: Conversation) -> int:
    return sum(message["role"] == "assistant" for message in conversation.messages)


def _goes_on(script: Script, conversation: Conversation, text: str) -> bool:
    """Take a turn into the conversation, and what is seen after it; says whether there is another one."""
    turn = _turns(conversation)
    conversation.messages.append({"role": "assistant", "content": text})
    if turn + 1 == len(script.turns):
        return False
    conversation.messages.append(script.seen[turn])
    return True


def _slices(scripts: Sequence[Script], size: int) -> Iterator[Sequence[Script]]:
    for start in range(0, len(scripts), size):
        yield scripts[start : start + size]
