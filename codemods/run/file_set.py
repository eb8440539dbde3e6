"""Processes the files of a run: work on each, one decision for each program, then the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Callable

from ..files import atomic_write
from ..files.discover import Candidate
from ..model import ALONE, FileFacts, FileResult, Group, Surroundings, Target, with_followers
from .limits import Limits
from .pool import process_all
from .process_file import finished
from .programs import Modules, Programs
from .re_exports import ReExports
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
        self._candidates = candidates
        self._plan = plan
        self._limits = limits
        self._modules = Modules(files)
        self._results = Spool[FileResult]()
        self._facts: dict[str, FileFacts] = {}
        self._on_shim: dict[str, frozenset[Group]] = {}
        self._surroundings: dict[str, Surroundings] = {}
        self._programs: list[list[str]] = []
        self._compiles = words.compiles
        reals = sorted({one.real for one in candidates})
        if len(files) > 1:
            self._surroundings = {
                real: words.around(real, self._modules.find, self._read) for real in reals
            }
        if len(reals) > 1 and plan.options.target is Target.FINAL:
            programs = Programs(files, words.imports, self._modules, self._read, words.computed)
            self._programs = [one for one in programs.split(reals) if len(one) > 1]

    def work(self, jobs: int, done: Callable[[int], None]) -> None:
        """Rewrites each file in memory, and makes one decision for each program.

        Args:
          jobs: the number of worker processes.
          done: called with the number of files after each.
        """
        connected = {real for program in self._programs for real in program}
        if self._plan.options.target is Target.SHIM and len(self._candidates) > 1:
            connected.update(one.real for one in self._candidates)
        tasks = [
            Task(
                one.path,
                one.real,
                surroundings=self._surroundings.get(one.real, ALONE),
                shares=one.real in connected,
            )
            for one in self._candidates
        ]
        results = process_all(tasks, self._plan, jobs, self._limits)
        for count, (number, result) in enumerate(results, 1):
            self._results[number] = result
            if result.facts is not None:
                self._facts[tasks[number].real] = result.facts
            done(count)
        for program in self._programs:
            self._on_shim.update(_groups_on_shim(program, self._facts, self._compiles))

    def changed(self) -> Iterator[str]:
        """The absolute paths of the files that the decided results change."""
        for candidate, result in self._decided():
            if result.source != result.before:
                yield candidate.real

    def outcomes(self) -> Iterator[FileOutcome]:
        """Writes the files if the plan says so, and yields what to report, in their order."""
        for candidate, result in self._decided():
            yield finished(candidate.path, candidate.real, result, self._plan)

    def close(self) -> None:
        """Frees the disk space."""
        self._results.close()

    def _decided(self) -> Iterator[tuple[Candidate, FileResult]]:
        """The files, each with its result after the decision about its program."""
        re_exports = ReExports(self._facts, self._modules)
        for candidate, result in zip(self._candidates, self._results):
            on_shim, chosen = self._on_shim.get(candidate.real), result
            if on_shim and result.variants:
                largest = max(result.variants, key=len)
                chosen = result.variants.get(on_shim) or result.variants[largest]
            left = [one for one in chosen.findings if not re_exports.settle(one, candidate.real)]
            yield candidate, chosen._replace(findings=tuple(left), before=result.before)

    def _read(self, file: str) -> bytes:
        try:
            source = atomic_write.read(file)
        except OSError:
            return b""
        return source if len(source) <= self._limits.size else b""


def _groups_on_shim(
    program: Sequence[str], facts: Mapping[str, FileFacts], compiles: bool
) -> dict[str, frozenset[Group]]:
    """The groups of each file that go to the shim only because of other files of its program.

    A group of symbols goes to the shim in all of a program if one place of it needs that.
    """
    known = {file: facts[file] for file in program if file in facts}
    needs = frozenset(group for one in known.values() for group in one.on_shim)
    classes = {name for one in known.values() for name in one.classes}
    if classes >= {"final", "experimental", "tested"}:  # a test would no longer tell them apart
        needs |= {Group.KERAS_OPTIMIZERS}
    needs = with_followers(needs, compiles)
    return {file: needs & one.groups for file, one in known.items()}
