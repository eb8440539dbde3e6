"""Lets `tf-lossscale run --record` record the script, and the Python processes that it starts.

The request is an environment variable. The process that `run` becomes writes the file that was
asked for; each other process that makes steps writes one of its own, with its number in the name.
"""

import json
import os
import sys
from typing import Any, Dict, MutableMapping, Optional

from tf_lossscale._recorder import record_file, session

__all__ = ["REQUEST", "announce", "report_unused", "start_if_asked"]

REQUEST = "TF_LOSSSCALE_RECORD"

_has_started = False


def announce(
    environment: MutableMapping[str, str], path: str, norm: bool, held: Optional[int] = None
) -> None:
    """Asks Python processes with this environment to record."""
    request = {
        "path": os.path.abspath(path),
        "norm": norm,
        "process": os.getpid(),
        "held": held,
    }
    environment[REQUEST] = json.dumps(request)


def start_if_asked() -> None:
    """Starts to record if the environment asks for it."""
    global _has_started
    if REQUEST not in os.environ:
        return
    _has_started = True
    request = json.loads(os.environ[REQUEST])
    if _is_for_this_process(request):
        held = request["held"]
        if held is not None:
            record_file.keep(held)
        session.start(request["path"], request["norm"], held=held, advice=True)
    else:
        session.start(record_file.path_for_child(request["path"]), request["norm"], lazy=True)


def report_unused() -> None:
    """Reports, when the script ends, that it was not recorded because it has no TensorFlow."""
    request = json.loads(os.environ.get(REQUEST, "null"))
    if _has_started or request is None or not _is_for_this_process(request):
        return
    record_file.remove_record(request["path"])
    print(
        f"tf-lossscale: nothing was recorded in {request['path']}: the script did not import "
        "TensorFlow.",
        file=sys.stderr,
    )


def _is_for_this_process(request: Dict[str, Any]) -> bool:
    # On Windows the script runs in a child of the process that announced it.
    parent = os.getppid() if os.name == "nt" else None
    return request["process"] in (os.getpid(), parent)
