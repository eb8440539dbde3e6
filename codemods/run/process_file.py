"""Processes one file in a worker: reads it, collects its facts and edits it.

What needs LibCST is imported in the methods: a run in which no file has a place never needs it.
"""

from __future__ import annotations

import collections
import gc
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Optional, Union

from ..engine.python_tree import SourceError, error_of
from ..engine.screen import note_without_place
from ..engine.tree_size import MOST_MEMORY, memory_of_file
from ..facts import UNDECIDED, UNREAD, Links, Made
from ..files import atomic_write
from ..files.discover import words
from ..files.excludes import is_data
from ..model import FileError, FileResult
from .limits import LateError, Limits, memory_bound
from .results import Job, JobKind, Plan, Read

if TYPE_CHECKING:
    from ..engine.data_file import DataWork
    from ..engine.transform import FileWork

__all__ = ["Desk", "importing_lines", "load"]

_MOST_KEPT = 48 * 1024 * 1024
"""Bytes of the trees that a worker keeps from reading a file to its edit, at most.

Others are parsed again. Each collection visits all of these trees, which takes 0.1 s.
"""
_MOST_GARBAGE = 96 * 1024 * 1024
"""Bytes that unused trees take before they are collected, at most."""
_MOST_WORDS = 20_000
"""Words beside `import` in a file that cannot be parsed; one with more may import every file."""
_IMPORTING = re.compile(rb"^[^\n]*\bimport\b[^\n]*", re.MULTILINE)
"""A line with `import`; without the anchor, other lines would be searched from each byte on."""
_WORD = re.compile(r"[^\W\d]\w*")


def load() -> None:
    """Imports what reads and edits files, before workers start that share it."""
    from ..engine import data_file, transform  # noqa: F401 - so that forks need not import them
    from ..rules.codes import rules

    rules()


