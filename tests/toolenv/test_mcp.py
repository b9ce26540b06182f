"""Live MCP servers as processes, which answer, hang, die, flood and change under the agent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from paraagent.catalog.interface import ToolInterface
from paraagent.catalog.store import Catalog
from paraagent.errors import NetworkError, RunError, UsageError
from paraagent.files import canonical_json
from paraagent.retrieval.index import ToolIndex
from paraagent.toolenv.mcp import McpServers
from paraagent.toolenv.mcp_config import ServerConfig
from paraagent.toolenv.simulator import Response
from tests.toolenv import mcp_server
from tests.toolenv.interfaces import tool
from tests.toolenv.mcp_client import SECRET, WRITES, call, kind, run


def crooked(folder: Path, **env: str) -> ServerConfig:
    folder.mkdir(exist_ok=True)
    return ServerConfig(command=sys.executable, args=(mcp_server.__file__,), env={"FOLDER": str(folder), **env})


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines()


def pids(folder: Path) -> list[int]:
    return [int(pid) for line in notes(folder) if line.startswith("pids") for pid in line.split()[1:]]


def ended(pid: int) -> bool:
    """Gone, or dead and waiting for whoever adopted it."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_calls_of_one_server_overlap(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> list[Response]:
        return list(await asyncio.gather(call(servers, "meet"), call(servers, "meet")))

    assert [response.result for response in run(work, crooked(tmp_path))] == ["met", "met"]


