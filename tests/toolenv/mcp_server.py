"""An MCP server over stdio for the tests, with tools that misbehave. Started as a process; needs only `FOLDER`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("FOLDER", "."))
_out = threading.Lock()
_meeting = threading.Barrier(2)
_answers: dict[str, Any] = {}
_answered = threading.Event()
_never = threading.Event()
_gone: set[str] = set()


def say(message: dict[str, Any]) -> None:
    with _out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(text: str) -> None:
    with _out, (FOLDER / "notes").open("a") as file:
        file.write(text + "\n")


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def first_time(name: str) -> bool:
    try:
        (FOLDER / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def echo(**arguments: Any) -> dict[str, Any]:
    return text(json.dumps(arguments))


def meet() -> dict[str, Any]:
    _meeting.wait(60)
    return text("met")


def hang() -> dict[str, Any]:
    _never.wait()
    return text("")


def fail() -> dict[str, Any]:
    return text("no such luck, " + "x" * 2_000, isError=True)


def die_once() -> dict[str, Any]:
    if first_time("died"):
        os._exit(1)
    return text("alive")


def die() -> dict[str, Any]:
    os._exit(1)


def drawn() -> dict[str, Any]:
    link = {"type": "resource_link", "uri": "file:///a.txt", "name": "a"}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "AAAA"}}
    return {"content": [{"type": "image", "data": "AAAAAA==", "mimeType": "image/png"}, link, blob]}


def odd() -> dict[str, Any]:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    value = {"half": "a\ud83d", "nan": float("nan"), "big": 2**70, "deep": deep}
    return {"content": [], "structuredContent": value}


def large() -> dict[str, Any]:
    return text("x" * 9_000_000)


def flood() -> dict[str, Any]:
    for _ in range(1_024):
        sys.stderr.write("x" * 65_536)
    return text("flooded")


def drop(loud: bool) -> dict[str, Any]:
    _gone.add("echo")
    if loud:
        say({"method": "notifications/tools/list_changed"})
    return text("dropped")


def ask() -> dict[str, Any]:
    for number, method in enumerate(("sampling/createMessage", "elicitation/create", "roots/list")):
        params = {
            "sampling/createMessage": {"messages": [], "maxTokens": 5},
            "elicitation/create": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
        }.get(method, {})
        _answered.clear()
        say({"id": f"ask-{number}", "method": method, "params": params})
        _answered.wait(60)
    return text(json.dumps({name: answer.get("error", {}).get("message") for name, answer in _answers.items()}))


def around(name: str) -> dict[str, Any]:
    return text(json.dumps({"value": os.environ.get(name), "cwd": str(Path.cwd())}))


def leak() -> dict[str, Any]:
    return {"content": [], "structuredContent": {"said": f"the key is {os.environ['API_KEY']}"}}


def leak_by_failing() -> dict[str, Any]:
    return text(f"the key {os.environ['API_KEY']} is wrong", isError=True)


READ = (echo, meet, hang, fail, die_once, drawn, odd, large, flood, ask, around, leak, leak_by_failing)
WRITE = (die, drop)
TOOLS = {tool.__name__: tool for tool in (*READ, *WRITE)}


def listed() -> list[dict[str, Any]]:
    return [
        {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": tool in READ}}
        for name, tool in TOOLS.items()
        if name not in _gone
    ]


def call(request: dict[str, Any]) -> None:
    name, arguments = request["params"]["name"], request["params"].get("arguments") or {}
    note(f"call {name}")
    if name not in TOOLS or name in _gone:
        say({"id": request["id"], "error": {"code": -32602, "message": f"Unknown tool: {name}"}})
        return
    try:
        say({"id": request["id"], "result": TOOLS[name](**arguments)})
    except TypeError as error:
        say({"id": request["id"], "error": {"code": -32602, "message": str(error)}})


def serve() -> None:
    child = subprocess.Popen(["sleep", "600"])
    note(f"pids {os.getpid()} {child.pid}")
    if os.environ.get("ILL"):
        _never.wait()
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "crooked", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            say(
                {
                    "id": request["id"],
                    "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            say({"id": request["id"], "result": {"tools": listed()}})
        elif method == "tools/call":
            threading.Thread(target=call, args=(request,), daemon=True).start()
        elif method == "notifications/cancelled":
            note("cancelled")
        elif method is None:
            _answers[request["id"]] = request
            _answered.set()
        elif "id" in request:
            say({"id": request["id"], "error": {"code": -32601, "message": "no"}})


if __name__ == "__main__":
    serve()
