"""Where the user's program calls: the same on all workers, whatever each has traced before."""

import os
import sys
from types import FrameType
from typing import NamedTuple, Optional

__all__ = ["Call", "CallSite", "call_site"]

# Packages whose frames are between the user's line and ours, and modules that call what they are
# given, as the threads of replicas begin there.
_LIBRARIES = frozenset({"keras", "tensorflow", "tensorflow_core", "tensorflow_estimator"})
_LIBRARIES |= {"contextlib", "functools", "tf_keras", "tf_lossscale", "threading"}

_GENERATED = "__autograph_generated_file"


class CallSite(NamedTuple):
    """A line of the program.

    Attributes:
      place: its file, without the directory, which may differ between workers, and its function.
      line: its number; 0 if no program calls, as where a strategy runs TensorFlow's own function.
    """

    place: str
    line: int

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}"


class Call(NamedTuple):
    """A call of the user's: what is called, in words that are equal on all workers, and where."""

    what: str
    site: CallSite


def call_site() -> CallSite:
    """Returns the innermost line that is neither TensorFlow's, nor Keras's, nor ours."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    if frame is None:
        return CallSite("no file", 0)
    name, function = os.path.basename(frame.f_code.co_filename), frame.f_code.co_name
    if name.startswith(_GENERATED):
        name = "code by AutoGraph"  # the file has another name in each process
    return CallSite(f"{name}, in {function}", frame.f_lineno)


def _is_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in _LIBRARIES