class Desk:
    """What a worker works at: the files that it has read and not finished, as far as there is room.

    A file is parsed once, and its trees are kept until it is edited. If they would take too much
    memory, the file is parsed again.
    """

    def __init__(self, plan: Plan, limits: Limits) -> None:
        self._plan = plan
        self._limits = limits
        self._kept: collections.OrderedDict[str, Union[FileWork, DataWork]]
        self._kept = collections.OrderedDict()
        self._garbage = 0

    def is_garbage_due(self) -> bool:
        """Whether so much has been read that unused trees should be collected."""
        is_due = self._garbage > _MOST_GARBAGE
        if is_due:
            self._garbage = 0
        return is_due

    def do(self, job: Job) -> object:
        """Carries out a job. Never raises, never writes."""
        if job.kind is JobKind.SCREEN:
            return self._screen(job)
        if job.kind is JobKind.READ:
            return self._read(job)
        if job.kind is JobKind.EDIT:
            return self._edit(job)
        if job.kind is JobKind.MADE:
            return self._made(job)
        return self._links(job.files, job.stems)

    def _screen(self, job: Job) -> Optional[FileResult]:
        """The result for a file without a place; None if LibCST must decide."""
        try:
            source = atomic_write.read(job.real, self._limits.size)
            self._make_room(source, job.path)
            note = note_without_place(source, job.path, self._plan.options)
        except Exception:  # the file is read again, and its error reported
            return None
        return None if note is None else FileResult(source, note=note, before=source)

    def _read(self, job: Job) -> Read:
        """Reads a file that the search of the run has let through.

        It is read here, and not in the search: its bytes must not wait in memory behind other
        files, and whatever changes it until it is written is noticed.
        """
        source = job.source
        try:
            if source is None and os.stat(job.real).st_size > self._limits.size:
                return Read(b"", error=FileError(job.path, 0, self._limits.too_large))
            source = atomic_write.read(job.real) if source is None else source
            self._make_room(source, job.path)
            work = self._work(source, job)
            facts = work.facts()
            if facts.is_decided:
                return Read(source, facts, result=work.result(UNDECIDED)._replace(before=source))
            self._keep(job.real, work)
            return Read(source, facts)
        except Exception as error:  # an internal error fails this file only
            return Read(source or b"", error=self._error(job.path, error))

    def _edit(self, job: Job) -> FileResult:
        source = job.source or b""
        try:
            work = self._kept.pop(job.real, None)
            if work is None:
                self._make_room(source, job.path)
                work = self._work(source, job)
            else:
                self._garbage += work.size
            return work.result(job.decision)._replace(before=source)
        except Exception as error:
            failure = self._error(job.path, error)
            return FileResult(source, error=failure, before=source)

    def _work(self, source: bytes, job: Job) -> Union[FileWork, DataWork]:
        """The work on a file, by its name."""
        from ..engine.data_file import DataWork
        from ..engine.transform import FileWork

        options = self._plan.options
        if is_data(job.path):
            return DataWork(source, options, job.path)
        return FileWork(source, options, job.path, job.real)

    def _made(self, job: Job) -> Mapping[str, Made]:
        """What names of a file are made of; of nothing, if it cannot be read or parsed."""
        try:
            work = self._kept.get(job.real)
            if work is None:
                source = atomic_write.read(job.real, self._limits.size)
                self._make_room(source, job.path)
                work = self._work(source, job)
                self._keep(job.real, work)
            return work.made(job.names)
        except Exception:
            return {}

    def _links(self, files: Iterable[str], stems: Union[tuple[str, ...], None]) -> dict[str, Links]:
        """What files bind and import.

        With `stems`, only of those that contain one of these words, or load files by name.
        """
        from ..engine.transform import links_in
        from ..resolve.links import LOADERS

        words = tuple(os.fsencode(stem) for stem in stems or ())

        found: dict[str, Links] = {}
        for file in files:
            try:
                source = atomic_write.read(file, self._limits.size)
            except OSError:
                continue  # the search has reported it
            is_asked = stems is None or any(word in source for word in words)
            if not is_asked and LOADERS.search(source) is None:
                continue
            size = self._make_room(source, file)
            links = links_in(source, file)
            # The tree has no cycles, so it is gone; collecting often takes longer than the links.
            self._garbage += len(source) - size
            found[file] = links if links.is_known else _links_of_unparsed(source)
        return found

    def _make_room(self, source: bytes, path: str) -> int:
        """Drops trees of other files that would take too much memory beside those of a file.

        Returns:
          The estimate of its own, in bytes. It counts as garbage from now on, also if reading the
          file fails; `_keep` takes it out again.
        """
        size = memory_of_file(source, path)
        kept = self._drop(MOST_MEMORY - size)
        if kept + size + self._garbage > MOST_MEMORY:
            gc.collect()
            self._garbage = 0
        self._garbage += size
        return size

    def _drop(self, most: int) -> int:
        """Drops the trees that were kept first until the others take at most `most` bytes.

        Returns:
          The bytes that they take.
        """
        kept = sum(work.size for work in self._kept.values())
        while self._kept and kept > most:
            _, work = self._kept.popitem(last=False)
            kept -= work.size
            self._garbage += work.size
        return kept

    def _keep(self, real: str, work: Union[FileWork, DataWork]) -> None:
        self._kept[real] = work
        self._garbage -= work.size
        self._drop(_MOST_KEPT)

    def _error(self, path: str, error: Exception) -> FileError:
        """The error of a file that could not be processed."""
        if isinstance(error, (SourceError, RecursionError)):
            return error_of(path, error)
        if isinstance(error, OSError):
            return FileError(path, 0, words(error))
        if isinstance(error, LateError):
            return FileError(path, 0, str(error))
        if isinstance(error, MemoryError):
            self._kept.clear()
            limit = f"{memory_bound() / 2**30:.0f} GB"
            return FileError(path, 0, f"needs more than {limit} of memory; --exclude it")
        if self._plan.tracebacks:
            traceback.print_exception(type(error), error, error.__traceback__)
        what = f"{type(error).__name__}: {error}"
        message = f"not rewritten: a rule failed ({what}); please report this, with the file"
        return FileError(path, 0, message)


def importing_lines(source: bytes) -> Iterator[bytes]:
    """The imports of a source that cannot be parsed, each with the lines in which it goes on."""
    found = _IMPORTING.search(source)
    while found is not None:
        end = _end_of_import(source, found.start(), found.end())
        yield source[found.start() : end]
        found = _IMPORTING.search(source, end)


def _end_of_import(source: bytes, start: int, end: int) -> int:
    """Where the statement in a line ends: after its parentheses, and not at a backslash."""
    still_open = 0
    while True:
        code = source[start:end].partition(b"#")[0]
        still_open += code.count(b"(") - code.count(b")")
        is_continued = still_open > 0 or code.rstrip().endswith(b"\\")
        if not is_continued or end == len(source):
            return end
        start = end + 1
        end = source.find(b"\n", start)
        if end < 0:
            end = len(source)


def _links_of_unparsed(source: bytes) -> Links:
    """The links of a file that cannot be parsed: every word in its imports.

    With too many words, it may import any file.
    """
    found: set[str] = set()
    for line in importing_lines(source):
        for word in _WORD.finditer(line.decode("utf-8", "replace")):
            found.add(word[0])
            if len(found) > _MOST_WORDS:
                return UNREAD
    return Links(imports=frozenset(found), is_known=False)
