"""What the model reads back, byte for byte."""

from __future__ import annotations

from paraagent.paraact.observation import read_responses, read_tools, response_block, tools_block
from paraagent.paraact.paradigm import PARAACT, error_text
from paraagent.trace import ErrorInfo


def test_results_and_errors_have_the_forms_of_the_grammar() -> None:
    assert response_block("send", {"id": 1}) == '<tool_response>\n{"name":"send","result":{"id":1}}\n</tool_response>'
    assert error_text(PARAACT, "send", ErrorInfo(type="NotFoundError", msg="no such mail")) == (
        "<tool_response>\n"
        '{"name":"send","result":{"error":{"type":"NotFoundError","msg":"no such mail"}}}\n'
        "</tool_response>"
    )
    assert tools_block(['{"name":"a"}', '{"name":"b"}']) == '<tools>\n{"name":"a"}\n{"name":"b"}\n</tools>'
    assert tools_block([]) == "<tools>\n</tools>"


def test_observations_read_back_in_order() -> None:
    text = "\n".join([response_block("a", "x </tool_response> y"), response_block("b", [1])])
    assert read_responses(text) == [{"name": "a", "result": "x </tool_response> y"}, {"name": "b", "result": [1]}]
    assert read_tools(tools_block(['{"name":"a"}', '{"name":"b"}']) + "\n" + tools_block([])) == [
        [{"name": "a"}, {"name": "b"}],
        [],
    ]
