"""Data parallel training: this process is rank 0, tells of the progress and writes; the others compute along.

Rank and addresses stand in the environment, where accelerate looks for them, so that one process takes the same path.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from paraagent.errors import RunError

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

_LOCALHOST = "127.0.0.1"
_LEAVE = 30
"""Seconds that the other processes have to end by themselves."""


@contextmanager
def spread(processes: int, along: Callable[..., object], *given: Any) -> Iterator[None]:
    """While the body trains as rank 0, `along(*given)` trains in each of `processes - 1` others on this machine.

    Args:
        along: a function of a module; it and `given` go to the others by pickle.

    Raises:
        RunError: another process failed, with its reason; or there are fewer GPUs than processes.
    """
    if processes == 1:
        yield
        return
    import torch

    gpus = torch.cuda.device_count()
    if 0 < gpus < processes:
        raise RunError(f"machine.training_processes is {processes}, and there are {gpus} GPUs: each process takes one")
    spawning, port = get_context("spawn"), _free_port()
    told: SimpleQueue[str] = spawning.SimpleQueue()
    others = [
        spawning.Process(target=_compute, args=(rank, processes, port, told, along, given), daemon=True)
        for rank in range(1, processes)
    ]
    before = dict(os.environ)
    try:
        for other in others:
            other.start()
        os.environ.update(_place(0, processes, port))
        yield
        for other in others:
            other.join(_LEAVE)
    except Exception as error:
        # Whichever process fails takes the connections of the others with it: the first reason is the one to tell.
        if told.empty():
            raise
        raise RunError(told.get()) from error
    finally:
        for name in _place(0, processes, port):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        for other in others:
            if other.pid:
                other.kill()


def _compute(
    rank: int, processes: int, port: int, told: SimpleQueue[str], along: Callable[..., object], given: tuple[Any, ...]
) -> None:
    """One of the other processes, from its start to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for rank 0, which ends this one
    os.environ.update(_place(rank, processes, port))
    try:
        along(*given)
    except RunError as error:
        told.put(str(error))
    except Exception as error:
        told.put(f"a process of the training failed: {str(error).splitlines()[0] if str(error) else error!r}")


def _place(rank: int, processes: int, port: int) -> dict[str, str]:
    """Where a process stands among the others, in the names that torch.distributed reads."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": _LOCALHOST,
        "MASTER_PORT": str(port),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOCALHOST, 0))
        port: int = probe.getsockname()[1]
        return port
