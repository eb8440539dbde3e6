"""Processes the files of a run: work on each, one decision for each program, then the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Callable

from ..files import atomic_write
from ..files.discover import Candidate
from ..model import FileFacts, FileResult, Group, with_followers
from .limits import Limits
from .pool import process_all
from .process_file import finished
from .programs import Programs, ReExports
from .results import FileOutcome, Plan, Spool, Task
from .words import Words

__all__ = ["FileSet"]


class FileSet:
    """The files with legacy names, and what is known about each.

    Args:
      candidates: these files.
      files: the absolute paths of all files of the run.
      words: what the search has seen in them.
      plan: what to do with each file.
      limits: the limits on one file.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        files: Sequence[str],
        words: Words,
        plan: Plan,
        limits: Limits,
    ) -> None:
        self._plan = plan
        self._limits = limits
        self._results = Spool[FileResult]()
        self._facts: dict[str, FileFacts] = {}
        self._on_shim: dict[str, frozenset[Group]] = {}
        self._compiles = words.compiles
        self._programs = Programs(files, words, self._read)
        self._connected: list[list[str]] = []
        reals = sorted({one.real for one in candidates})
        shares = set(reals) if len(reals) > 1 else set()
        if not plan.options.to_shim:
            self._connected = [one for one in self._programs.split(reals) if len(one) > 1]
            shares = {real for program in self._connected for real in program}
        around = {real: self._programs.around(real, real in shares) for real in reals}
        self._tasks = [
            Task(one.path, one.real, surroundings=around[one.real]) for one in candidates
        ]

    def work(self, jobs: int, done: Callable[[int], None]) -> None:
        """Rewrites each file in memory, and makes one decision for each program.

        Args:
          jobs: the number of worker processes.
          done: called with the number of files after each.
        """
        results = process_all(self._tasks, self._plan, jobs, self._limits)
        for count, (number, result) in enumerate(results, 1):
            self._results[number] = result
            if result.facts is not None:
                self._facts[self._tasks[number].real] = result.facts
            done(count)
        for program in self._connected:
            self._on_shim.update(_groups_on_shim(program, self._facts, self._compiles))

    def changed(self) -> Iterator[str]:
        """The absolute paths of the files that the decided results change."""
        for task, result in self._decided():
            if result.source != result.before:
                yield task.real

    def outcomes(self) -> Iterator[FileOutcome]:
        """Writes the files if the plan says so, and yields what to report, in their order."""
        for task, result in self._decided():
            yield finished(task, result, self._plan)

    def _decided(self) -> Iterator[tuple[Task, FileResult]]:
        """The files, each with its result after the decision about its program."""
        re_exports = ReExports(self._facts, self._programs.modules)
        for task, result in zip(self._tasks, self._results):
            on_shim, chosen = self._on_shim.get(task.real), result
            if on_shim and result.variants:
                largest = max(result.variants, key=len)
                chosen = result.variants.get(on_shim) or result.variants[largest]
            left = [one for one in chosen.findings if not re_exports.settle(one, task.real)]
            yield task, chosen._replace(findings=tuple(left), before=result.before)

    def _read(self, file: str) -> bytes:
        try:
            source = atomic_write.read(file)
        except OSError:
            return b""
        return source if len(source) <= self._limits.size else b""


def _groups_on_shim(
    program: Sequence[str], facts: Mapping[str, FileFacts], compiles: bool
) -> dict[str, frozenset[Group]]:
    """The groups of each file that go to the shim only because of other files of its program."""
    known = {file: facts[file] for file in program if file in facts}
    needs = frozenset(group for one in known.values() for group in one.on_shim)
    classes = {name for one in known.values() for name in one.classes}
    if classes >= {"final", "experimental", "tested"}:  # a test would no longer tell them apart
        needs |= {Group.KERAS_OPTIMIZERS}
    needs = with_followers(needs, compiles)
    return {file: needs & one.groups for file, one in known.items()}
