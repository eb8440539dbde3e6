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

SHIM = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(SHIM))
HELPERS = [SHIM, os.path.join(SHIM, "tf1"), os.path.join(SHIM, "keras")]
"""The folders of the modules that several programs import; the last ones on their path."""
KERAS_2 = "tf_keras"
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
"""Whether all cases of the tests are to run."""


def free_ports(count: int) -> List[int]:
    """Free ports on the loopback interface."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def _environment(path: Sequence[str], more: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """The environment of a quiet process without GPUs, with `path` first on the Python path."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        **(more or {}),
    }


def run_python(
    *arguments: str,
    path: Sequence[str] = (),
    env: Optional[Dict[str, str]] = None,
    **options: Any,
) -> "subprocess.CompletedProcess[str]":
    """Runs this interpreter with `arguments`, this repository and `path` on the Python path.

    `env` is added to the environment; `options` are those of `subprocess.run`.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        env=_environment([REPOSITORY, *path], env),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def start_program(
    path: str,
    args: Sequence[str],
    env: Optional[Dict[str, str]] = None,
    inherited: Sequence[int] = (),
    preload: str = "",
) -> Fork:
    """Starts the Python program at `path`, which may be relative to `tests/shim`.

    For the other arguments see `fork_server.Fork`.
    """
    environment = _environment([REPOSITORY], env)
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *HELPERS])
    return Fork([os.path.join(SHIM, path), *args], environment, inherited, preload)


def wait_for_workers(workers: Sequence[Fork], timeout: float = 200, grace: float = 30) -> List[Any]:
    """Waits for workers of one cluster and returns what each printed, in their order.

    Where one fails, the others get `grace` seconds to notice. Those that take longer, or longer
    than `timeout`, are made to print the stacks of all their threads, which the error shows.
    """
    deadline = time.monotonic() + timeout
    while any(worker.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
        if any(worker.poll() not in (None, 0) for worker in workers):
            deadline = min(deadline, time.monotonic() + grace)
    unfinished = [index for index, worker in enumerate(workers) if worker.poll() is None]
    for index in unfinished:
        workers[index].send_signal(signal.SIGABRT)
    outputs = [worker.communicate() for worker in workers]
    if any(worker.returncode != 0 for worker in workers):
        shown = [
            f"process {index}, {worker.args}, "
            + ("had not ended" if index in unfinished else f"exited with {worker.returncode}")
            + f":\n{outputs[index][0][-2000:]}\n{outputs[index][1][-5000:]}"
            for index, worker in enumerate(workers)
        ]
        raise AssertionError("\n".join(shown))
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in outputs]


def run_forked(path: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Runs the Python program at `path`, however it ends."""
    process = start_program(path, args)
    out, err = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_program(path: str, *args: str, timeout: float = 300, keras: bool = False) -> Any:
    """Runs the Python program at `path` under this interpreter and returns what it printed.

    With `keras`, Keras 2 may have been imported before.
    """
    return wait_for_workers([start_program(path, args, preload=KERAS_2 if keras else "")], timeout)[
        0
    ]


def run_alone(path: str, *args: str) -> Any:
    """As `run_program`, in a process that has not imported TensorFlow when the program starts."""
    done = run_python(os.path.join(SHIM, path), *args)
    assert done.returncode == 0, f"{done.args}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


def start_workers(path: str, count: int, *args: str, keras: bool = False) -> List[Fork]:
    """Starts `count` workers of one cluster (gRPC on loopback), each with its `TF_CONFIG`.

    None of them ends before all have run to their end, or one has failed (`worker_process`).
    """
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(count)]}
    barrier, preload = os.pipe(), KERAS_2 if keras else ""
    arguments = [os.path.join(SHIM, path), *args]
    try:
        workers = []
        for index in range(count):
            config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
            variables = {"TF_CONFIG": json.dumps(config)}
            workers.append(
                start_program("worker_process.py", arguments, variables, barrier, preload)
            )
        return workers
    finally:
        for end in barrier:
            os.close(end)
