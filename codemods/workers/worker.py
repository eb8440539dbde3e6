"""The life of a worker: a process that takes files until nobody asks, and can be killed over one.

Nothing but the end of the process stops native code, so every limit that must hold is set from
outside, or left to the system.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from .deep_stack import with_deep_stack
from .limits import Limits, bound_memory, memory_bound
from .process_file import process, process_given
from .results import Plan

if sys.platform == "linux":
    import ctypes

__all__ = ["WRITES", "Task", "with_large_stack", "work"]

_T = TypeVar("_T")

WRITES = "writes"
"""What a worker sends before it writes; it waits for an answer, after which nobody kills it."""

_RECURSION_LIMIT = 20_000
"""Frames of Python for expressions as deep as generated ones are."""

_DIES_LATER = 10.0
"""Seconds after the time limit at which a worker ends itself, should nobody have killed it."""

_PR_SET_PDEATHSIG = 1


class Task(NamedTuple):
    """One file.

    Attributes:
      path: as the reports show it.
      real: where it is.
      source: its bytes where they came on stdin; then nothing is read or written.
    """

    path: str
    real: str
    source: Optional[bytes] = None


def work(pipe: Any, others: Sequence[Any], parent: int, plan: Plan, limits: Limits) -> None:
    """Takes tasks until the pipe is closed.

    Args:
      pipe: tasks come from it, and outcomes go to it.
      others: the ends of pipes that a fork has copied and that must be closed.
      parent: the process that asks.
      plan: what to do with each file.
      limits: what one may cost.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    faulthandler.disable()  # the parent tells of a crash, in one line
    warnings.simplefilter("ignore")  # of Python, about the source that is looked at
    _end_with(parent)
    for other in others:
        other.close()
    bound_memory(memory_bound())
    # What is loaded stays; the trees of a file go with it. Collecting in between costs a tenth.
    gc.freeze()
    gc.disable()
    with_large_stack(lambda: _serve(pipe, plan, limits))


def with_large_stack(function: Callable[[], _T]) -> _T:
    """Calls `function` with room for deeply nested expressions, in the parser and in our walks."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        return with_deep_stack(function)
    finally:
        sys.setrecursionlimit(limit)


def _serve(pipe: Any, plan: Plan, limits: Limits) -> None:
    def before_writing() -> None:
        _end_after(0)
        pipe.send(WRITES)
        pipe.recv()

    with contextlib.suppress(EOFError, OSError):  # nobody asks any more, or nobody listens
        while True:
            task = pipe.recv()
            _end_after(limits.seconds + _DIES_LATER)
            if task.source is None:
                outcome = process(task.path, task.real, plan, limits, before_writing)
            else:
                outcome = process_given(task.path, task.source, plan)
            _end_after(0)
            pipe.send(outcome)
            gc.collect()


def _end_after(seconds: float) -> None:
    """Ends the process after that much time of a processor; 0 takes it back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _end_with(parent: int) -> None:
    """Ends this process when its parent ends, however that ends."""
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":  # at once, native code or not
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    # Elsewhere as soon as Python code runs; the timer ends what never comes back to it.
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
