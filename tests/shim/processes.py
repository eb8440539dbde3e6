"""Runs test programs in processes of their own.

A process may hold one `MirroredStrategy` only (several break collectives from TensorFlow 2.15 on),
logical devices must be set before TensorFlow starts, and a worker of a cluster is a process. Such
tests are programs: they print one JSON value as their last line of output, which the test checks.
"""

import json
import os
import socket
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence

__all__ = ["REPOSITORY", "free_ports", "run_program", "start_workers", "wait_for"]

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def free_ports(count: int) -> List[int]:
    """Ports on loopback that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _start(
    path: str, args: Sequence[str], env: Optional[Dict[str, str]] = None
) -> "subprocess.Popen[str]":
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    environment["PYTHONPATH"] = os.pathsep.join(
        [REPOSITORY, os.environ.get("PYTHONPATH", "")]
    ).rstrip(os.pathsep)
    environment.update(env or {})
    return subprocess.Popen(
        [sys.executable, path, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=environment,
    )


def wait_for(process: "subprocess.Popen[str]", timeout: float = 120) -> Any:
    """Waits for a program and returns the JSON value on its last line; fails with its errors."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(
            f"{process.args} did not end within {timeout} s; its errors end with:\n{err[-3000:]}"
        ) from None
    assert process.returncode == 0, (
        f"{process.args} exited with {process.returncode}:\n{out[-2000:]}\n{err[-4000:]}"
    )
    return json.loads(out.strip().splitlines()[-1])


def run_program(
    path: str, *args: str, timeout: float = 120, env: Optional[Dict[str, str]] = None
) -> Any:
    """Runs the Python program at `path` under this interpreter and returns what it printed."""
    return wait_for(_start(path, args, env), timeout)


def start_workers(
    path: str, count: int, *args: str, env: Optional[Dict[str, str]] = None
) -> "List[subprocess.Popen[str]]":
    """Starts `count` workers of one cluster (gRPC on loopback), each with its `TF_CONFIG`."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(count)]
    return [
        _start(
            path,
            args,
            dict(
                env or {},
                TF_CONFIG=json.dumps(
                    {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
                ),
            ),
        )
        for index in range(count)
    ]
