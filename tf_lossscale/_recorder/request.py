"""What `record`, `run --record` and `run --monitor` ask of the processes that they start.

The request is in an environment variable. The process that the command becomes writes the record
that was asked for. Each other Python process that makes steps writes one of its own, with the
number of the process in its name. With `--monitor`, there are no files, and each of these processes
prints what it has counted.
"""

import json
import os
from types import ModuleType
from typing import Any, List, NamedTuple, Optional, Sequence

from tf_lossscale import _import_hook
from tf_lossscale._process import end_with_parent
from tf_lossscale._recorder import session
from tf_lossscale._records.destination import Destination, RecordingError
from tf_lossscale._records.format import Disturbance
from tf_lossscale._records.summary import LONGEST
from tf_lossscale._records.writing import notify

VARIABLE = "TF_LOSSSCALE_RECORD"


class Request(NamedTuple):
    """A recording that was asked for.

    `process` is the one that asks: it becomes the script, or starts it if `is_of_child`. Without a
    `path`, the steps are only counted.
    """

    path: Optional[str]
    norm: bool
    overwrite: bool
    process: int
    descriptor: Optional[int] = None
    is_of_child: bool = False
    disturbed: Optional[Sequence[Any]] = None

    def text(self) -> str:
        """Returns the value of the environment variable."""
        return json.dumps(self)

    @property
    def is_for_this_process(self) -> bool:
        # On Windows the script always runs in a child of the process that asks.
        is_parent = (self.is_of_child or os.name == "nt") and self.process == os.getppid()
        return is_parent or self.process == os.getpid()


def requested() -> Request:
    """Returns the request in the environment of this process."""
    return Request(*json.loads(os.environ[VARIABLE]))


def start_at_once() -> None:
    """Starts the recording of the process that asked for it, before TensorFlow is imported."""
    request = requested()
    if not request.is_for_this_process:
        return
    if request.is_of_child:
        end_with_parent()
    if request.path is None:
        _start(request, None)
        return
    destination = Destination(request.path, request.overwrite, request.descriptor)
    try:
        destination.take_over()
    except (OSError, RecordingError) as error:  # in a script that has started itself again
        notify(f"nothing is recorded: {getattr(error, 'strerror', None) or error}")
        return
    _start(request, destination)


def at_first_import() -> None:
    """Lets the recording begin when TensorFlow is imported, in this or another process."""
    request = requested()
    if not request.is_for_this_process and not session.is_recording():
        destination = None if request.path is None else Destination(request.path)
        _start(request, destination, is_child=True)
    session.wait_for_tensorflow()


def _start(request: Request, destination: Optional[Destination], is_child: bool = False) -> None:
    disturbed = None if request.disturbed is None else Disturbance(*request.disturbed)
    session.start(
        destination,
        request.norm,
        lazy=is_child,
        reports=destination is None or (not is_child and disturbed is None),
        disturbed=disturbed,
        waits=False,  # until `at_first_import`: the finder that it adds must come later
    )


class ListsChanges(_import_hook.Subscriber):
    """Lists what the shim supplies or replaces under `tensorflow`, as soon as it does."""

    def __init__(self) -> None:
        from tf_lossscale._install import install, namespaces

        self._changes = install.changes
        self._namespaces = namespaces
        self._listed: List[str] = []

    def is_of_interest(self, name: str) -> bool:
        return bool(self._namespaces.is_of_interest(name))

    def imported(self, name: str, module: ModuleType) -> None:
        """Lists what this module has added to the changes."""
        if not requested().is_for_this_process:
            return
        for verb, names in zip(("supplies", "replaces"), self._changes()):
            new = [path for path in names if path not in self._listed]
            self._listed += new
            if new:
                notify(listed(f"the shim {verb} ", new))


def listed(start: str, names: List[str], end: str = ".") -> str:
    """Returns a line that lists names, as many as fit into it."""
    line, count = start + ", ".join(names) + end, len(names)
    while len(line) > LONGEST and count > 1:
        count -= 1
        line = f"{start}{', '.join(names[:count])} and {len(names) - count} more{end}"
    return line
