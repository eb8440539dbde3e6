"""Processes files in workers: in order, a few ahead of the reports, and past any crash.

A worker is a process of its own even for one job: the parser is native code that overflows its
stack on very deep nesting, which would end the run. A worker that dies costs the file that it held.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import multiprocessing
import multiprocessing.connection
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional, TypeVar

from .deep_stack import with_deep_stack
from .discover import Candidate
from .model import FileError
from .one_file import process
from .outcome import FileOutcome, Plan

__all__ = ["process_all", "with_room"]

_T = TypeVar("_T")

_AHEAD = 8
"""Files per worker that may wait for an earlier one: enough to keep it busy, few enough to hold."""

_FORKS = sys.platform == "linux"

_RECURSION_LIMIT = 20_000
"""Frames of Python for expressions as deep as generated ones are."""


class _Task(NamedTuple):
    number: int
    candidate: Candidate


class _Worker:
    """One process, the pipe to it, and the task that it holds."""

    def __init__(self, plan: Plan, others: Sequence[_Worker]) -> None:
        context = multiprocessing.get_context("fork" if _FORKS else None)
        self.pipe, theirs = context.Pipe()
        self.task: Optional[_Task] = None
        # A forked child has our ends of all pipes too. It must close them: while it lives, the
        # others would not see that we have closed ours.
        ours = [self.pipe, *(other.pipe for other in others)] if _FORKS else []
        self.process = context.Process(target=_work, args=(theirs, ours, plan), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task: _Task) -> None:
        self.task = task
        self.pipe.send((task.candidate.path, task.candidate.real))

    def take(self) -> FileOutcome:
        """The outcome of its task; where the process has died, the error that says so."""
        assert self.task is not None
        try:
            outcome: FileOutcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            outcome = _crashed(self.task.candidate.path, self.process.exitcode)
        self.task = None
        return outcome

    def stop(self) -> None:
        self.pipe.close()
        self.process.join()


def process_all(candidates: Iterable[Candidate], plan: Plan, jobs: int) -> Iterator[FileOutcome]:
    """The outcome of each candidate, in the order of the candidates."""
    tasks = (_Task(number, one) for number, one in enumerate(candidates))
    workers: list[_Worker] = []
    done: dict[int, FileOutcome] = {}
    next_out = 0
    waiting: collections.deque[_Task] = collections.deque()
    try:
        exhausted = False
        while True:
            while not exhausted and len(waiting) + len(done) < jobs * _AHEAD:
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    waiting.append(task)
            while waiting:
                idle = next((one for one in workers if one.task is None), None)
                if idle is None:
                    if len(workers) >= jobs:
                        break
                    idle = _Worker(plan, workers)
                    workers.append(idle)
                idle.give(waiting.popleft())
            busy = {worker.pipe: worker for worker in workers if worker.task is not None}
            if not busy:
                return
            for pipe in multiprocessing.connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                assert worker.task is not None
                number = worker.task.number
                done[number] = worker.take()
                if not worker.process.is_alive():
                    worker.stop()
                    workers.remove(worker)
            while next_out in done:
                yield done.pop(next_out)
                next_out += 1
    finally:
        for worker in workers:
            worker.stop()


def _work(pipe: Any, others: Sequence[Any], plan: Plan) -> None:
    """The life of a worker: takes paths until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run, between two files
    faulthandler.disable()  # the parent tells of a crash, in one line
    for other in others:
        other.close()
    # What is loaded stays; the trees of a file go with it. Collecting in between costs a tenth.
    gc.freeze()
    gc.disable()
    with_room(lambda: _serve(pipe, plan))


def with_room(function: Callable[[], _T]) -> _T:
    """Calls `function` with room for deeply nested expressions, in the parser and in our walks."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        return with_deep_stack(function)
    finally:
        sys.setrecursionlimit(limit)


def _serve(pipe: Any, plan: Plan) -> None:
    with contextlib.suppress(EOFError, OSError):  # nobody asks any more, or nobody listens
        while True:
            path, real = pipe.recv()
            pipe.send(process(path, real, plan))
            gc.collect()


def _crashed(path: str, exit_code: Optional[int]) -> FileOutcome:
    if exit_code is not None and exit_code < 0:
        how = f"by signal {-exit_code}"
        if -exit_code == signal.SIGSEGV:
            how = "by a stack overflow in the parser: an expression is nested too deeply"
    else:
        how = f"with status {exit_code}"
    message = f"could not be processed: its worker ended {how}; --exclude it"
    return FileOutcome(path, error=FileError(path, 0, message))
