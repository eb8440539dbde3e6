"""The line of the user's program that calls: equal on all workers, whatever they have traced."""

import os
import sys
from types import FrameType
from typing import NamedTuple, Optional

__all__ = ["Call", "CallSite", "call_site"]

# Packages whose frames lie between the user's line and ours, and modules that call functions that
# are passed to them, because the threads of replicas begin there.
_LIBRARIES = frozenset({"keras", "tensorflow", "tensorflow_core", "tensorflow_estimator"})
_LIBRARIES |= {"contextlib", "functools", "tf_keras", "tf_lossscale", "threading"}

_GENERATED = "__autograph_generated_file"


class CallSite(NamedTuple):
    """A line of the program.

    Attributes:
      place: its function and its file, without the directory, which may differ between workers.
      line: its number; 0 if no user code calls, as when a strategy runs TensorFlow's own function.
    """

    place: str
    line: int

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}"


class Call(NamedTuple):
    """A call in the user's program: what is called, as text equal on all workers, and where."""

    what: str
    site: CallSite


def call_site() -> CallSite:
    """Returns the innermost line that is not in TensorFlow, Keras or this package."""
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
