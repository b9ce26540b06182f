"""Pairs of a call and its answer, from which a model learns to be the backend `llm`.

What is asked is word for word what the backend asks; what is answered comes from the grounded world or was recorded.
The world answers each call by itself, as the backend keeps no state. Some calls ask for what is not there, by an id
that nobody would issue: the one refusal of the world that can be told from the call alone.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.splits import service_family, split_of
from paraagent.files import canonical_json
from paraagent.message import Message
from paraagent.paraact.protocol import fold
from paraagent.seeds import derive, rng
from paraagent.tasks.pool import in_turn, shuffled
from paraagent.toolenv.arguments import check_arguments
from paraagent.toolenv.compiled import compiled_tool
from paraagent.toolenv.language import envelope, question
from paraagent.toolenv.recorded import Recordings
from paraagent.toolenv.sample import draw_call
from paraagent.toolenv.simulator import GroundedSimulator, Response, leaves
from paraagent.validators import compile_validator

if TYPE_CHECKING:
    from paraagent.catalog.store import Catalog

_TOOLS = """
SELECT name, provider, service FROM tools
WHERE returns IS NOT NULL AND NOT deprecated AND length(parameters) + length(returns) <= ?
ORDER BY name
"""
_CHARS_PER_TOKEN = 6
"""A schema with more characters than so many times the tokens that are allowed is not even read."""
_NOBODY = ("unknown", "none", "example", "placeholder", "does-not-exist", 0, 999_999_999)
"""What is given for an id where there is none to give."""


class Pair(NamedTuple):
    """One call and what is to be answered."""

    tool: ToolInterface
    arguments: dict[str, Any]
    response: Response
    absent: str = ""
    """The parameter that names what is not there."""
    n_tokens: int = 0
    """Of question and answer, once it is taken."""

    @property
    def outcome(self) -> str:
        """`success`, or the kind of the error."""
        return self.response.error.type if self.response.error else "success"

    @property
    def answer(self) -> str:
        """What the model is to write."""
        error, result, *_ = self.response
        said = {"error": error.model_dump()} if error else {"error": None, "response": result}
        return orjson.dumps(said).decode()

    @property
    def messages(self) -> list[Message]:
        """What is asked and answered."""
        return [*question(self.tool, self.arguments), {"role": "assistant", "content": self.answer}]


Count = Callable[[Pair], int | None]
"""Tokens of question and answer; None where they are too many."""


class Pairs:
    """Gathers pairs that a model can learn from, each call once, and counts why others are left out."""

    def __init__(self, wanted: int, count: Count) -> None:
        self.wanted, self.taken = wanted, list[Pair]()
        self.absent = 0
        """How many of those taken ask for what is not there."""
        self.left_out: Counter[str] = Counter()
        self._count, self._known = count, set[tuple[str, bytes]]()

    @property
    def complete(self) -> bool:
        return len(self.taken) >= self.wanted

    def offer(self, pair: Pair) -> bool:
        """Whether the pair is taken."""
        key = pair.tool.name, canonical_json(pair.arguments)
        if self.complete or key in self._known:
            return False
        self._known.add(key)
        tokens = None
        if check_arguments(pair.tool, pair.arguments) is not None:
            self.left_out["arguments that are not valid"] += 1
        elif not compile_validator(envelope(pair.tool.returns)).is_valid(orjson.loads(pair.answer)):
            self.left_out["answers that the backend would not take"] += 1
        elif (tokens := self._count(pair)) is None:
            self.left_out["too long"] += 1
        else:
            self.taken.append(pair._replace(n_tokens=tokens))
            self.absent += bool(pair.absent)
        return tokens is not None


def draw_pairs(
    catalog: Catalog, wanted: tuple[int, int], count: Count, absent: float, max_length: int, seed: int
) -> tuple[Pairs, Pairs]:
    """Pairs of the grounded world to learn from, and others of held-out services; same inputs, same pairs.

    Providers take turns, so that the largest crowd out no other. Where there are fewer tools than calls, each is called
    again with other arguments, until nothing new comes.

    Args:
        wanted: how many of each.
        count: tokens of a pair, None where they are too many.
        absent: share of the calls that ask, where they can, for what is not there.
        max_length: tokens of a pair; what is far above is not looked at.
    """
    found: dict[bool, dict[str, dict[str, list[str]]]] = {
        held_out: defaultdict(lambda: defaultdict(list)) for held_out in (False, True)
    }
    for name, provider, service in catalog.rows(_TOOLS, [_CHARS_PER_TOKEN * max_length]):
        held_out = split_of(provider, service) != "train"
        found[held_out][provider][service_family(provider, service)].append(name)
    made = Pairs(wanted[0], count), Pairs(wanted[1], count)
    for pairs, providers in zip(made, found.values(), strict=True):
        names = _in_order(providers, seed)
        for number in itertools.count():
            before = len(pairs.taken)
            for name in names:
                lacking = pairs.absent < absent * (len(pairs.taken) + 1)
                pair = _draw(catalog, name, derive(seed, number, name), lacking)
                if pair is not None:
                    pairs.offer(pair)
                if pairs.complete:
                    break
            if pairs.complete or len(pairs.taken) == before:
                break
    return made


def recorded_pairs(
    catalog: Catalog, recordings: Recordings, wanted: tuple[int, int], count: Count
) -> tuple[Pairs, Pairs]:
    """The same of what was recorded about tools of the catalog, in the order of the files."""
    names = {fold(name): name for name in catalog.names()}
    made = Pairs(wanted[0], count), Pairs(wanted[1], count)
    for name, arguments, response in recordings:
        tool = catalog.get(names[name]) if name in names else None
        if tool is not None:
            made[split_of(tool.provider, tool.service) != "train"].offer(Pair(tool, arguments, response))
    return made


def grounded(tool: ToolInterface, arguments: dict[str, Any], absent: str, seed: int) -> Response:
    """What the world of a seed answers, in which everything is there but what the parameter `absent` names."""
    issued = leaves([value for name, value in arguments.items() if name != absent]) if absent else None
    return GroundedSimulator(seed, issued).call(tool, arguments)


def write_pairs(pairs: Sequence[Pair], path: Path) -> None:
    """Write pairs as Parquet that `tune` reads, with what a person looks for beside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number = pa.string(), pa.int64()
    message = pa.struct([("role", text), ("content", text)])
    columns = [("tool", text), ("family", text), ("split", text), ("backend", text), ("outcome", text)]
    learned = [("messages", pa.list_(message)), ("mistakes", pa.list_(number)), ("width", number), ("n_tokens", number)]
    rows = [
        {
            "tool": pair.tool.name,
            "family": service_family(pair.tool.provider, pair.tool.service),
            "split": split_of(pair.tool.provider, pair.tool.service),
            "backend": pair.response.backend,
            "outcome": pair.outcome,
            "messages": pair.messages,
            "mistakes": [],
            "width": 1,
            "n_tokens": pair.n_tokens,
        }
        for pair in pairs
    ]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([*columns, *learned])), path, compression="zstd")


