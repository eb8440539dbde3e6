"""Reads, converts and describes files in a separate process, with TensorFlow or h5py.

Both libraries trust the file: a damaged one can crash the process, allocate memory without limit,
or run forever. The child process has limits, and every failure is reported as one message.
"""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from types import ModuleType
from typing import Iterator, List, Optional, Sequence

from tf_lossscale._checkpoint import keras_files
from tf_lossscale._checkpoint.finding import Contents, StoredOptimizer
from tf_lossscale._checkpoint.locate import HDF5, KERAS, CheckpointError, Place, sizes_of_files
from tf_lossscale._checkpoint.plans import Plan
from tf_lossscale._json import jsonable
from tf_lossscale._process import end_with_parent
from tf_lossscale._types import Json, JsonObject

# Limits for the file, in addition to what the libraries need and to what its size allows.
MEMORY_BYTES = 2**30
SECONDS = 60
_BYTES_PER_SECOND = 10 * 2**20  # a slow disk: a large file gets more time
_COPIES = 3  # how often a file may be in memory: as it is read, and as it is written
_START_SECONDS = 120  # the time that the start of the libraries may take
_LARGEST_ANSWER = 2**24
_NOT_THE_FILE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EACCES)

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tf_lossscale._checkpoint_command.isolated import main; "
    "main(sys.argv[2], int(sys.argv[3]))"
)
_STOPS = ("SIGALRM", "SIGKILL", "SIGXCPU")  # what ends a child that reaches a limit
_READY = b"ready\n"  # printed by the child when its libraries are imported and it begins to read


def answer(place: Place, **request: Json) -> JsonObject:
    """Returns what the child process answers, or raises CheckpointError.

    The request is `as_json`, whether to show the contents as JSON; or `convert`, the arguments of
    `tensorflow_requests.convert`. The answer has the `lines` to print, and the number of `states`
    in the file, or of `tensors` in the copy.
    """
    size = sum(sizes_of_files(place.path).values())
    seconds = SECONDS + size // _BYTES_PER_SECOND
    limits = {"seconds": seconds, "memory": MEMORY_BYTES + _COPIES * size}
    text = json.dumps({"place": place, **limits, **request})
    # -I keeps the working directory and the environment from adding modules to the child.
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), text, str(os.getpid())]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **threads, "CUDA_VISIBLE_DEVICES": "-1"},
            timeout=_START_SECONDS + seconds,
            check=False,
        )
        status: Optional[int] = done.returncode
    except subprocess.TimeoutExpired:
        status = None
    if status is None or (status < 0 and -status in [getattr(signal, name, 0) for name in _STOPS]):
        raise CheckpointError(
            f"{place.path}: damaged: reading took more than {seconds} seconds, or was stopped"
        )
    ready = done.stdout.startswith(_READY)
    values = None
    with contextlib.suppress(ValueError, RecursionError):
        values = json.loads(done.stdout[len(_READY) if ready else 0 :].decode("ascii"))
    if status or not isinstance(values, dict):
        library = "h5py" if place.format in (HDF5, KERAS) else "tensorflow"
        failed = f"cannot read it: `import {library}` failed"
        what = "damaged: the library that reads it crashed" if ready else failed
        raise CheckpointError(f"{place.path}: {what} (status {status})")
    if "error" in values:
        raise CheckpointError(values["error"])
    return values


def main(text: str, parent: int) -> None:
    """Lets this process, a child of `parent`, end with it, and answers a request."""
    end_with_parent()
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)  # it ended before that
    child(text)


def child(text: str) -> None:
    """Reads or converts a file, prints the answer or the error as JSON, and exits."""
    output = os.dup(1)
    os.dup2(2, 1)  # keeps the output of libraries out of the result
    request = json.loads(text)
    place = Place(*request["place"])
    try:
        library = _library(place)
        os.write(output, _READY)
        _set_limits(request["seconds"], request["memory"])
        values = _describe(place, request, library)
    except (CheckpointError, ImportError) as error:
        values = {"error": str(error)}
    with os.fdopen(output, "w", encoding="ascii") as file:
        file.write(_dumped(place, values))
    os._exit(0)  # without unloading the libraries, which can take long or crash


def _library(place: Place) -> ModuleType:
    """Returns the module that reads a file, after all that it imports."""
    if place.format in (HDF5, KERAS):
        keras_files.import_hdf5()
        from tf_lossscale._checkpoint_command import keras_requests

        return keras_requests
    from tf_lossscale._checkpoint_command import tensorflow_requests

    return tensorflow_requests


