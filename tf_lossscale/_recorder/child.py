"""Lets `tf-lossscale run --record` record the script, and the Python processes that it starts.

The request is an environment variable. The process that `run` becomes writes the file that was
asked for; each other process that makes steps writes one of its own, with its number in the name.
"""

import json
import os
from typing import MutableMapping, Optional

from tf_lossscale._recorder import file_lock, session
from tf_lossscale._recorder.record_file import path_for_child

__all__ = ["REQUEST", "announce", "start_if_asked"]

REQUEST = "TF_LOSSSCALE_RECORD"


def announce(
    environment: MutableMapping[str, str], path: str, norm: bool, held: Optional[int] = None
) -> None:
    """Asks Python processes with this environment to record.

    Args:
      environment: the environment variables, which are changed in place.
      path: the record of the script.
      norm: whether to record the norm of the gradients.
      held: the descriptor of the record, which the process locked and will still have.
    """
    request = {
        "path": os.path.abspath(path),
        "norm": norm,
        "process": os.getpid(),
        "held": held,
    }
    environment[REQUEST] = json.dumps(request)


def start_if_asked() -> None:
    """Starts to record if the environment asks for it."""
    if REQUEST not in os.environ:
        return
    request = json.loads(os.environ[REQUEST])
    # On Windows the script runs in a child of the process that announced it.
    parent = os.getppid() if os.name == "nt" else None
    if request["process"] in (os.getpid(), parent):
        held = request["held"]
        if held is not None:
            file_lock.keep(held)
        session.start(request["path"], request["norm"], held=held)
    else:
        session.start(path_for_child(request["path"]), request["norm"], lazy=True)
