"""Runs test programs in separate processes.

A process may hold one `MirroredStrategy` only (several break collectives from TensorFlow 2.15 on),
logical devices must be set before TensorFlow starts, and a worker of a cluster is a process. Such
tests are programs: they print one JSON value as their last line of output, which the test checks.
They are forks of a process that has imported TensorFlow (`fork_server.py`).
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional, Sequence

from fork_server import Fork

__all__ = [
    "REPOSITORY",
    "free_ports",
    "run_alone",
    "run_forked",
    "run_program",
    "run_python",
    "start_workers",
    "wait_for_workers",
]

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker_process.py")


def free_ports(count: int) -> List[int]:
    """Free ports on the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _environment(path: Sequence[str]) -> Dict[str, str]:
    """The environment of a quiet process without GPUs, with `path` first on the Python path."""
    folders = [each for each in (*path, os.environ.get("PYTHONPATH", "")) if each]
    return dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(folders),
        TF_CPP_MIN_LOG_LEVEL="3",
        CUDA_VISIBLE_DEVICES="-1",
    )


def run_python(
    *arguments: str, path: Sequence[str] = (), env: Optional[Dict[str, str]] = None
) -> "subprocess.CompletedProcess[str]":
    """Runs this interpreter with `arguments`, this repository and `path` on the Python path."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=dict(_environment([REPOSITORY, *path]), **(env or {})),
        capture_output=True,
        text=True,
        check=False,
    )


def _start(
    path: str,
    args: Sequence[str],
    env: Optional[Dict[str, str]] = None,
    inherited: Sequence[int] = (),
    keras: bool = False,
) -> Fork:
    return Fork([path, *args], dict(_environment([REPOSITORY]), **(env or {})), inherited, keras)


def _last_line(args: Sequence[str], code: int, out: str, err: str) -> Any:
    """The JSON value on the last line of a program's output; fails with its errors."""
    assert code == 0, f"{args} exited with {code}:\n{out[-2000:]}\n{err[-4000:]}"
    return json.loads(out.strip().splitlines()[-1])


def wait_for_workers(workers: Sequence[Fork], timeout: float = 200, grace: float = 30) -> List[Any]:
    """Waits for workers of one cluster and returns what each printed, in their order.

    Where one fails, the others get `grace` seconds to notice. Those that take longer, or longer
    than `timeout`, are made to print the stacks of all their threads, which the error shows.
    """
    deadline = time.monotonic() + timeout
    while any(each.poll() is None for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
        if any(each.poll() not in (None, 0) for each in workers):
            deadline = min(deadline, time.monotonic() + grace)
    unfinished = [index for index, each in enumerate(workers) if each.poll() is None]
    for index in unfinished:
        workers[index].send_signal(signal.SIGABRT)
    outputs = [each.communicate() for each in workers]
    if any(each.returncode != 0 for each in workers):
        shown = [
            f"worker {index} "
            + ("had not ended" if index in unfinished else f"exited with {each.returncode}")
            + f":\n{outputs[index][0][-1000:]}\n{outputs[index][1][-5000:]}"
            for index, each in enumerate(workers)
        ]
        raise AssertionError("\n".join(shown))
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in outputs]


def run_forked(path: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Runs the Python program at `path`, however it ends."""
    process = _start(path, args)
    out, err = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_program(path: str, *args: str, timeout: float = 300, keras: bool = False) -> Any:
    """Runs the Python program at `path` under this interpreter and returns what it printed.

    With `keras`, Keras 2 may have been imported before (see `fork_server.Fork`).
    """
    process = _start(path, args, keras=keras)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
        raise AssertionError(
            f"{process.args} did not end within {timeout} s; its errors end with:\n{err[-3000:]}"
        ) from None
    assert process.returncode is not None
    return _last_line(process.args, process.returncode, out, err)


def run_alone(path: str, *args: str, env: Optional[Dict[str, str]] = None) -> Any:
    """As `run_program`, in a process that has not imported TensorFlow when the program starts."""
    done = run_python(path, *args, env=env)
    return _last_line(done.args, done.returncode, done.stdout, done.stderr)


def start_workers(path: str, count: int, *args: str, keras: bool = False) -> List[Fork]:
    """Starts `count` workers of one cluster (gRPC on loopback), each with its `TF_CONFIG`.

    None of them ends before all have run to their end, or one has failed (`worker_process`).
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    barrier = os.pipe()
    try:
        return [
            _start(
                WORKER,
                [path, *args],
                {
                    "TF_CONFIG": json.dumps(
                        {
                            "cluster": {"worker": addresses},
                            "task": {"type": "worker", "index": index},
                        }
                    )
                },
                barrier,
                keras,
            )
            for index in range(count)
        ]
    finally:
        for end in barrier:
            os.close(end)