def _set_limits(seconds: int, memory: int) -> None:
    """Limits the time and memory of this process, the child that reads a file which may be hostile.

    The address space is limited by eight times as much as the data, because TensorFlow reserves
    much more than it uses. A limit that the system does not support is left out.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    signal.alarm(seconds)  # a file on a slow or dead network costs no processor time
    used = resource.getrusage(resource.RUSAGE_SELF)
    address, data = 0, 0
    # Systems other than Linux have no such file, and do not enforce these limits.
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        sizes = [int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in file.read().split()]
        address, data = sizes[0], sizes[5]
    for kind, limit in (
        (resource.RLIMIT_DATA, data + memory),
        (resource.RLIMIT_AS, address + 8 * memory),
        (resource.RLIMIT_CPU, seconds + int(used.ru_utime + used.ru_stime)),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or limit < hard:
            with contextlib.suppress(OSError, ValueError):  # the system does not support this limit
                resource.setrlimit(kind, (limit, hard))


def _describe(place: Place, request: JsonObject, library: ModuleType) -> JsonObject:
    """Does what the request asks for; returns the lines to print, or an error of one line.

    Whatever the libraries raise for a damaged file is such an error: no traceback is shown.
    """
    try:
        if "convert" in request:
            plan = library.convert(place, **request["convert"])
            return {"tensors": len(plan.tensors), "lines": list(_of_plan(plan))}
        contents = library.read(place)
        shown = _as_json if request["as_json"] else _as_text
        return {"states": len(contents.states), "lines": list(shown(contents))}
    except CheckpointError as error:
        return {"error": str(error)}
    except MemoryError:
        message = f"damaged: reading it needs more than {request['memory']} bytes of memory"
    except Exception as error:  # the libraries can raise almost anything
        lines = str(error).strip().splitlines() or [type(error).__name__]
        message = f"damaged, or not a {place.format}: {lines[0]}"
        if isinstance(error, library.OTHER_ERRORS):
            message = lines[0]
            if place.path in message:
                return {"error": message}
        if isinstance(error, OSError) and error.errno in _NOT_THE_FILE:
            message = str(error)
    return {"error": f"{place.path}: {message}"}


def _as_text(contents: Contents) -> Iterator[str]:
    """Yields the lines of `inspect`: loss scales, configured optimizers, stored optimizers."""
    yield from (contents.path, f"  {contents.format}")
    for state in contents.states:
        layout = state.layout
        yield from ("", f"Loss scale of {layout.written_by}", f"  TensorFlow: {layout.tensorflow}")
        yield from _rows("    ", [(v.key, v.role, v.dtype, str(v.value)) for v in state.variables])
        if layout.restored_by:
            yield "  restored by:"
        yield from (f"    {name}" for name in layout.restored_by)
        yield from (f"  note: {note}" for note in layout.notes)
    for configured in contents.configured:
        settings = _listed(configured["settings"])
        yield from ("", f"Configured: {configured['class_name']}({settings})")
        yield f"  {configured['note']}"
    for optimizer in contents.optimizers:
        yield from _of_optimizer(optimizer)
    if not contents.states:
        reason = "a dynamic one is missing if only weights were saved."
        yield from ("", f"No loss-scale state. A fixed loss scale has none; {reason}")


def _of_optimizer(optimizer: StoredOptimizer) -> Iterator[str]:
    place = f"at {optimizer.path}" if optimizer.path else "by the names of its variables"
    yield from ("", f"Optimizer {place}", f"  written by: {optimizer.written_by}")
    yield f"  class: {_one_of(optimizer.classes)}"
    yield f"  iterations: {'none' if optimizer.iterations is None else optimizer.iterations}"
    slots = [f"{name} ({count})" for name, count in optimizer.slots.items()]
    yield f"  slots: {', '.join(slots) or 'none'}"
    if optimizer.hyperparameters:
        yield f"  hyperparameters: {_listed(optimizer.hyperparameters)}"
    yield f"  on Keras 3: {optimizer.keras3}"


def _one_of(classes: Sequence[str]) -> str:
    if not classes:
        return "not in the file"
    if len(classes) == 1:
        return classes[0]
    return f"not in the file; by its slots one of {', '.join(classes)}"


def _listed(values: JsonObject) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _rows(indent: str, cells: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        yield indent + "  ".join(map(str.ljust, row, widths)).rstrip()


def _as_json(contents: Contents) -> List[str]:
    """The same as JSON, in which NaN and infinity are strings, because JSON lacks them."""
    states = []
    for state in contents.states:
        layout = {**state.layout._asdict(), "family": state.layout.family or None}
        del layout["roles"]
        variables = [variable._asdict() for variable in state.variables]
        states.append({**layout, "variables": variables})
    optimizers = [optimizer._asdict() for optimizer in contents.optimizers]
    values = {
        "version": 1,
        **contents._asdict(),
        "states": states,
        "optimizers": optimizers,
    }
    return json.dumps(jsonable(values), indent=2, allow_nan=False).splitlines()


def _of_plan(plan: Plan) -> Iterator[str]:
    """Yields the lines of the report of `convert`, below its title."""
    if plan.changes:
        yield from _rows("  ", [(old, "->", new) for old, new in plan.changes])
    else:
        yield "  unchanged: no tensor gets another name"
    yield from (f"note: {notice}" for notice in plan.notices)


def _dumped(place: Place, values: JsonObject) -> str:
    text = json.dumps(values)
    if len(text) <= _LARGEST_ANSWER:
        return text
    return json.dumps({"error": f"{place.path}: damaged: what it describes is too large"})
