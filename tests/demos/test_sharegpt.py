"""Import of conversations in the form of ShareGPT: what is read, and why the rest is not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraagent.agents.transcript import Transcriber
from paraagent.demos.attempts import Attempt
from paraagent.demos.dataset import features
from paraagent.demos.sharegpt import Imported, episode_of, read_sharegpt
from paraagent.errors import UsageError
from paraagent.paraact.prompt import paraact_prompt
from paraagent.trace import Episode

SEARCHES = """<think>I search.</think>
<plan>{"capacity_slots":["weather"]}</plan>
<search_tool>weather: present temperature in a city</search_tool>"""
TOOLS = '<tools>\n{"name":"weather"}\n{"name":"forecast"}\n</tools>'
CALLS = """<think>Two calls.</think>
<tool_call>{"name":"weather","arguments":{"city":"Oslo"}}</tool_call>
<tool_call>{"name":"forecast","arguments":{"city":"Oslo"}}</tool_call>"""
RESULTS = """<tool_response>
{"name":"weather","result":{"t":7}}
</tool_response>
<tool_response>
{"name":"forecast","result":{"error":{"type":"NetworkError","msg":"gone"}}}
</tool_response>"""
SAID = [
    ("system", "You find tools and call them."),
    ("human", "How warm is it in Oslo?"),
    ("gpt", SEARCHES),
    ("human", TOOLS),
    ("gpt", CALLS),
    ("human", RESULTS),
    ("gpt", "<think>I know.</think>\n<answer>7 degrees.</answer>"),
]
GPT = {"conversations": [{"from": role, "value": text} for role, text in SAID]}
CHAT = {
    "messages": [
        {"role": {"human": "user", "gpt": "assistant"}.get(role, role), "content": text} for role, text in SAID
    ]
}
ANSWER = "<think>t</think>\n<answer>x</answer>"
SEARCH = "<think>t</think>\n<search_tool>a: b</search_tool>"


def talk(*said: tuple[Any, Any]) -> dict[str, Any]:
    return {"conversations": [{"from": role, "value": text} for role, text in said]}


def with_turn(place: int, text: Any) -> dict[str, Any]:
    """The good row, one message of it changed."""
    row = copy.deepcopy(GPT)
    row["conversations"][place]["value"] = text
    return row


class Reader:
    def __init__(self, folder: Path, transcriber: Transcriber) -> None:
        self.folder, self.transcriber = folder, transcriber

    def read(self, *rows: Any, max_tokens: int = 4_096) -> list[Imported]:
        return self.bytes("rows.json", orjson.dumps(rows), max_tokens)

    def bytes(self, name: str, data: bytes, max_tokens: int = 4_096) -> list[Imported]:
        (self.folder / name).write_bytes(data)
        return list(read_sharegpt(self.folder / name, self.transcriber, max_tokens))

    def one(self, row: Any) -> dict[str, Any]:
        [found] = self.read(row)
        assert (found.number, found.reason) == (1, "")
        assert found.row is not None
        return found.row


@pytest.fixture
def reader(tmp_path: Path, transcriber: Transcriber) -> Reader:
    return Reader(tmp_path, transcriber)


# What is read


@pytest.mark.parametrize("shape", [GPT, CHAT], ids=["from human and gpt", "of user and assistant"])
def test_a_row_of_either_shape_is_taken_over(shape: dict[str, Any], reader: Reader) -> None:
    row = reader.one(shape)
    assert [message["role"] for message in row["messages"]] == ["system", *["user", "assistant"] * 3]
    assert [message["content"] for message in row["messages"]] == [text for _, text in SAID]
    assert row["discovered_tools"] == ['{"name":"weather"}', '{"name":"forecast"}']
    assert (row["width"], row["n_turns"], row["mistakes"], row["split"]) == (2, 3, [], "train")
    assert 0 < row["n_model_tokens"] < row["n_tokens"]


def test_both_shapes_are_one_row(reader: Reader) -> None:
    first, second = reader.read(GPT, CHAT)
    assert first.row
    assert second.row
    assert {name for name in first.row if first.row[name] != second.row[name]} == {"task_id"}
    assert first.row["task_id"].split("-")[2] == second.row["task_id"].split("-")[2]


def test_a_row_has_the_columns_of_the_data_set(reader: Reader) -> None:
    assert reader.one(GPT).keys() == features().keys()


def test_observations_of_other_names_are_the_users(reader: Reader) -> None:
    row = talk(("user", "q"), ("function_call", SEARCH), ("observation", "none"), ("gpt", ANSWER))
    assert [message["role"] for message in reader.one(row)["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def test_a_system_prompt_beside_the_conversation_is_taken(reader: Reader) -> None:
    row = talk(("human", "q"), ("gpt", ANSWER))
    assert reader.one(row | {"system": "Rules."})["messages"][0]["content"] == "Rules."


@pytest.mark.parametrize("system", [None, "", " ", 7])
def test_without_a_system_prompt_ours_stands_there(system: Any, reader: Reader) -> None:
    row = talk(("human", "q"), ("gpt", ANSWER)) | {"system": system}
    assert reader.one(row)["messages"][0]["content"] == paraact_prompt(references=False)


def test_a_row_keeps_its_name_wherever_its_file_lies(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    elsewhere = Reader(tmp_path / "other", reader.transcriber)
    assert reader.one(GPT) == elsewhere.one(GPT)
    assert reader.one(GPT)["task_id"] != reader.one(with_turn(1, "How cold?"))["task_id"]


@pytest.mark.parametrize("column", ["conversations", "messages"])
def test_parquet_json_and_lines_hold_the_same_rows(column: str, reader: Reader, tmp_path: Path) -> None:
    rows: list[Any] = [{"conversations": GPT, "messages": CHAT}[column]] * 3
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    lines = b"\n\n".join(orjson.dumps(row) for row in rows)
    whole = reader.read(*rows)
    assert [(found.number, found.reason) for found in whole] == [(1, ""), (2, ""), (3, "")]
    assert reader.bytes("rows.jsonl", lines) == whole
    assert list(read_sharegpt(tmp_path / "rows.parquet", reader.transcriber, 4_096)) == whole


def test_our_own_demonstrations_can_be_imported(attempts: list[Attempt], reader: Reader) -> None:
    rows = [orjson.loads(attempt.row) for attempt in attempts]
    for row, found in zip(rows, reader.read(*rows, max_tokens=20_000), strict=True):
        assert found.row, found.reason
        assert found.row["messages"] == row["messages"]
        assert {*found.row["discovered_tools"]} == {*row["discovered_tools"]}
        assert (found.row["n_turns"], found.row["n_tokens"]) == (row["n_turns"], row["n_tokens"])


# What is not


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "no JSON object"),
        ([GPT], "no JSON object"),
        ("text", "no JSON object"),
        ({"text": "x"}, "no column conversations or messages"),
        ({"conversations": []}, "no column conversations or messages"),
        ({"conversations": "[]"}, "no column conversations or messages"),
        ({"conversations": ["hello"]}, "message 1 is no object"),
        (talk(("human", "q"), ("narrator", "x")), "message 2 is from 'narrator', which is no known role"),
        (talk((None, "q")), "message 1 is from 'None', which is no known role"),
        (talk((["human"], "q")), "message 1 is from \"['human']\", which is no known role"),
        ({"conversations": [{"speaker": "human", "text": "q"}]}, "message 1 is from 'None', which is no known role"),
        (with_turn(4, ""), "message 5 is empty"),
        (with_turn(4, "  \n"), "message 5 is empty"),
        (with_turn(4, None), "message 5 is empty"),
        (with_turn(4, {"text": "x"}), "message 5 is no text"),
        (talk(("gpt", ANSWER)), "message 2 should be from the user, not the assistant"),
        (talk(("human", "q"), ("human", "q")), "message 3 should be from the assistant, not the user"),
        (talk(("human", "q"), ("system", "s")), "message 3 should be from the assistant, not the system"),
        (
            talk(("human", "q"), ("gpt", ANSWER), ("gpt", ANSWER)),
            "message 4 should be from the user, not the assistant",
        ),
        (talk(("human", "q")), "the agent does not have the last word"),
        (talk(("system", "s")), "the agent does not have the last word"),
        (talk(("human", "q"), ("gpt", ANSWER), ("human", "more")), "the agent does not have the last word"),
        (talk(("human", "q"), ("gpt", SEARCH)), "turn 1 does not answer"),
        (
            talk(("human", "q"), ("gpt", ANSWER), ("human", "more"), ("gpt", ANSWER)),
            "turn 1 answers although more turns follow",
        ),
        (
            with_turn(2, "<think>t</think>\n<search_tool>a: b"),
            "turn 1: search_tool 1: <search_tool> is not closed: end it with </search_tool>",
        ),
        (
            with_turn(6, "<think>t\n<answer>x</answer>"),
            "turn 3: <think> is not closed: end it with </think>",
        ),
        (with_turn(6, "<answer>x</answer>"), "turn 3: no thought: begin the turn with <think>…</think>"),
        (with_turn(6, "7 degrees."), "turn 3: no thought: begin the turn with <think>…</think>"),
        (with_turn(6, f"{ANSWER} Bye."), "turn 3: text outside of the tags"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(row: Any, reason: str, reader: Reader) -> None:
    assert reader.read(row) == [Imported(1, None, reason)]


def test_a_call_that_is_no_json_is_refused(reader: Reader) -> None:
    [found] = reader.read(with_turn(4, '<think>t</think>\n<tool_call>{"name": oops}</tool_call>'))
    assert found.row is None
    assert found.reason.startswith("turn 2: tool_call 1: not valid JSON at character 10")


def test_a_row_that_is_too_long_is_refused(reader: Reader) -> None:
    length = reader.one(GPT)["n_tokens"]
    assert [found.reason for found in reader.read(GPT, max_tokens=length)] == [""]
    assert [found.reason for found in reader.read(GPT, max_tokens=length - 1)] == ["too long"]


def test_a_bad_row_costs_no_good_one(reader: Reader) -> None:
    found = reader.read(GPT, {"text": "x"}, CHAT)
    assert [(each.number, each.row is not None) for each in found] == [(1, True), (2, False), (3, True)]


def test_a_broken_line_is_one_row_with_a_reason(reader: Reader) -> None:
    good = orjson.dumps(GPT)
    found = reader.bytes("rows.jsonl", b"\n".join([good, good[:-7], b"\xff\xfe", good]))
    assert [each.reason for each in found] == ["", "no JSON object", "no JSON object", ""]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("rows.json", b'[{"conversations": [', "is no JSON (.*): download it again"),
        ("rows.json", b"", "is no JSON"),
        ("rows.json", orjson.dumps(GPT), "should hold a list of rows"),
        ("rows.parquet", b"PAR1 and nothing more", "is damaged or no Parquet (.*): download it again"),
        ("rows.parquet", b"", "is damaged or no Parquet"),
    ],
)
def test_a_file_that_is_none_is_the_users_to_mend(name: str, data: bytes, says: str, reader: Reader) -> None:
    with pytest.raises(UsageError, match=says.replace("(.*)", r"\(.*\)")):
        reader.bytes(name, data)


def test_a_torn_parquet_file_is_damaged(reader: Reader, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([GPT] * 50), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for data in (whole[: len(whole) // 2], whole[:4] + b"\0" * 200 + whole[204:]):
        with pytest.raises(UsageError, match="is damaged or no Parquet"):
            reader.bytes("torn.parquet", data)


@pytest.mark.parametrize("name", ["nowhere.json", ""])
def test_no_file_is_said_at_once(name: str, reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        list(read_sharegpt(tmp_path / name, reader.transcriber, 100))


# As a trace


@pytest.fixture
def imported(reader: Reader) -> Episode:
    return episode_of(reader.one(GPT))


def test_an_imported_conversation_is_a_trace(imported: Episode) -> None:
    assert (imported.request, imported.answer, imported.end) == ("How warm is it in Oslo?", "7 degrees.", "answer")
    assert [turn.family for turn in imported.turns] == ["search", "call", "answer"]
    assert [turn.observation for turn in imported.turns] == [TOOLS, RESULTS, ""]
    assert Episode.model_validate_json(imported.model_dump_json()) == imported


def test_what_searches_and_calls_brought_is_read_from_the_observations(imported: Episode) -> None:
    [search] = imported.searches
    assert (search.slot, search.query, search.hits) == (
        "weather",
        "present temperature in a city",
        ("weather", "forecast"),
    )
    assert [(call.name, call.result, call.error and call.error.type) for call in imported.calls] == [
        ("weather", {"t": 7}, None),
        ("forecast", None, "NetworkError"),
    ]


def test_plans_are_judged_as_in_an_episode(imported: Episode) -> None:
    first, second, _ = imported.turns
    assert first.plan
    assert (first.plan.kind, first.plan_rule_kept) == ("initial", True)
    assert (second.plan, second.plan_rule, second.plan_rule_kept) == (None, "required", False)


def test_a_demonstration_of_ours_gives_its_own_trace_again(attempts: list[Attempt], reader: Reader) -> None:
    for attempt in attempts:
        mine = Episode.model_validate_json(attempt.episode)
        [found] = reader.read(orjson.loads(attempt.row), max_tokens=20_000)
        assert found.row
        theirs = episode_of(found.row)
        for ours, own in zip(theirs.turns, mine.turns, strict=True):
            same = {"text", "family", "think", "plan", "plan_rule", "well_formed", "problems", "observation"}
            assert ours.model_dump(include=same) == own.model_dump(include=same)
        assert theirs.searches == mine.searches
        fields = {"name", "arguments", "occurrence", "error", "result"}
        assert [call.model_dump(include=fields) for call in theirs.calls] == [
            call.model_dump(include=fields) for call in mine.calls
        ]
        assert theirs.answer == mine.answer
