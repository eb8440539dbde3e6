"""The files of a run: read all, decide once for each program, then edit all.

1. The workers read the files with legacy names, and return their facts.
2. What decides about branches is followed into other files, as far as it leads (`FlagSearch`).
3. The files that may import these files are read for the names that they read.
4. The programs have at least the files that the known imports connect, and at most all files. If
   a decision differs between the two, the imports of all files are read.
5. `decide` decides, and the workers edit the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Callable

from ..decision.decide import Connections, decide
from ..decision.exports import ReExports, names_read, words_for
from ..decision.flags import FlagSearch
from ..decision.modules import Modules
from ..decision.programs import programs_of
from ..engine.prefilter import traits_hinted
from ..facts import NO_FACTS, SINGLE_FILE, Decision, FileFacts, Links, Made, Trait
from ..files.discover import Candidate
from ..model import FileResult
from .limits import Limits
from .outcomes import finished
from .pool import Workers
from .process_file import load
from .results import FileOutcome, Job, JobKind, Plan, Read, Spool

__all__ = ["FileSet", "edited_alone"]

_BATCH = 40
"""Files of which one job reads the links."""
_MOST_ROUNDS = 5
"""Searches for the readers of files; each is for the names that the one before has found."""
_OTHERS = ""
"""Stands for all files without legacy names."""


class FileSet:
    """The files with legacy names, and what is known about each.

    Args:
      candidates: these files.
      files: the absolute paths of all files of the run.
      hints: what the other files may have, as far as a search of their bytes shows.
      links: the links of files that are not Python, such as entry points.
      plan: what to do with each file.
      limits: the limits on one file.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        files: Sequence[str],
        hints: frozenset[Trait],
        links: Mapping[str, Links],
        plan: Plan,
        limits: Limits,
    ) -> None:
        self._candidates = candidates
        self._files = files
        self._hints = hints
        self._plan = plan
        self._limits = limits
        self._modules = Modules(files)
        self._reads = Spool[Read]()
        self._results = Spool[FileResult]()
        self._facts: dict[str, FileFacts] = {}
        self._links = dict(links)

    def work(self, jobs: int, done: Callable[[int], None]) -> None:
        """Edits each file in memory, after one decision for each program.

        Args:
          jobs: the number of worker processes.
          done: called with the number of files after each.
        """
        load()
        with Workers(self._plan, self._limits, jobs) as workers:
            self._read(workers, done)
            decisions = self._decide(workers)
            numbers = [number for number, read in enumerate(self._reads) if read.final is None]
            edits = [self._edit(self._candidates[number], decisions) for number in numbers]

            def source_of(index: int) -> bytes:
                return self._reads[numbers[index]].source

            for count, (index, result) in enumerate(workers.do(edits, source_of), 1):
                assert isinstance(result, FileResult)
                self._results[numbers[index]] = result
                done((len(self._candidates) + count) // 2)
        for number, read in enumerate(self._reads):
            if read.final is not None:
                self._results[number] = read.final

    def _edit(self, candidate: Candidate, decisions: Mapping[str, Decision]) -> Job:
        decision = decisions.get(candidate.real, SINGLE_FILE)
        return Job(JobKind.EDIT, candidate.path, candidate.real, decision=decision)

    def changed(self) -> Iterator[str]:
        """The absolute paths of the files that the results change."""
        for candidate, result in zip(self._candidates, self._results):
            if result.source != result.before:
                yield candidate.real

    def outcomes(self) -> Iterator[FileOutcome]:
        """Writes the files if the plan says so, and yields what to report, in their order."""
        for candidate, result in zip(self._candidates, self._results):
            yield finished(candidate.path, candidate.real, result, self._plan)

    def _read(self, workers: Workers, done: Callable[[int], None]) -> None:
        """Reads the files with legacy names."""
        jobs = (Job(JobKind.READ, candidate.path, candidate.real) for candidate in self._candidates)
        for count, (number, read) in enumerate(workers.do(jobs), 1):
            assert isinstance(read, Read)
            done(count // 2)
            self._reads[number] = read
            if read.error is None and read.facts != NO_FACTS:
                self._facts[self._candidates[number].real] = read.facts
            if read.facts == NO_FACTS:
                self._hints |= traits_hinted(read.source, self._hints)
            else:
                self._links[self._candidates[number].real] = read.facts.links
        self._facts = dict(sorted(self._facts.items()))

    def _decide(self, workers: Workers) -> Mapping[str, Decision]:
        """Decides, after reading as much of the other files as the decision depends on."""
        facts = self._facts
        exports = self._exports(workers)
        flags = self._flags(workers)
        self._read_readers(workers)
        flags.add_given({file: links.given for file, links in self._links.items()})
        known = Connections(
            programs=[],
            reads=names_read(self._links, self._modules),
            compared=names_read(
                {file: links for file, links in self._links.items() if self._compares(file)},
                self._modules,
            ),
            flags={file: flags.flags(file) for file in facts},
            texts={file: flags.texts(file) for file in facts},
            is_alone=len(self._files) == 1,
        )
        options = self._plan.options
        together = known._replace(
            programs=[frozenset([*facts, _OTHERS])], traits={_OTHERS: self._hints}
        )
        fine = decide(facts, self._with_programs(known, are_all_read=False), exports, options)
        coarse = decide(facts, together, exports, options)
        if not any(_differ(facts[file], fine[file], coarse[file]) for file in facts):
            return fine
        self._read_links(workers, None)
        return decide(facts, self._with_programs(known, are_all_read=True), exports, options)

    def _with_programs(self, known: Connections, are_all_read: bool) -> Connections:
        """Adds the programs, as far as the links that were read connect files."""
        files = list(self._facts)
        programs, imported = programs_of(files, self._links, self._modules, are_all_read)
        traits = {file: links.traits for file, links in self._links.items()}
        return known._replace(programs=programs, imported=imported, traits=traits)

    def _exports(self, workers: Workers) -> ReExports:
        """What files mean by their names: files without a place only if others need that."""
        exports = ReExports(self._facts, self._modules)
        while exports.unread:
            jobs = [Job(JobKind.EXPORTS, "", file) for file in sorted(exports.unread)]
            for number, found in workers.do(jobs):
                assert isinstance(found, dict)
                file = jobs[number].real
                self._facts[file] = self._facts[file]._replace(exports=found)
            exports = ReExports(self._facts, self._modules)
        return exports

    def _compares(self, file: str) -> bool:
        return Trait.TYPE_TEST in self._links[file].traits

    def _flags(self, workers: Workers) -> FlagSearch:
        """Follows what decides about branches into other files."""
        conditions = {
            file: known.conditions for file, known in self._facts.items() if known.conditions
        }
        imports = {file: links.imports for file, links in self._links.items()}
        search = FlagSearch(conditions, imports, self._modules)
        while True:
            questions = search.questions()
            if not questions:
                return search
            jobs = [Job(JobKind.MADE, "", file, names=names) for file, names in questions.items()]
            for number, answers in workers.do(jobs):
                assert isinstance(answers, dict)
                made: dict[str, Made] = answers
                search.add(jobs[number].real, made)

    def _read_readers(self, workers: Workers) -> None:
        """Reads the links of the files that may read names of those with legacy names.

        What a file imports whole, or under another name, others may read from there: so they are
        searched again, for the new names. After some rounds, all files are read.
        """
        targets = [file for file, known in self._facts.items() if known.groups]
        searched: frozenset[str] = frozenset()
        for _ in range(_MOST_ROUNDS):
            words = words_for(targets, self._links, self._modules)
            if words <= searched:
                return
            self._read_links(workers, tuple(sorted(words - searched)))
            searched |= words
        self._read_links(workers, None)

    def _read_links(self, workers: Workers, words: tuple[str, ...] | None) -> None:
        """Reads the links of the other files.

        With `words`, of those that may read modules with these names, or load files by name.
        """
        left = [file for file in self._files if file not in self._links]
        jobs = [
            Job(JobKind.LINKS, "", "", files=tuple(left[start : start + _BATCH]), words=words)
            for start in range(0, len(left), _BATCH)
        ]
        for _, links in workers.do(jobs):
            assert isinstance(links, dict)
            self._links.update(links)
        self._links = dict(sorted(self._links.items()))


def edited_alone(path: str, source: bytes, plan: Plan, limits: Limits) -> FileResult:
    """The result for a source from stdin, which is a program of its own."""
    load()
    with Workers(plan, limits, 1) as workers:
        ((_, read),) = workers.do([Job(JobKind.READ, path, path, source)])
        assert isinstance(read, Read)
        if read.error is not None:
            return FileResult(source, error=read.error, before=source)
        facts = {path: read.facts}
        alone = Connections([frozenset([path])], is_alone=True)
        decisions = decide(facts, alone, ReExports(facts, Modules([])), plan.options)
        job = Job(JobKind.EDIT, path, path, source, decision=decisions[path])
        ((_, result),) = workers.do([job])
    assert isinstance(result, FileResult)
    return result


def _differ(facts: FileFacts, fine: Decision, coarse: Decision) -> bool:
    """Whether two decisions about a file differ in what matters to it."""
    is_same = all(fine.on_shim.get(group) == coarse.on_shim.get(group) for group in facts.groups)
    return not is_same or bool(facts.asks & (fine.others ^ coarse.others))
