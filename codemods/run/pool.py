"""Processes files in worker processes, within limits and regardless of crashes.

There is a worker process even for `--jobs 1`, because only a process can be stopped while native
code runs: on very deep nesting the parser can overflow its stack or run for hours. If a worker
dies, or is killed because it takes too long, only the file that it was processing fails. Only where
the system allows no further process, such as below `ulimit -u`, is the work done in this one.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Callable, Optional

from tf_lossscale._process import signals_delayed

from .limits import LateError, Limits, Watch, bound_memory, memory_bound, memory_limit
from .outcomes import failed
from .process_file import Desk
from .results import Job, Plan
from .worker import ENDING_SIGNALS, with_larger_stack_here, work

__all__ = ["Workers"]

_FORKS = sys.platform == "linux"

_TICK = 1.0
"""Seconds between checks of the time limit. A longer gap counts as one tick, so that a run can be
suspended (Ctrl-Z) and resumed without exceeding the limit."""

_FILES_OF_A_RUN = 40
_FILES_OF_A_WORKER = 4
"""Open files needed, with a margin; a worker inherits the open files of earlier workers."""

_TO_END = 10.0
"""Seconds to wait for a worker to finish writing and exit."""


class _Worker:
    """A worker process, the pipe to it, its current job, and the files that it has read."""

    def __init__(self, plan: Plan, limits: Limits, others: Sequence[_Worker]) -> None:
        context = multiprocessing.get_context("fork" if _FORKS else None)
        self.pipe, child_pipe = context.Pipe()
        self.job: Optional[Job] = None
        self.files: list[str] = []
        self.number = 0
        self.seconds = 0.0
        # A forked child inherits our ends of all pipes and must close them; otherwise the other
        # workers would not notice that we have closed ours.
        our_pipes = [self.pipe, *(other.pipe for other in others)] if _FORKS else []
        self.process = context.Process(
            target=work, args=(child_pipe, our_pipes, os.getpid(), plan, limits), daemon=True
        )
        with child_pipe, _no_signals():
            try:
                self.process.start()
            except OSError:
                self.pipe.close()
                raise

    def give(self, number: int, job: Job) -> None:
        self.number, self.job = number, job
        self.seconds = 0.0
        with contextlib.suppress(OSError):  # if the worker has died, `take` notices
            self.pipe.send(job)

    def take(self) -> object:
        """Returns what the job gives; a failure if the process has died."""
        assert self.job is not None
        try:
            result: object = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            result = failed(self.job, _how_it_ended(self.process.exitcode))
        self.job = None
        return result

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self) -> None:
        """Ends the process, at once if it is busy."""
        if self.job is not None:
            self.process.kill()
        self.pipe.close()
        self.process.join(_TO_END)
        if self.process.exitcode is None:
            self.kill()


_Numbered = tuple[int, Job]
"""A job and its number."""


class _Waiting:
    """The jobs that wait: those that one worker must do, and those that any can do.

    Each worker takes its next job without a look at the others' jobs: a run can have 100,000 files.

    Args:
      jobs: the jobs.
      homes: the worker that has read a file, for each file.
    """

    def __init__(self, jobs: Iterable[Job], homes: Mapping[str, _Worker]) -> None:
        self.new: collections.deque[_Numbered] = collections.deque()
        """The jobs for files that no worker has read."""
        self._of: dict[_Worker, collections.deque[_Numbered]] = {}
        for number, job in enumerate(jobs):
            home = homes.get(job.real)
            queue = self.new if home is None else self._of.setdefault(home, collections.deque())
            queue.append((number, job))

    def __bool__(self) -> bool:
        return bool(self.new) or any(self._of.values())

    def next_for(self, worker: _Worker) -> Optional[_Numbered]:
        """Takes out the next job for a worker; None if the others must do what is left."""
        queue = self._of.get(worker) or self.new
        return queue.popleft() if queue else None

    def release(self, worker: _Worker) -> None:
        """Lets the other workers do the jobs of one that has died."""
        self.new.extend(self._of.pop(worker, ()))

    def take_all(self) -> Iterator[_Numbered]:
        """Takes out every job."""
        for worker in list(self._of):
            self.release(worker)
        while self.new:
            yield self.new.popleft()


class Workers:
    """The worker processes of a run, which start when there is work and end with the block.

    A worker keeps the trees of a file that it has read, so the further jobs for a file go to the
    same worker, if it is still there.

    Args:
      plan: what to do with each file.
      limits: the limits on one job.
      most: the number of processes.
    """

    def __init__(self, plan: Plan, limits: Limits, most: int) -> None:
        self._plan = plan
        self._limits = limits
        self._most = min(most, _most_workers())
        self._workers: list[_Worker] = []
        self._homes: dict[str, _Worker] = {}
        self._waiting = _Waiting((), {})
        self._source_of: Optional[Callable[[int], bytes]] = None
        self._desk: Optional[Desk] = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            if worker.job is not None:
                worker.process.kill()
        for worker in self._workers:
            worker.stop()

    def do(
        self, jobs: Iterable[Job], source_of: Optional[Callable[[int], bytes]] = None
    ) -> Iterator[tuple[int, object]]:
        """Yields the number of each job, from 0, and what it gives, as soon as it is done.

        Args:
          jobs: the jobs.
          source_of: the bytes of the file of a job, by its number; they are read when the job
            begins, so that those of all files are not in memory at the same time.
        """
        waiting = self._waiting = _Waiting(jobs, self._homes)
        self._source_of = source_of
        while waiting or any(worker.job is not None for worker in self._workers):
            self._give_out(waiting)
            if waiting and not self._workers:
                yield from self._do_here(waiting)
                return
            yield from self._results()

    def _give_out(self, waiting: _Waiting) -> None:
        """Gives each idle worker a job, and starts more workers for those that any can do.

        A job for a file that a worker has read waits for that worker, even if others are idle.
        """
        for worker in self._workers:
            if worker.job is None:
                self._give_next(worker, waiting)
        while waiting.new and len(self._workers) < self._most:
            if not self._start():
                return
            self._give_next(self._workers[-1], waiting)

    def _start(self) -> bool:
        """Starts a worker; False if the system allows no more processes or pipes."""
        try:
            with signals_delayed():  # so that each worker that has started is ended
                self._workers.append(_Worker(self._plan, self._limits, self._workers))
        except OSError:
            self._most = len(self._workers)
            return False
        return True

    def _do_here(self, waiting: _Waiting) -> Iterator[tuple[int, object]]:
        """Does jobs in this process, within the limits that hold without another one."""
        if self._desk is None:
            self._desk = Desk(self._plan, self._limits)
            bound_memory(memory_bound())
            with_larger_stack_here()
        for number, job in waiting.take_all():
            try:
                with Watch(self._limits) as watch, watch.step():
                    result = self._desk.do(self._with_source(number, job))
            except LateError as error:
                result = failed(job, str(error))
            self._desk.collect_if_due()
            yield number, result

    def _give_next(self, worker: _Worker, waiting: _Waiting) -> None:
        """Gives a worker the next job that no other one must do."""
        found = waiting.next_for(worker)
        if found is not None:
            number, job = found
            if job.real:
                self._homes[job.real] = worker
                worker.files.append(job.real)
            worker.give(number, self._with_source(number, job))

    def _with_source(self, number: int, job: Job) -> Job:
        if self._source_of is None:
            return job
        return job._replace(source=self._source_of(number))

    def _results(self) -> Iterator[tuple[int, object]]:
        """Yields the results that arrive within a tick, and timeouts; removes dead workers."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        begun = time.monotonic()
        ready = multiprocessing.connection.wait(list(busy), _TICK)
        seconds = min(time.monotonic() - begun, _TICK)  # not those for which the run is suspended
        for pipe, worker in busy.items():
            assert worker.job is not None
            worker.seconds += seconds
            if pipe in ready:
                yield worker.number, worker.take()
            elif worker.seconds >= self._limits.seconds:
                result = failed(worker.job, self._limits.too_slow)
                worker.kill()
                worker.job = None
                yield worker.number, result
            if worker.job is None and not worker.process.is_alive():
                self._remove(worker)

    def _remove(self, worker: _Worker) -> None:
        """Forgets a worker that has died, and the files that it has read."""
        worker.stop()
        self._workers.remove(worker)
        self._waiting.release(worker)
        for file in worker.files:
            if self._homes.get(file) is worker:
                del self._homes[file]


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
def _no_signals() -> Iterator[None]:
    """Delays signals until the child ignores them, and the parent can end the child."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how_it_ended(exit_code: Optional[int]) -> str:
    if exit_code is None or exit_code >= 0:
        how = f"with status {exit_code}"
    elif -exit_code == signal.SIGSEGV:
        how = "by a stack overflow in the parser: an expression is nested too deeply"
    elif -exit_code == signal.SIGABRT:
        how = f"by signal 6: perhaps out of memory (the limit is {memory_limit()})"
    elif -exit_code == getattr(signal, "SIGKILL", 9):  # by the system, whose limit is not known
        how = "by signal 9: perhaps the machine or the container is out of memory"
    else:
        how = f"by signal {-exit_code}"
    return f"could not be processed: its worker ended {how}; --exclude it"
