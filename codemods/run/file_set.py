"""Processes the files of a run: work on each, one decision for each program, then the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Callable

from ..files import atomic_write
from ..files.discover import Candidate
from ..model import ALONE, FileFacts, FileResult, Group, Surroundings, Target, with_followers
from .limits import Limits
from .pool import process_all
from .process_file import finished
from .programs import Modules, Programs
from .re_exports import is_settled
from .results import FileOutcome, FileWork, Plan, Spool, Task
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
        self._works = Spool[FileWork]()
        self._facts: dict[str, FileFacts] = {}
        self._on_shim: dict[str, frozenset[Group]] = {}
        reals = sorted({one.real for one in candidates})
        self._surroundings: dict[str, Surroundings] = {}
        self._programs: list[list[str]] = []
        self._compiles = words.compiles
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
        jobs = max(1, min(jobs, len(tasks)))
        for number, work in enumerate(process_all(tasks, self._plan, jobs, self._limits), 1):
            self._works.append(work)
            if work.result.facts is not None:
                self._facts[work.real] = work.result.facts
            done(number)
        self._on_shim = _groups_on_shim(self._programs, self._facts, self._compiles)

    def changed(self) -> Iterator[str]:
        """The absolute paths of the files that the decided results change."""
        for work in self._works:
            if self._decided(work).source != work.source:
                yield work.real

    def outcomes(self) -> Iterator[FileOutcome]:
        """Writes the files if the plan says so, and yields what to report, in their order."""
        for work in self._works:
            yield finished(work, self._decided(work), self._plan)

    def close(self) -> None:
        """Frees the disk space."""
        self._works.close()

    def _decided(self, work: FileWork) -> FileResult:
        """The result of a file after the decision about its program."""
        result, on_shim = work.result, self._on_shim.get(work.real, frozenset())
        if on_shim:
            largest = max(result.variants, key=len, default=frozenset())
            result = result.variants.get(on_shim) or result.variants.get(largest) or result
        kept = [
            one
            for one in result.findings
            if not is_settled(one, work.real, self._facts, self._modules)
        ]
        return result._replace(findings=tuple(kept), facts=None, variants={})

    def _read(self, file: str) -> bytes:
        try:
            source = atomic_write.read(file)
        except OSError:
            return b""
        return source if len(source) <= self._limits.size else b""


def _groups_on_shim(
    programs: Iterable[Iterable[str]], facts: Mapping[str, FileFacts], compiles: bool
) -> dict[str, frozenset[Group]]:
    """The groups of each file that go to the shim only because of other files of its program.

    A group of symbols goes to the shim in all of a program if one place of it needs that.
    """
    found = {}
    for program in programs:
        known = [file for file in program if file in facts]
        needs = frozenset(group for file in known for group in facts[file].on_shim)
        classes = {name for file in known for name in facts[file].classes}
        if classes >= {"final", "experimental", "tested"}:  # a test would no longer tell them apart
            needs |= {Group.KERAS_OPTIMIZERS}
        needed = with_followers(needs, compiles)
        for file in known:
            found[file] = needed & facts[file].groups
    return found
