"""Stage `simulator`: fine-tune the base model to answer calls as the backend `llm`, and compare it with what is right.

Artifact: `model/` (a transformers folder), `log.jsonl` (one row a step), `pairs.parquet` (what it learned from),
`held_out.parquet` (calls of other services), `answers/<system>.jsonl` (what the base and the tuned model wrote to
them) and `agreement.json` (how far that is what the world, or the recording, says).
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paraagent.config import EnvConfig, Profile
from paraagent.errors import RunError, UsageError
from paraagent.files import read_lines, write_json
from paraagent.seeds import derive
from pipelines import frames
from pipelines.stage import Contract, Stage, StageContext, StageResult, UnitLog, batched

if TYPE_CHECKING:
    from paraagent.training.pairs import Pair, Pairs


def build(context: StageContext) -> StageResult:
    """Draw the pairs, tune on them from the last checkpoint where there is one, then compare batch by batch.

    Raises:
        RunError: there is no pair to learn from.
    """
    from paraagent.training.agreement import judge, summarise_agreement
    from paraagent.training.pairs import grounded, write_pairs
    from paraagent.training.sft import CHECKPOINTS, tune

    out, base, seed = context.out, context.inputs["model"] / "model", context.seed("simulator")
    context.progress.message("making up calls and their answers")
    learned, held_out = _pairs(context, base)
    if not learned.taken:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(learned.left_out.items()))
        raise RunError(
            f"there is no call of a training service to learn from (left out: {reasons or 'none'}): raise"
            " simulator.max_length and simulator.max_answer, or give other sources or recordings"
        )
    write_pairs(learned.taken, out / "pairs.parquet")
    write_pairs(held_out.taken, out / "held_out.parquet")
    if not (out / "model").exists():
        config, processes = context.profile.simulator.sft, context.profile.machine.training_processes
        tune(out / "pairs.parquet", base, out, config, derive(seed, "sft"), context.progress, None, processes)
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    another = derive(seed, "another world")
    answers = {
        "base": _answers("base", base, held_out.taken, context),
        "tuned": _answers("tuned", out / "model", held_out.taken, context),
        "another_world": [
            pair._replace(response=grounded(pair.tool, pair.arguments, pair.absent, another)).answer
            for pair in held_out.taken
        ],
    }
    agreement = {
        system: summarise_agreement(held_out.taken, list(map(judge, held_out.taken, said)))
        for system, said in answers.items()
    }
    write_json(out / "agreement.json", {"calls": len(held_out.taken), **agreement})
    losses = [row["loss"] for row in read_lines(out / "log.jsonl")]
    return StageResult(
        rows={"pairs": len(learned.taken), "held_out": len(held_out.taken), "steps": len(losses)},
        metrics={
            "outcomes": dict(sorted(Counter(pair.outcome for pair in learned.taken).items())),
            "left_out": dict(sorted((learned.left_out + held_out.left_out).items())),
            "tokens": sum(pair.n_tokens for pair in learned.taken),
            "loss_first": losses[0],
            "loss_last": losses[-1],
            "agreement": agreement,
        },
    )


def _pairs(context: StageContext, model: Path) -> tuple[Pairs, Pairs]:
    """What is to be learned, and what is held out."""
    from paraagent.agents.language_model import load_tokenizer
    from paraagent.agents.transcript import Transcriber
    from paraagent.catalog.store import Catalog
    from paraagent.toolenv.recorded import open_recordings
    from paraagent.training.pairs import draw_pairs, recorded_pairs

    config, transcriber = context.profile.simulator, Transcriber(load_tokenizer(model))
    wanted = (config.calls, config.held_out)

    def count(pair: Pair) -> int | None:
        tokens = transcriber.render(pair.messages)
        fits = len(tokens.ids) <= config.max_length and sum(tokens.mask) <= config.max_answer
        return len(tokens.ids) if fits else None

    with Catalog.open(context.inputs["catalog"] / "catalog.duckdb") as catalog:
        if config.source == "recorded":
            return recorded_pairs(catalog, open_recordings(context.profile.env.recordings), wanted, count)
        return draw_pairs(catalog, wanted, count, config.absent, config.max_length, context.seed("simulator"))


def _answers(system: str, model: Path, pairs: Sequence[Pair], context: StageContext) -> list[str]:
    """What a model writes to each call; the batches that were done before are not asked again."""
    from paraagent.agents.local import LocalPolicy
    from paraagent.agents.policy import Conversation, write_turns
    from paraagent.task import Task
    from paraagent.toolenv.language import question

    config, log = context.profile.simulator, UnitLog(context.out / "answers", system)
    keys = [f"{number:06d}" for number in range(len(pairs))]
    owed = set(log.owed(keys))
    batches = [
        batch for batch in batched(list(zip(keys, pairs, strict=True)), config.batch) if owed & dict(batch).keys()
    ]
    if batches:
        context.progress.start(sum(map(len, batches)), f"answers of {system}")
        env = EnvConfig(max_new_tokens=config.max_answer, max_context_tokens=config.max_length + config.max_answer)
        policy = LocalPolicy(model, env, name=system, group=config.batch)
        for batch in batches:
            asked = [(key, question(pair.tool, pair.arguments)) for key, pair in batch]
            conversations = [Conversation(Task.open(key, 0), 0, messages) for key, messages in asked]
            said = asyncio.run(write_turns(policy, conversations))
            log.add((key, completion.text) for (key, _), completion in zip(batch, said, strict=True))
            context.progress.advance(len(batch))
    return log.close(keys)


def _off(profile: Profile) -> str:
    return "" if profile.simulator.calls else "simulator.calls says how many calls to learn from, and is 0"


def _external(profile: Profile, home: Path) -> dict[str, str]:
    """Content hashes of the recordings that it learns from. Raises `UsageError` where there is none."""
    from paraagent.toolenv.recorded import recording_hashes

    if profile.simulator.source != "recorded":
        return {}
    if not profile.env.recordings:
        raise UsageError("The simulator has no recorded calls to learn from: name files in env.recordings")
    return recording_hashes(profile.env.recordings)


STAGE = Stage(
    name="simulator",
    version=1,
    title="Fine-tune a model to answer calls",
    build=build,
    inputs=("catalog", "model"),
    sections=("simulator",),
    contracts=(Contract("pairs", frames.pairs),),
    external=_external,
    off=_off,
    gpu=True,
)
