"""Processes files in workers: in order, a few ahead of the reports, and past any crash.

A worker is a process of its own even for one job: only a process can be stopped in native code,
where the parser may overflow its stack on very deep nesting, or run for hours. A worker that dies,
or is killed because it takes too long, costs the file that it held.
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

from ..model import FileError
from .limits import Limits, memory_bound
from .results import FileOutcome, Plan
from .worker import WRITES, Task, work

__all__ = ["process_all"]

_AHEAD = 8
"""Files per worker that may wait for an earlier one: enough to keep it busy, few enough to hold."""

_FORKS = sys.platform == "linux"

_TICK = 1.0
"""Seconds after which the clocks of the workers are looked at; more than one never counts at once,
so that a run that was stopped (Ctrl-Z) for long goes on as if nothing had been."""

_FILES_OF_A_RUN = 40
_FILES_OF_A_WORKER = 4
"""Open files, with room to spare; workers inherit those of the workers before them."""

_TO_END = 10.0
"""Seconds for a worker to end by itself, with what it writes."""


class _Worker:
    """One process, the pipe to it, and the task that it holds."""

    def __init__(self, plan: Plan, limits: Limits, others: Sequence[_Worker]) -> None:
        context = multiprocessing.get_context("fork" if _FORKS else None)
        self.pipe, theirs = context.Pipe()
        self.task: Optional[Task] = None
        self.number = 0
        self.seconds = 0.0
        self.is_writing = False
        # A forked child has our ends of all pipes too. It must close them: while it lives, the
        # others would not see that we have closed ours.
        ours = [self.pipe, *(other.pipe for other in others)] if _FORKS else []
        self.process = context.Process(
            target=work, args=(theirs, ours, os.getpid(), plan, limits), daemon=True
        )
        with theirs, _no_interrupt():
            try:
                self.process.start()
            except OSError:
                self.pipe.close()
                raise

    def give(self, number: int, task: Task) -> None:
        self.number, self.task = number, task
        self.seconds, self.is_writing = 0.0, False
        with contextlib.suppress(OSError):  # where it has died, its pipe says so at once
            self.pipe.send(task)

    def take(self) -> Optional[FileOutcome]:
        """The outcome of its task; None where that is not there yet.

        Where the process has died, the outcome is the error that says so.
        """
        assert self.task is not None
        try:
            message = self.pipe.recv()
            if message == WRITES:
                self.is_writing = True
                self.pipe.send(None)
                return None
            outcome: FileOutcome = message
        except (EOFError, OSError):
            self.process.join()
            outcome = _failed(self.task.path, _how_it_ended(self.process.exitcode))
        self.task = None
        return outcome

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self) -> None:
        """Ends the process: at once, unless it writes a file."""
        if self.task is not None and not self.is_writing:
            self.process.kill()
        self.pipe.close()
        self.process.join(_TO_END)
        if self.process.exitcode is None:
            self.kill()


def process_all(
    tasks: Iterable[Task], plan: Plan, jobs: int, limits: Limits
) -> Iterator[FileOutcome]:
    """The outcome of each task, in the order of the tasks."""
    left = enumerate(tasks)
    jobs = min(jobs, _most_workers())
    workers: list[_Worker] = []
    done: dict[int, FileOutcome] = {}
    next_out = 0
    waiting: collections.deque[tuple[int, Task]] = collections.deque()
    try:
        exhausted = False
        while True:
            while not exhausted and len(waiting) + len(done) < jobs * _AHEAD:
                task = next(left, None)
                if task is None:
                    exhausted = True
                else:
                    waiting.append(task)
            while waiting:
                idle = next((one for one in workers if one.task is None), None)
                if idle is None:
                    if len(workers) >= jobs:
                        break
                    try:
                        idle = _Worker(plan, limits, workers)
                    except OSError:  # the system gives no more processes or pipes
                        if not workers:
                            raise
                        jobs = len(workers)
                        break
                    workers.append(idle)
                idle.give(*waiting.popleft())
            if all(worker.task is None for worker in workers):
                return
            for number, outcome in _outcomes(workers, limits):
                done[number] = outcome
            while next_out in done:
                yield done.pop(next_out)
                next_out += 1
    finally:
        for worker in workers:
            if worker.task is not None and not worker.is_writing:
                worker.process.kill()
        for worker in workers:
            worker.stop()


def _outcomes(workers: list[_Worker], limits: Limits) -> Iterator[tuple[int, FileOutcome]]:
    """What is ready within a tick, and what takes too long; takes dead workers out."""
    busy = {worker.pipe: worker for worker in workers if worker.task is not None}
    begun = time.monotonic()
    ready = multiprocessing.connection.wait(list(busy), _TICK)
    seconds = min(time.monotonic() - begun, _TICK)
    for pipe, worker in busy.items():
        assert worker.task is not None
        outcome = None
        if pipe in ready:
            outcome = worker.take()
        elif not worker.is_writing:
            worker.seconds += seconds
            if worker.seconds >= limits.seconds:
                outcome = _failed(worker.task.path, limits.too_slow)
                worker.kill()
                worker.task = None
        if outcome is not None:
            yield worker.number, outcome
            if not worker.process.is_alive():
                worker.stop()
                workers.remove(worker)


def _most_workers() -> int:
    """As many as leave open files to each, by the limit of the system (`ulimit -n`)."""
    try:
        import resource
    except ImportError:
        return 60  # Windows waits for no more than that at once
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max((files - _FILES_OF_A_RUN) // _FILES_OF_A_WORKER, 1)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Lets Ctrl-C wait: a child that it meets before it ignores it would print a traceback."""
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
        how = f"by signal {-exit_code}: perhaps for want of memory (it may take "
        how += f"{memory_bound() / 2**30:.0f} GB)"
    else:
        how = f"by signal {-exit_code}"
    return f"could not be processed: its worker ended {how}; --exclude it"


def _failed(path: str, message: str) -> FileOutcome:
    return FileOutcome(path, error=FileError(path, 0, message))
