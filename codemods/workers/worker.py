"""The worker process: processes files until the parent closes the pipe.

Native code can only be stopped by ending the process, so limits are enforced by the parent process
or by the operating system.
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

from ..resolve.neighbors import NOBODY, Neighbors
from ..run.flows import Question
from .deep_stack import with_deep_stack
from .limits import Limits, bound_memory, memory_bound
from .process_file import answered, process, process_given
from .results import Plan

if sys.platform == "linux":
    import ctypes

__all__ = ["WRITES", "Task", "with_large_stack", "work"]

_T = TypeVar("_T")

WRITES = "writes"
"""Sent by a worker before it writes a file; after the reply, the parent does not kill it."""

_RECURSION_LIMIT = 20_000
"""Python frames, enough for the deepest expressions in generated code."""

_DIES_LATER = 10.0
"""Seconds after the time limit at which a worker ends itself if it has not been killed."""

_PR_SET_PDEATHSIG = 1


class Task(NamedTuple):
    """A file to process.

    Attributes:
      path: the path to show in reports.
      real: the path of the file.
      source: the bytes from stdin; then no file is read or written.
      neighbors: what the other files of the run tell about it.
      question: what is wanted instead of a rewrite, if that is all.
    """

    path: str
    real: str
    source: Optional[bytes] = None
    neighbors: Neighbors = NOBODY
    question: Optional[Question] = None


def work(pipe: Any, others: Sequence[Any], parent: int, plan: Plan, limits: Limits) -> None:
    """Processes tasks until the pipe is closed.

    Args:
      pipe: receives tasks and sends outcomes.
      others: ends of other pipes that the fork has copied, to be closed.
      parent: the id of the parent process.
      plan: what to do with each file.
      limits: the limits on one file.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    faulthandler.disable()  # the parent reports a crash in one line
    warnings.simplefilter("ignore")  # from Python, about the source being parsed
    _end_with(parent)
    for other in others:
        other.close()
    bound_memory(memory_bound())
    # Collect garbage only between files: collecting within a file costs a tenth of the time.
    gc.freeze()
    gc.disable()
    with_large_stack(lambda: _serve(pipe, plan, limits))


def with_large_stack(function: Callable[[], _T]) -> _T:
    """Calls `function` with enough stack for deeply nested expressions, native and Python."""
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

    with contextlib.suppress(EOFError, OSError):  # the parent closed the pipe
        while True:
            task = pipe.recv()
            _end_after(limits.seconds + _DIES_LATER)
            if task.question is not None:
                outcome = answered(
                    task.path, task.real, task.question, task.neighbors, plan.options, limits
                )
            elif task.source is None:
                outcome = process(
                    task.path, task.real, plan, limits, before_writing, task.neighbors
                )
            else:
                outcome = process_given(task.path, task.source, plan)
            _end_after(0)
            pipe.send(outcome)
            gc.collect()
            gc.freeze()  # what is left are modules and caches; the next file need not visit them


def _end_after(seconds: float) -> None:
    """Ends the process after that many seconds of CPU time; 0 cancels the timer."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _end_with(parent: int) -> None:
    """Ends this process when its parent ends, even if the parent is killed."""
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":  # at once, even in native code
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    # Elsewhere as soon as Python code runs; the timer ends native code that never returns.
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
