"""Processes one file in a worker: reads it, collects its facts and edits it.

What needs LibCST is imported in the methods: a run in which no file has a place never needs it.
"""

from __future__ import annotations

import collections
import gc
import os
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Optional, Union

from ..engine.prefilter import without_images
from ..engine.python_tree import SourceError, error_of
from ..engine.screen import names_made, note_without_place
from ..engine.tree_size import (
    MOST_MEMORY,
    PYTHON,
    memory_of_file,
    memory_of_json,
    memory_of_source,
)
from ..facts import UNDECIDED, UNREAD, Export, Links, Made
from ..files import atomic_write
from ..files.discover import words
from ..files.excludes import NOTEBOOK, is_data
from ..model import FileError, FileResult
from .limits import LateError, Limits, memory_limit
from .results import Job, JobKind, Plan, Read

if TYPE_CHECKING:
    from ..engine.data_file import DataWork
    from ..engine.transform import FileWork

    _Work = Union[FileWork, DataWork]

__all__ = ["Desk", "load"]

_MOST_KEPT = 160 * 1024 * 1024
"""Bytes of the trees that a worker keeps from reading a file to its edit, at most, as estimated.

Others are parsed again: with 48 MB, that was most files of tensorflow/tpu, 2 s of 7. The estimates
are those of the densest sources; with them, a worker took 80 MB there.
"""
_MOST_GARBAGE = 96 * 1024 * 1024
"""Bytes that the trees of files which failed take before they are collected, at most."""
_MOST_WORDS = 20_000
"""Words beside `import` in a file that cannot be parsed; one with more may import every file."""
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
        self._kept: collections.OrderedDict[str, tuple[_Work, int]]
        """The work on each file that is kept, with the bytes that its trees take."""
        self._kept = collections.OrderedDict()
        self._size_kept = 0
        self._garbage = 0
        """Bytes that the trees of files may take that were not finished as planned."""

    def collect_if_due(self) -> None:
        """Collects unused trees if so much has been read that there may be many."""
        if self._garbage > _MOST_GARBAGE:
            gc.collect()
            self._garbage = 0

    def do(self, job: Job) -> object:
        """Carries out a job. Never raises, never writes."""
        if job.kind is JobKind.SCREEN:
            return self._screen(job)
        if job.kind is JobKind.READ:
            return self._read(job)
        if job.kind is JobKind.EDIT:
            return self._edit(job)
        if job.kind is JobKind.EXPORTS:
            return self._exports(job)
        if job.kind is JobKind.MADE:
            return self._made(job)
        return self._links(job.files, job.words)

    def _screen(self, job: Job) -> Optional[FileResult]:
        """The result for a file without a place; None if LibCST must decide."""
        try:
            source = atomic_write.read(job.real, self._limits.size)
            self._make_room(memory_of_file(source, job.path))
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
            work, size = self._begin(source, job)
            facts = work.facts()
            if facts.is_decided:
                result = work.result(UNDECIDED)._replace(before=source)
                self._finish(work, size)
                return Read(source, facts, result=result)
            self._keep(job.real, work, size)
            return Read(source, facts)
        except Exception as error:  # an internal error fails this file only
            return Read(source or b"", error=self._error(job.path, error))

    def _edit(self, job: Job) -> FileResult:
        source = job.source or b""
        try:
            work, size = self._begin(source, job)
            result = work.result(job.decision)._replace(before=source)
            self._finish(work, size)
            return result
        except Exception as error:
            failure = self._error(job.path, error)
            return FileResult(source, error=failure, before=source)

    def _begin(self, source: bytes, job: Job) -> tuple[_Work, int]:
        """The work on a file, kept or new, and the bytes that its trees take."""
        kept = self._kept.pop(job.real, None)
        if kept is not None:
            self._size_kept -= kept[1]
            self._garbage += kept[1]
            return kept
        size = memory_of_file(source, job.path)
        self._make_room(size)
        return self._work(source, job), size

    def _finish(self, work: _Work, size: int) -> None:
        """Frees the trees of a file."""
        work.free()
        self._garbage -= size

    def _work(self, source: bytes, job: Job) -> _Work:
        """The work on a file, by its name."""
        from ..engine.data_file import DataWork
        from ..engine.transform import FileWork

        options = self._plan.options
        if is_data(job.path):
            return DataWork(source, options, job.path)
        return FileWork(source, options, job.path, job.real)

    def _exports(self, job: Job) -> Mapping[str, Export]:
        """What the top-level names of a file mean; nothing, if it cannot be read or parsed."""
        try:
            work, size = self._begin(atomic_write.read(job.real, self._limits.size), job)
            exports = work.exports()
            self._finish(work, size)
            return exports
        except Exception:
            return {}

    def _made(self, job: Job) -> Mapping[str, Made]:
        """What names of a file are made of; of nothing, if it cannot be read or parsed.

        Most files that are looked at only have an attribute of the same name, or not even that:
        tensorflow/tensor2tensor took 0.5 s to parse nine of them with LibCST.
        """
        source, names = b"", job.names
        try:
            if job.real not in self._kept:
                source = atomic_write.read(job.real, self._limits.size)
                names = self._names_made(source, names)
            if not names:
                return {}
            work, size = self._begin(source, job)
            made = work.made(names)
            self._keep(job.real, work, size)
            return made
        except Exception:
            return {}

    def _names_made(self, source: bytes, names: frozenset[str]) -> frozenset[str]:
        """Those of some names that a file may give a value."""
        size = memory_of_source(source, PYTHON)
        self._make_room(size)
        made = names_made(source, names)
        self._garbage -= size  # the tree has no cycles, so it is gone
        return made

    def _links(self, files: Iterable[str], words: Union[tuple[str, ...], None]) -> dict[str, Links]:
        """What files bind and import.

        With `words`, only of those that may read names of modules with these names, or load files
        by name.
        """
        from ..resolve.import_lines import ReaderSearch, compares_version

        search = None if words is None else ReaderSearch(words)
        found: dict[str, Links] = {}
        for file in files:
            try:
                source = atomic_write.read(file, self._limits.size)
            except OSError:
                continue  # the search has reported it
            is_notebook = file.endswith(NOTEBOOK)
            if is_notebook:
                source = without_images(source)
            is_asked = search is None or search.may_read(source, is_notebook)
            if is_asked or compares_version(source):
                found[file] = self._links_in(source, file)
        return found

    def _links_in(self, source: bytes, file: str) -> Links:
        """What one file binds and imports."""
        from ..engine.transform import UNKNOWN, links_of_sources, sources_in

        before = self._garbage
        try:
            self._make_room(memory_of_json(source) if file.endswith(NOTEBOOK) else 0)
            sources = sources_in(source, file)
            # Only the code of a notebook: its images count as more than all trees that are kept.
            self._make_room(sum(memory_of_source(code, PYTHON) for code in sources))
            links = links_of_sources(sources)
        except SourceError:
            links = UNKNOWN
        # The tree has no cycles, so it is gone; collecting often takes longer than the links.
        self._garbage = min(before, self._garbage) + len(source)
        return links if links.is_known else _links_of_unparsed(source)

    def _make_room(self, size: int) -> None:
        """Drops trees of other files that would take too much memory beside those of a file.

        They count as garbage from now on, also if reading the file fails; `_keep` takes them out
        again.

        Args:
          size: the estimate of its own, in bytes.
        """
        self._drop(MOST_MEMORY - size)
        if self._size_kept + size + self._garbage > MOST_MEMORY:
            gc.collect()
            self._garbage = 0
        self._garbage += size

    def _drop(self, most: int) -> None:
        """Drops the trees that were kept first until the others take at most `most` bytes."""
        while self._kept and self._size_kept > most:
            _, (work, size) = self._kept.popitem(last=False)
            self._size_kept -= size
            work.free()

    def _keep(self, real: str, work: _Work, size: int) -> None:
        self._kept[real] = work, size
        self._size_kept += size
        self._garbage -= size
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
            self._drop(0)
            return FileError(path, 0, f"needs more than {memory_limit()} of memory; --exclude it")
        if self._plan.tracebacks:
            traceback.print_exception(type(error), error, error.__traceback__)
        what = f"{type(error).__name__}: {error}"
        message = f"not rewritten: a rule failed ({what}); please report this, with the file"
        return FileError(path, 0, message)


def _links_of_unparsed(source: bytes) -> Links:
    """The links of a file that cannot be parsed: every word in its imports.

    With too many words, it may import any file.
    """
    from ..resolve.import_lines import RELATIVE, importing_lines, imports_package

    found = {RELATIVE} if imports_package(source) else set()
    for line in importing_lines(source):
        for word in _WORD.finditer(line.decode("utf-8", "replace")):
            found.add(word[0])
            if len(found) > _MOST_WORDS:
                return UNREAD
    return Links(imports=frozenset(found), is_known=False)
