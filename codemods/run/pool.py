"""Processes files in worker processes, within limits and regardless of crashes.

There is a worker process even for `--jobs 1`, because only a process can be stopped while native
code runs: on very deep nesting the parser can overflow its stack or run for hours. If a worker
dies, or is killed because it takes too long, only the file that it was processing fails.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from ..model import FileResult
from .limits import Limits, memory_bound
from .process_file import failed
from .results import Plan, Task
from .worker import work

__all__ = ["process_all"]

_FORKS = sys.platform == "linux"

_TICK = 1.0
"""Seconds between checks of the time limit. A longer gap counts as one tick, so that a run can be
suspended (Ctrl-Z) and resumed without exceeding the limit."""

_FILES_OF_A_RUN = 40
_FILES_OF_A_WORKER = 4
"""Open files needed, with a margin; a worker inherits those of the workers before it."""

_TO_END = 10.0
"""Seconds to wait for a worker to finish writing and exit."""


class _Worker:
    """A worker process, the pipe to it, and its current task."""

    def __init__(self, plan: Plan, limits: Limits, others: Sequence[_Worker]) -> None:
        context = multiprocessing.get_context("fork" if _FORKS else None)
        self.pipe, child_pipe = context.Pipe()
        self.task: Optional[Task] = None
        self.number = 0
        self.seconds = 0.0
        # A forked child inherits our ends of all pipes and must close them; otherwise the other
        # workers would not notice that we have closed ours.
        our_pipes = [self.pipe, *(other.pipe for other in others)] if _FORKS else []
        self.process = context.Process(
            target=work, args=(child_pipe, our_pipes, os.getpid(), plan, limits), daemon=True
        )
        with child_pipe, _no_interrupt():
            try:
                self.process.start()
            except OSError:
                self.pipe.close()
                raise

    def give(self, number: int, task: Task) -> None:
        self.number, self.task = number, task
        self.seconds = 0.0
        with contextlib.suppress(OSError):  # if the worker has died, `take` notices
            self.pipe.send(task)

    def take(self) -> FileResult:
        """Returns the result of the task; an error if the process has died."""
        assert self.task is not None
        try:
            result: FileResult = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            result = failed(self.task.path, _how_it_ended(self.process.exitcode))
        self.task = None
        return result

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self) -> None:
        """Ends the process, at once if it is busy."""
        if self.task is not None:
            self.process.kill()
        self.pipe.close()
        self.process.join(_TO_END)
        if self.process.exitcode is None:
            self.kill()


def process_all(
    tasks: Iterable[Task], plan: Plan, jobs: int, limits: Limits
) -> Iterator[tuple[int, FileResult]]:
    """Yields the number of each task, from 0, and its result, as soon as there is one."""
    waiting = collections.deque(enumerate(tasks))
    jobs = min(jobs, len(waiting), _most_workers())
    workers: list[_Worker] = []
    try:
        while waiting or any(worker.task is not None for worker in workers):
            for worker in workers:
                if waiting and worker.task is None:
                    worker.give(*waiting.popleft())
            while waiting and len(workers) < jobs:
                try:
                    workers.append(_Worker(plan, limits, workers))
                except OSError:  # the system allows no more processes or pipes
                    if not workers:
                        raise
                    jobs = len(workers)
                else:
                    workers[-1].give(*waiting.popleft())
            yield from _results(workers, limits)
    finally:
        for worker in workers:
            if worker.task is not None:
                worker.process.kill()
        for worker in workers:
            worker.stop()


def _results(workers: list[_Worker], limits: Limits) -> Iterator[tuple[int, FileResult]]:
    """Yields the results that arrive within a tick, and timeouts; removes dead workers."""
    busy = {worker.pipe: worker for worker in workers if worker.task is not None}
    begun = time.monotonic()
    ready = multiprocessing.connection.wait(list(busy), _TICK)
    seconds = min(time.monotonic() - begun, _TICK)
    for pipe, worker in busy.items():
        assert worker.task is not None
        worker.seconds += seconds
        if pipe in ready:
            yield worker.number, worker.take()
        elif worker.seconds >= limits.seconds:
            result = failed(worker.task.path, limits.too_slow)
            worker.kill()
            worker.task = None
            yield worker.number, result
        if worker.task is None and not worker.process.is_alive():
            worker.stop()
            workers.remove(worker)


def _most_workers() -> int:
    """The number of workers that the limit of open files (`ulimit -n`) allows."""
    try:
        import resource
    except ImportError:
        return 60  # Windows cannot wait for more at once
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max((files - _FILES_OF_A_RUN) // _FILES_OF_A_WORKER, 1)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Delays Ctrl-C until the child ignores it; otherwise the child would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how_it_ended(exit_code: Optional[int]) -> str:
    if exit_code is None or exit_code >= 0:
        how = f"with status {exit_code}"
    elif -exit_code == signal.SIGSEGV:
        how = "by a stack overflow in the parser: an expression is nested too deeply"
    elif -exit_code in (signal.SIGABRT, getattr(signal, "SIGKILL", 9)):
        how = f"by signal {-exit_code}: perhaps out of memory (the limit is "
        how += f"{memory_bound() / 2**30:.0f} GB)"
    else:
        how = f"by signal {-exit_code}"
    return f"could not be processed: its worker ended {how}; --exclude it"
