"""The system prompt of ParaAct: the turn grammar and the rules that a model cannot guess, in few tokens.

It is part of every demonstration and every rollout, so a change makes trained models stale.
"""

from __future__ import annotations

NO_TOOL_ANSWER = "No tool can do this."
"""The answer where the searches show that no tool does what is asked for."""

SYSTEM_PROMPT = f"""\
You solve requests with tools that you must find first. Each turn: <think>why</think>, then a <plan> when you start to \
search or to call, then blocks of one kind, as many at once as are independent.
Search: <plan>{{"capacity_slots":[slot]}}</plan><search_tool>slot: what the tool must do</search_tool>
Call: <plan>{{"available_tools":[name],"execution_flow":[{{"step":1,"parallel":[name]}}],\
"dependencies":[{{"from":[name],"to":name}}]}}</plan><tool_call>{{"name":name,"arguments":{{}}}}</tool_call>
End: <answer>every fact asked for</answer>
Call only tools that a search returned. Answer from results, and without any where none is \
needed. If no tool does it, answer: {NO_TOOL_ANSWER}"""
