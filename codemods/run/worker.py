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
from typing import Any, Callable, TypeVar

from .limits import Limits, bound_memory, memory_bound, memory_left
from .process_file import Desk
from .results import Plan

if sys.platform == "linux":
    import ctypes

__all__ = ["ENDING_SIGNALS", "with_large_stack", "with_larger_stack_here", "work"]

_T = TypeVar("_T")

ENDING_SIGNALS = {
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}
"""The signals that end a run. A terminal sends them to all its processes."""

_STACK = 256 * 1024 * 1024
_ROOM = 240 * 1024 * 1024
"""What must be left beside that stack for the largest file, and for the heap that the C library
reserves for a thread. Without that heap, each allocation of the thread takes a page of its own."""
_STACK_OF_MAIN_THREAD = 120 * 1024 * 1024
"""Less than what Linux keeps free below the stack of the main thread."""
_RECURSION_LIMIT = 20_000
"""Python frames, enough for the deepest expressions in generated code."""

_DIES_LATER = 10.0
"""Seconds after the time limit at which a worker ends itself if it has not been killed."""

_PR_SET_PDEATHSIG = 1


def work(pipe: Any, others: Sequence[Any], parent: int, plan: Plan, limits: Limits) -> None:
    """Carries out jobs until the pipe is closed; only the parent writes files.

    Args:
      pipe: receives jobs and sends results.
      others: ends of other pipes that the fork has copied, to be closed.
      parent: the id of the parent process.
      plan: what to do with each file.
      limits: the limits on one file.
    """
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent ends the run
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
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
    """Calls `function` with enough stack for deeply nested expressions, native and Python.

    LibCST's parser recurses in native code: a few thousand nested parentheses overflow the main
    thread's stack of 8 MB and kill the process. So it runs on a thread of its own, whose larger
    stack costs memory only where it is used.
    """
    if memory_left() < _STACK + _ROOM:
        with_larger_stack_here()
        return function()
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    except RuntimeError:  # no memory for it, or no thread to be had
        with_larger_stack_here()
        return function()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    for error in errors:
        raise error
    return results[0]


def with_larger_stack_here() -> None:
    """Lets the stack of the main thread grow further, if no thread can have a larger one."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        larger = _STACK_OF_MAIN_THREAD
        if hard != resource.RLIM_INFINITY:
            larger = min(larger, hard)
        if soft != resource.RLIM_INFINITY and soft < larger:
            resource.setrlimit(resource.RLIMIT_STACK, (larger, hard))


def _serve(pipe: Any, plan: Plan, limits: Limits) -> None:
    desk = Desk(plan, limits)
    with contextlib.suppress(EOFError, OSError):  # the parent closed the pipe
        while True:
            job = pipe.recv()
            _end_after(limits.seconds + _DIES_LATER)
            result = desk.do(job)
            _end_after(0)
            pipe.send(result)
            desk.collect_if_due()


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
    with contextlib.suppress(RuntimeError):  # no thread to be had: the end of the pipe says it
        threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
