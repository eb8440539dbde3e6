"""The search of a run: finds the files to process among those below the given paths."""

from __future__ import annotations

import os
import sys
from typing import Optional, Union

from ..engine.prefilter import may_concern, may_concern_in
from ..files.discover import (
    Candidate,
    ProjectFile,
    Skipped,
    Warned,
    discover,
    words,
)
from ..files.printable import quoted, visible
from ..model import FileError
from ..project.search import ProjectSearch, is_project_file
from ..run.import_words import ImportWords
from ..workers.results import FileOutcome, Summary
from . import keras_target
from .keras_target import shown, warn
from .other_contrib import uses_other_contrib
from .request import Request
from .terminal import Progress
from .watch import LateError, Watch

__all__ = ["FileSearch", "Step"]

Step = Union[Candidate, FileOutcome]


class FileSearch:
    """The search of a run, which reads every file once.

    Attributes:
      steps: the files to process and, in order between them, the outcomes that are already known.
        Files without a legacy name, which are nearly all files, are counted but not kept.
      files: every file.
      imports: the words of their imports.
      project: gets what the files say about the Keras version; None if it is given.

    Args:
      request: what the run does.
      summary: gets the number of files.
      watch: limits the time for each file.
    """

    def __init__(self, request: Request, summary: Summary, watch: Watch) -> None:
        self._request = request
        self._limits = request.limits
        self._summary = summary
        self._watch = watch
        self._bytes_left = request.limits.search
        self.steps: list[Step] = []
        self.files: list[Candidate] = []
        self.imports = ImportWords()
        self.project = None if request.keras is not None else ProjectSearch()

    def run(self, progress: Progress) -> None:
        """Searches all files."""
        request = self._request
        describes = None if self.project is None else is_project_file
        for found in discover(
            request.paths, request.excludes, request.follow_links_outside, describes
        ):
            if isinstance(found, FileError):
                error = found._replace(path=shown(found.path))
                self.steps.append(FileOutcome(error.path, error=error))
            elif isinstance(found, Warned):
                progress.clear()
                why = visible(found.why)
                print(f"{quoted(shown(found.path))}: warning: {why}", file=sys.stderr)
            elif isinstance(found, ProjectFile):
                progress.clear()
                self._project_file(found.file)
            elif isinstance(found, Skipped):
                if request.verbose:
                    self.steps.append(FileOutcome(shown(found.path), note=found.why))
            else:
                candidate = found._replace(path=shown(found.path))
                self.files.append(candidate._replace(level=None))
                step = self._searched(candidate)
                if step is not None and (request.verbose or not _is_silent(step)):
                    self.steps.append(step)
                progress.at("Searching", self._summary.files)

    def _project_file(self, file: Candidate) -> None:
        assert self.project is not None
        try:
            with self._watch.step():
                keras_target.read_project_file(file, self.project)
        except LateError as error:
            if self._watch.is_over:
                raise
            warn(shown(file.path), 0, f"does not count for --keras auto: {error}")

    def _searched(self, candidate: Candidate) -> Optional[Step]:
        """The candidate if a rule could apply to it, otherwise its outcome, if any."""
        error = None
        try:
            with self._watch.step():
                concerns = self._concerns(candidate)
            if concerns and os.path.getsize(candidate.real) > self._limits.size:
                error = FileError(candidate.path, 0, self._limits.too_large)
        except OSError as problem:
            concerns, error = True, FileError(candidate.path, 0, words(problem))
        except LateError as late:
            if self._watch.is_over:
                raise
            concerns, error = True, FileError(candidate.path, 0, str(late))
        self._summary.files += 1
        if error is not None:
            return FileOutcome(candidate.path, error=error)
        if concerns:
            return candidate._replace(level=None)
        return FileOutcome(candidate.path, note="no legacy name in it")

    def _concerns(self, candidate: Candidate) -> bool:
        """Whether a rule could apply to the file, or it is too large to tell."""
        size = os.path.getsize(candidate.real)
        if size > self._limits.size:
            # Files that are too large to process are searched only to find out whether that is an
            # error. A sparse file is large at no cost, so all of them share one limit.
            if size > self._bytes_left:
                return True
            self._bytes_left -= size
            with open(candidate.real, "rb") as file:
                return may_concern_in(file)
        data = candidate.read()
        self.imports.add(candidate.real, data)
        if self.project is not None:
            self.project.evidence += self.project.source(candidate.path, candidate.real, data)
        self._summary.other_contrib += uses_other_contrib(data)
        return may_concern(data)


def _is_silent(step: Step) -> bool:
    return isinstance(step, FileOutcome) and step.error is None
