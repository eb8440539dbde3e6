"""Reads Keras files in a separate process.

HDF5 trusts the file: a damaged one can crash the process, allocate memory without limit, or run
forever. The child process has limits, and every failure is reported as one message.
"""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from typing import Any, Dict, Optional

from tf_lossscale._checkpoint import keras_files
from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.layouts import KERAS_3, Configured, Contents, State, Variable
from tf_lossscale._checkpoint.locate import Place

__all__ = ["child", "describe", "read"]

MEMORY_BYTES = 2**30
SECONDS = 60
# The slowest disk assumed: a large archive gets more time.
_BYTES_PER_SECOND = 10 * 2**20
_LARGEST_ANSWER = 2**24
_NOT_THE_FILE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EACCES)

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tf_lossscale._checkpoint.isolated import child; child(*sys.argv[2:])"
)


def read(place: Place) -> Contents:
    """Returns the loss-scale state in a Keras file.

    Args:
      place: the file.

    Raises:
      CheckpointError: if it cannot be read.
    """
    seconds = SECONDS + os.path.getsize(place.path) // _BYTES_PER_SECOND
    # -I keeps the working directory and the environment from adding modules to the child.
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)]
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    try:
        done = subprocess.run(
            [*command, place.format, place.path, str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CheckpointError(_too_long(place, seconds)) from error
    return _contents(place, done.returncode, done.stdout, seconds)


def _too_long(place: Place, seconds: int) -> str:
    return f"{place.path}: damaged: reading took more than {seconds} seconds, or was stopped"


def _contents(place: Place, status: int, answer: bytes, seconds: int) -> Contents:
    if status in (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0)) and status:
        raise CheckpointError(_too_long(place, seconds))
    try:
        values = json.loads(answer.decode("ascii"))
    except (ValueError, RecursionError):
        values = None
    if status or not isinstance(values, dict):
        raise CheckpointError(
            f"{place.path}: damaged: the library that reads it crashed (status {status})"
        )
    if "error" in values:
        raise CheckpointError(values["error"])
    return Contents(
        place.path,
        place.format,
        tuple(
            State(KERAS_3, tuple(Variable(*variable) for variable in state))
            for state in values["states"]
        ),
        tuple(Configured(**each) for each in values["configured"]),
    )


def child(format_: str, path: str, seconds: str) -> None:
    """Reads a file and prints its content, or the error, as JSON."""
    answer = os.dup(1)
    os.dup2(2, 1)  # keeps the output of libraries out of the result
    try:
        keras_files.import_hdf5()
        _set_limits(int(seconds))
        values = describe(Place(format_, path))
    except CheckpointError as error:
        values = {"error": str(error)}
    with os.fdopen(answer, "w", encoding="ascii") as file:
        file.write(_dumped(path, values))


def _set_limits(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_AS, 8 * MEMORY_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or limit < hard:
            with contextlib.suppress(OSError, ValueError):  # the system does not support this limit
                resource.setrlimit(kind, (limit, hard))


def describe(place: Place) -> Dict[str, Any]:
    """Returns the content of a Keras file, or the error, as values for JSON."""
    try:
        contents = keras_files.read(place)
    except CheckpointError as error:
        return {"error": str(error)}
    except MemoryError:
        return {
            "error": f"{place.path}: damaged: reading it needs more than {MEMORY_BYTES} bytes of "
            "memory"
        }
    except OSError as error:
        if error.errno in _NOT_THE_FILE:
            return {"error": f"{place.path}: {error}"}
        return {"error": f"{place.path}: damaged, or not a {place.format}: {_brief(error)}"}
    except Exception as error:  # h5py, zipfile and their codecs can raise almost anything
        return {"error": f"{place.path}: damaged, or not a {place.format}: {_brief(error)}"}
    return {
        "states": [[list(variable) for variable in state.variables] for state in contents.states],
        "configured": [each._asdict() for each in contents.configured],
    }


def _dumped(path: str, values: Dict[str, Any]) -> str:
    text: Optional[str] = None
    with contextlib.suppress(ValueError, RecursionError):
        text = json.dumps(values)
    if text is None or len(text) > _LARGEST_ANSWER:
        text = json.dumps({"error": f"{path}: damaged: its configuration is too large"})
    return text


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