def test_no_more_calls_are_under_way_than_allowed(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        hanging = asyncio.create_task(call(servers, "hang"))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(call(servers, "echo"))
        while "call hang" not in notes(tmp_path):
            await asyncio.sleep(0.01)
        hanging.cancel()
        await waiting
        assert notes(tmp_path)[-2:] == ["cancelled", "call echo"]

    run(work, crooked(tmp_path), concurrency=1)


def test_a_call_that_hangs_times_out_and_is_cancelled_while_its_sibling_succeeds(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        slow, quick = await asyncio.gather(call(servers, "hang"), call(servers, "echo", x=1))
        assert kind(slow) == "TimeoutError"
        assert (quick.result, quick.error) == ({"x": 1}, None)
        assert (await call(servers, "echo", x=2)).result == {"x": 2}
        assert "cancelled" in notes(tmp_path)

    run(work, crooked(tmp_path), timeout=2.0)


def test_what_a_tool_says_of_its_failure_is_an_observation_of_bounded_length(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        failed, refused, unknown = [
            await call(servers, name, **arguments)
            for name, arguments in [("fail", {}), ("around", {"wrong": 1}), ("nothing", {})]
        ]
        assert kind(failed) == "ToolExecutionError"
        assert failed.error is not None
        assert failed.error.msg.startswith("no such luck")
        assert len(failed.error.msg) == 600
        assert kind(refused) == "InvalidRequestError"
        assert kind(unknown) == "ToolNotFoundError"
        assert await servers.answer(tool(provider="elsewhere"), {}) is None

    run(work, crooked(tmp_path))


def test_a_read_that_kills_its_server_is_made_again(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        died = await call(servers, "die_once")
        assert (died.result, died.attempts) == ("alive", 2)

    run(work, crooked(tmp_path))
    assert [note for note in notes(tmp_path) if note.startswith("call")] == ["call die_once"] * 2


def test_a_call_that_changes_something_is_never_made_twice(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        died = await call(servers, "die")
        assert kind(died) == "NetworkError"
        assert died.error is not None
        assert "may or may not have taken effect" in died.error.msg
        assert died.attempts == 1
        assert (await call(servers, "echo", x=1)).result == {"x": 1}

    run(work, crooked(tmp_path))
    assert notes(tmp_path).count("call die") == 1


def test_a_server_that_died_between_calls_is_started_again_even_for_a_change(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        os.kill(pids(tmp_path)[0], signal.SIGKILL)
        while Path(f"/proc/{pids(tmp_path)[0]}").exists():
            await asyncio.sleep(0.001)
        dropped = await call(servers, "drop", loud=False)
        assert dropped.result == "dropped"

    run(work, crooked(tmp_path))
    assert notes(tmp_path).count("call drop") == 1
    assert all(map(ended, pids(tmp_path)))


def test_a_server_that_cannot_be_started_again_is_an_error_of_the_network(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(Path(mcp_server.__file__).read_text())

    async def work(servers: McpServers) -> None:
        script.unlink()
        for process in pids(tmp_path):
            os.kill(process, signal.SIGKILL)
        await asyncio.to_thread(ended, pids(tmp_path)[0])
        gone = await call(servers, "drop", loud=False)
        assert kind(gone) == "NetworkError"
        assert gone.attempts == 3
        script.write_text(Path(mcp_server.__file__).read_text())
        assert (await call(servers, "drop", loud=False)).result == "dropped"

    config = crooked(tmp_path)
    run(work, config.model_copy(update={"args": (str(script),)}))


def test_a_flood_of_complaints_does_not_block(tmp_path: Path) -> None:
    assert run(lambda servers: call(servers, "flood"), crooked(tmp_path)).result == "flooded"


def test_data_are_told_of_and_never_shown(tmp_path: Path) -> None:
    assert run(lambda servers: call(servers, "drawn"), crooked(tmp_path)).result == [
        {"type": "image", "mimeType": "image/png", "bytes": 4},
        {"type": "link", "uri": "file:///a.txt", "title": "a"},
        {"type": "blob", "uri": "file:///b", "mimeType": "x/y", "bytes": 3},
    ]


def test_whatever_a_server_says_can_be_stored(tmp_path: Path) -> None:
    result = run(lambda servers: call(servers, "odd"), crooked(tmp_path)).result
    assert result["half"] == "a\ufffd"
    assert result["nan"] is None
    assert result["big"] == str(2**70)
    deep = orjson.loads(canonical_json(result))["deep"]
    levels = 0
    while isinstance(deep, list):
        deep, levels = deep[0], levels + 1
    assert levels < 64


def test_an_answer_that_is_too_large_costs_its_own_call_only(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        meeting = asyncio.create_task(call(servers, "meet"))
        large = await call(servers, "large")
        assert kind(large) == "ToolExecutionError"
        assert large.error is not None
        assert "larger than" in large.error.msg
        assert (await call(servers, "meet")).result == (await meeting).result == "met"

    run(work, crooked(tmp_path))
    assert len(pids(tmp_path)) == 2


@pytest.mark.parametrize("loud", [True, False])
def test_a_tool_that_vanishes_is_not_found_and_the_others_go_on(tmp_path: Path, loud: bool) -> None:
    async def work(servers: McpServers) -> None:
        assert (await call(servers, "echo", x=1)).result == {"x": 1}
        assert (await call(servers, "drop", loud=loud)).result == "dropped"
        assert kind(await call(servers, "echo", x=1)) == "ToolNotFoundError"
        assert (await call(servers, "around", name="FOLDER")).error is None

    run(work, crooked(tmp_path))
    assert notes(tmp_path).count("call echo") == (1 if loud else 2)


def test_what_a_server_asks_of_its_client_is_refused(tmp_path: Path) -> None:
    refused = run(lambda servers: call(servers, "ask"), crooked(tmp_path)).result
    assert len(refused) == 3
    assert all("not supported" in said for said in refused.values())


def test_environment_and_folder_reach_the_server(tmp_path: Path) -> None:
    config = crooked(tmp_path, MODE="garden").model_copy(update={"cwd": str(tmp_path)})
    result = run(lambda servers: call(servers, "around", name="MODE"), config).result
    assert result == {"value": "garden", "cwd": str(tmp_path.resolve())}


def test_a_secret_that_a_server_gives_away_is_starred(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        assert (await call(servers, "leak")).result == {"said": "the key is ***"}
        failed = await call(servers, "leak_by_failing")
        assert kind(failed) == "ToolExecutionError"

    run(work, crooked(tmp_path, API_KEY=SECRET))


def test_two_servers_with_the_same_tools_are_told_apart_by_name(tmp_path: Path) -> None:
    servers = {name: crooked(tmp_path / name.strip("!"), MODE=name) for name in ("left", "right hand!")}

    async def work(running: McpServers) -> None:
        path = running.write_catalog(tmp_path / "catalog")
        with Catalog.open(path) as catalog:
            index = ToolIndex.load(path.parent / "index", catalog)
            assert len(catalog) == 2 * len(mcp_server.TOOLS)
            found = [each for each in catalog.get_many(catalog.names()).values() if each.source_name == "around"]
            assert {(each.provider, each.service) for each in found} == {(name, name) for name in servers}
            assert {hit.name for [hits] in [index.search(["around"], 5)] for hit in hits} >= {e.name for e in found}
            assert catalog.get("left_around") in found
            effects = {each.source_name: each.effect for each in catalog.get_many(catalog.names()).values()}
            assert {name for name, effect in effects.items() if effect == "read"} == set(mcp_server.TOOLS) - set(WRITES)
            for each in found:
                response = await running.answer(each, {"name": "MODE"})
                assert response is not None
                assert response.result["value"] == each.provider

    run(work, servers)


@pytest.mark.parametrize("allows", [True, False])
def test_a_person_is_asked_before_a_change_and_never_before_a_read(tmp_path: Path, allows: bool) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    at_once = 0

    async def confirm(each: ToolInterface, arguments: dict[str, Any]) -> bool:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        asked.append((each.source_name, arguments))
        await asyncio.sleep(0.01)
        at_once -= 1
        return allows

    async def work(servers: McpServers) -> None:
        assert (await call(servers, "echo", x=1)).result == {"x": 1}
        for response in await asyncio.gather(*(call(servers, "drop", loud=loud) for loud in (True, False))):
            if allows:
                assert response.result == "dropped"
            else:
                assert kind(response) == "PermissionError"

    run(work, crooked(tmp_path), confirm=confirm)
    assert asked == [("drop", {"loud": True}), ("drop", {"loud": False})]
    assert notes(tmp_path).count("call drop") == (2 if allows else 0)


def test_a_server_that_does_not_start_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    quits = ServerConfig(command=sys.executable, args=("-c", "import sys; sys.exit(3)"), env={"API_KEY": SECRET})
    lacks = ServerConfig(command="no-such-server", args=("--token", SECRET))
    hangs = crooked(tmp_path / "hangs", ILL="yes", API_KEY=SECRET)
    nowhere = ServerConfig(url=f"http://me:{SECRET}@127.0.0.1:9/{SECRET}?key={SECRET}", headers={"X-Key": SECRET})
    ill = {"quits": quits, "lacks": lacks, "hangs": hangs, "nowhere": nowhere}

    async def start(servers: dict[str, ServerConfig]) -> list[str]:
        async with McpServers(servers, timeout=5.0, start_timeout=5.0) as running:
            assert (await call(running, "echo", "well", x=1)).result == {"x": 1}
            return running.faults

    faults = asyncio.run(start({**ill, "well": crooked(tmp_path / "well")}))
    assert [fault.split()[3] for fault in faults if fault.startswith("The MCP server")] == ["quits", "hangs", "nowhere"]
    assert "no command 'no-such-server'" in faults[1]
    del ill["hangs"]
    with pytest.raises(NetworkError, match=r"quits .*no-such-server.*nowhere") as caught:
        asyncio.run(start(ill))
    with pytest.raises(UsageError, match="no command 'no-such-server'"):
        asyncio.run(start({"lacks": lacks}))
    assert SECRET not in f"{faults} {caught.value}"
    assert all(map(ended, pids(tmp_path / "hangs")))


def test_a_server_that_ends_at_its_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    words = f"import sys; sys.stderr.write('first\\nno config at \\x1b[1m{SECRET}, TOKEN=sk-1\\n\\n'); sys.exit(3)"
    quits = ServerConfig(command=sys.executable, args=("-c", words), env={"API_KEY": SECRET})
    with pytest.raises(NetworkError, match=r"ended with exit code 3: no config at \[1m\*\*\*, TOKEN=\*\*\*\)"):
        run(lambda servers: call(servers, "echo"), quits)


def test_what_is_no_tool_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    listing = '"tools": listed()'
    source = Path(mcp_server.__file__).read_text()
    assert source.count(listing) == 1
    listed = '"tools": [{"name": 1}, "x", {"name": "ill", "inputSchema": "no"}, *listed()]'
    script.write_text(source.replace(listing, listed))
    config = crooked(tmp_path).model_copy(update={"args": (str(script),)})

    async def within() -> None:
        async with McpServers({"crooked": config}, timeout=60.0) as running:
            said = "The MCP server crooked lists what is no tool (number 1, number 2, ill): the rest is used"
            assert running.faults == [said]
            assert (await call(running, "echo", x=1)).result == {"x": 1}

    asyncio.run(within())


def test_servers_without_tools_are_nothing_to_act_with(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(Path(mcp_server.__file__).read_text().replace("in TOOLS.items()", "in ()"))
    config = crooked(tmp_path).model_copy(update={"args": (str(script),)})

    async def work(servers: McpServers) -> None:
        with pytest.raises(RunError, match="No tool is listed by crooked"):
            servers.write_catalog(tmp_path / "catalog")

    run(work, config)


def test_cancelling_in_the_middle_of_calls_leaves_no_process(tmp_path: Path) -> None:
    async def work(servers: McpServers) -> None:
        calls = asyncio.gather(*(call(servers, "hang") for _ in range(3)))
        while notes(tmp_path).count("call hang") < 3:
            await asyncio.sleep(0.01)
        raising = asyncio.current_task()
        assert raising is not None
        raising.cancel()
        await calls

    with pytest.raises(asyncio.CancelledError):
        run(work, crooked(tmp_path))
    assert len(pids(tmp_path)) == 2
    assert all(map(ended, pids(tmp_path)))


def test_cancelling_a_start_leaves_no_process(tmp_path: Path) -> None:
    async def start() -> None:
        task = asyncio.current_task()
        assert task is not None

        async def cancel() -> None:
            while not (tmp_path / "notes").exists():
                await asyncio.sleep(0.01)
            task.cancel()

        cancelling = asyncio.create_task(cancel())
        async with McpServers({"ill": crooked(tmp_path, ILL="yes")}, timeout=60):
            await cancelling

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(start())
    assert all(map(ended, pids(tmp_path)))
