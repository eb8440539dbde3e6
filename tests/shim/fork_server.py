"""Starts test programs as forks of one process that has imported TensorFlow.

Importing TensorFlow takes 2 to 5 seconds, a fork 50 ms. The server only imports: it has no eager
context, session or device list, whose threads would not survive a fork, so a program finds
TensorFlow as after an import of its own. A program to which the order of imports matters needs a
process of its own. For programs that use another module anyway, such as the package of Keras 2,
there is a second server, a fork of the first one, that has imported this as well.

A server (`fork_server.py [MODULE]`) reads requests from a socket: the length of a JSON value
and, with it, the descriptors for the output, the errors, the exit status and whatever the program
inherits besides; then the value, which is the arguments and the environment. It ends when the
socket is closed, so at the latest when the tests do.
"""

import contextlib
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Tuple

LENGTH = struct.Struct("!Q")
RESULT = struct.Struct("!i")
DESCRIPTORS = 16  # the most that one request has

_servers: "Dict[str, Tuple[socket.socket, Any]]" = {}
"""The servers of this process, and their sockets, by the module that they import besides."""


class Fork:
    """A program that runs in a fork of the server; the part of `subprocess.Popen` that tests use.

    Args:
      args: the path of the program and its arguments.
      env: the environment; variables that Python reads only when it starts have no effect.
      inherited: descriptors that the program gets, under the numbers in `TFLS_TEST_BARRIER`.
      preload: a module that may have been imported before the program starts, if it is installed.
    """

    def __init__(
        self,
        args: Sequence[str],
        env: Dict[str, str],
        inherited: Sequence[int] = (),
        preload: str = "",
    ):
        self.args = list(args)
        self.returncode: Optional[int] = None
        # Files, so that no program waits for a reader.
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed by `communicate`
        self._texts: List[str] = []
        status = os.pipe()
        request = json.dumps({"args": self.args, "env": env, "cwd": os.getcwd()}).encode()
        module = preload if preload and importlib.util.find_spec(preload) else ""
        server = _started_server(env, module)
        passed = [*(file.fileno() for file in self._files), status[1], *inherited]
        packed = struct.pack(f"{len(passed)}i", *passed)
        server.sendmsg(
            [LENGTH.pack(len(request))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)]
        )
        server.sendall(request)
        os.close(status[1])
        self._status = open(status[0], "rb", buffering=0)  # noqa: SIM115 - closed by `wait`
        self.pid = RESULT.unpack(_exactly(self._status, RESULT.size))[0]

    def poll(self) -> Optional[int]:
        """The exit status, or None while the program runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the end and returns the exit status; raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            with self._status:
                self.returncode = RESULT.unpack(_exactly(self._status, RESULT.size))[0]
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: Optional[float] = None) -> Tuple[str, str]:
        """Waits for the end and returns output and errors; raises `subprocess.TimeoutExpired`."""
        self.wait(timeout)
        while self._files:
            with self._files.pop(0) as file:
                file.seek(0)
                self._texts.append(file.read().decode("utf-8", "replace"))
        return self._texts[0], self._texts[1]

    def send_signal(self, number: int):
        """Sends a signal, unless the program has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self):
        """Kills the program."""
        self.send_signal(signal.SIGKILL)


def _exactly(stream: Any, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = stream.read(count - len(data))
        if not part:
            raise EOFError("the fork server died")
        data += part
    return data


def _started_server(env: Dict[str, str], module: str) -> socket.socket:
    """The socket of this process's server, which the first program starts."""
    if module not in _servers:
        ours, other = socket.socketpair()
        # NumPy's BLAS would start a thread when it is imported.
        env = dict(env, OPENBLAS_NUM_THREADS="1")
        process: Any
        with other:
            if module:
                process = Fork([os.path.abspath(__file__), module], env, [other.fileno()])
            else:
                process = subprocess.Popen(
                    [sys.executable, os.path.abspath(__file__)],
                    env=dict(env, TFLS_TEST_BARRIER=str(other.fileno())),
                    stdin=subprocess.DEVNULL,
                    pass_fds=[other.fileno()],
                )
        _servers[module] = ours, process
    return _servers[module][0]


def _next_program(connection: socket.socket) -> Dict[str, Any]:
    """Forks for each request; returns in the forks, with the request. The server ends here."""
    while True:
        space = socket.CMSG_SPACE(DESCRIPTORS * 4)
        header, ancillary, _, _ = connection.recvmsg(LENGTH.size, space)
        if not header:
            sys.exit()
        (count,) = LENGTH.unpack(header)
        packed = ancillary[0][2]
        descriptors = list(struct.unpack(f"{len(packed) // 4}i", packed))
        with connection.makefile("rb", buffering=0) as stream:
            request: Dict[str, Any] = json.loads(_exactly(stream, count).decode())
        if os.fork() == 0:
            connection.close()
            _fork_program(descriptors)
            _set_up(request, descriptors)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        while True:  # no zombie stays longer than until the next request
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


def _fork_program(descriptors: List[int]):
    """Forks again and returns in the child; the parent sends its number and its exit status."""
    status = descriptors[2]
    pid = os.fork()
    if pid == 0:
        os.close(status)
        return
    for descriptor in descriptors:
        if descriptor != status:
            os.close(descriptor)
    os.write(status, RESULT.pack(pid))
    _, ended = os.waitpid(pid, 0)
    code = -os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
    os.write(status, RESULT.pack(code))
    os._exit(0)


def _set_up(request: Dict[str, Any], descriptors: List[int]):
    """Makes this process what a new interpreter that starts the program would be."""
    out, err, _, *inherited = descriptors
    for descriptor, number in ((out, 1), (err, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if inherited:
        os.environ["TFLS_TEST_BARRIER"] = ",".join(map(str, inherited))
    sys.argv = request["args"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))


if __name__ == "__main__":
    # What the forks need not import again.
    for name in ("pytest", "tensorflow", *sys.argv[1:]):
        importlib.import_module(name)
    gc.freeze()  # no collection in a fork looks at what is imported, and so copies its memory
    faulthandler.enable()  # SIGABRT prints the stacks of all threads
    program = _next_program(socket.socket(fileno=int(os.environ["TFLS_TEST_BARRIER"])))
    runpy.run_path(program["args"][0], run_name="__main__")
