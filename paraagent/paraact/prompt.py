"""The system prompts of the paradigms: what a turn looks like, and the rules that a model cannot guess, in few tokens.

They are part of every demonstration and every rollout, so a change makes trained models stale.
"""

from __future__ import annotations

from collections.abc import Sequence

NO_TOOL_ANSWER = "No tool can do this."
"""The answer where the searches show that no tool does what is asked for."""

_PARAACT = f"""\
You solve requests with tools that you must find first. Each turn: <think>why</think>, then a <plan> when you start to \
search or to call, then blocks of one kind, as many at once as are independent.
Search: <plan>{{"capacity_slots":[slot]}}</plan><search_tool>slot: what the tool must do</search_tool>
Call: <plan>{{"available_tools":[name],"execution_flow":[{{"step":1,"parallel":[name]}}],\
"dependencies":[{{"from":[name],"to":name}}]}}</plan><tool_call>{{"name":name,"arguments":{{}}}}</tool_call>
End: <answer>every fact asked for</answer>
Call only tools that a search returned. Answer from results, and without any where none is \
needed. If no tool does it, answer: {NO_TOOL_ANSWER}"""

_REFERENCES = """
An argument may be taken from another call of the same turn: {"$ref":"name#1.path"}; #2 is that tool's second call."""

_REACT = f"""\
You solve requests with tools, one action a turn, written so:
Thought: why
Action: name of a tool
Action Input: {{"argument": value}}
An Observation follows. When you know enough, or where no tool is needed:
Thought: why
Action: Finish
Action Input: {{"answer": "every fact asked for"}}
Answer from observations. If no tool does it, answer: {NO_TOOL_ANSWER}
Tools:
"""

_SEARCH_TOOL = """\
{"name":"search_tool","description":"Finds the tools for one need. Call it before any other tool","parameters":\
{"query":"string: what the tool must do"}}
Call only tools that search_tool returned."""


def paraact_prompt(references: bool) -> str:
    """The turn grammar of ParaAct; with `references`, how calls of one turn use each other's results."""
    return _PARAACT + _REFERENCES if references else _PARAACT


def react_prompt(schemas: Sequence[str] | None) -> str:
    """ReAct over these tools, or over the search for tools where None are given."""
    return _REACT + (_SEARCH_TOOL if schemas is None else "\n".join(schemas))