def _in_order(providers: dict[str, dict[str, list[str]]], seed: int) -> list[str]:
    """The tools, providers in turn, and within a provider its families in turn."""
    choices = rng(seed, "tools")
    groups = [
        list(in_turn([shuffled(names, choices) for _, names in sorted(providers[provider].items())]))
        for provider in shuffled(sorted(providers), choices)
    ]
    return list(in_turn(groups))


def _draw(catalog: Catalog, name: str, key: int, absent: bool) -> Pair | None:
    """A call of a tool, one for what is `absent` where it can be; None where its arguments are too hard to make."""
    tool = catalog.get(name)
    arguments = draw_call(tool, key) if tool else None
    if tool is None or arguments is None:
        return None
    lost = _lost(tool, arguments, key) if absent else ""
    return Pair(tool, arguments, grounded(tool, arguments, lost, key), lost)


def _lost(tool: ToolInterface, arguments: dict[str, Any], key: int) -> str:
    """The parameter that now names what nobody issued; empty where the call has none to put it in."""
    for taken in compiled_tool(tool).meaning.taken:
        for value in shuffled(_NOBODY, rng(key, "nobody")):
            if taken.name in arguments and check_arguments(tool, {**arguments, taken.name: value}) is None:
                arguments[taken.name] = value
                return taken.name
    return ""
