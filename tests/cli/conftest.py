"""One Prefect server for the command line's tests, since each run would otherwise start its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from flows.environment import settings
from flows.server import healthy


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the API of a server that ends with the tests."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    home = tmp_path_factory.mktemp("prefect")
    (home / "prefect").mkdir()
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, **settings(home, url)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + 120
            while not healthy(url):
                assert process.poll() is None, (home / "server.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(30)
