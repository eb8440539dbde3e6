"""The search of a run: finds the files to process, and what says which Keras version to target."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable
from typing import Optional, Union

from ..engine.prefilter import (
    may_concern,
    may_concern_in,
    may_name_path,
    traits_hinted,
    uses_other_contrib,
    without_images,
)
from ..facts import Links, Trait
from ..files.directories import TooLargeError
from ..files.discover import Candidate, Note, NoteKind, discover, project_files_above, words
from ..files.excludes import MOST_DATA, NOTEBOOK
from ..files.printable import relative, visible
from ..model import FileError, KerasChoice
from ..project.entry_points import has_entry_points, links_of_configuration
from ..project.evidence import ProjectSearch, is_project_file, largest
from ..project.requirements import Requirements, is_requirements_file
from ..reports.earlier import is_report
from ..reports.text import problem_line
from ..run.baseline import is_baseline
from ..run.limits import LateError, Watch
from ..run.results import FileOutcome
from .request import Request
from .terminal import Messages

__all__ = ["FileSearch", "keras_of_directory"]


class FileSearch:
    """The search of a run, which reads every file once.

    Attributes:
      request: what the run does.
      steps: the files to process and, in order between them, the outcomes that are already known.
        Files without a legacy name, which are nearly all files, are counted but not kept.
      files: the absolute path of every file.
      data_files: the absolute path of every file that is not Python, but may name a legacy path.
      links: the modules that configurations make other programs load, such as entry points.
      hints: what the files that are not processed may have.
      requirements: the files that say what is installed, if the run writes.
      other_contrib: how many of those that are not processed use the rest of `tf.contrib`.

    Args:
      request: what the run does.
      watch: limits the time for each file.
      messages: gets warnings and the progress.
    """

    def __init__(self, request: Request, watch: Watch, messages: Messages) -> None:
        self.request = request
        self._limits = request.limits
        self._watch = watch
        self._messages = messages
        self._bytes_left = self._limits.search
        self._outputs = request.outputs
        self._decided: Optional[KerasChoice] = None
        self._is_keras_given = request.choice is not None
        self._project = ProjectSearch()
        self.requirements = Requirements() if request.write else None
        self.steps: list[Union[Candidate, FileOutcome]] = []
        self.files: list[str] = []
        self.data_files: list[str] = []
        self.links: dict[str, Links] = {}
        self.hints: set[Trait] = set()
        self.other_contrib = 0

    def run(self) -> None:
        """Searches all files."""
        request = self.request
        paths = sorted(request.paths)  # the report must not depend on their order
        outside = request.follow_links_outside
        self._take(discover(paths, request.excludes, outside, self._describes, with_data=True))

    def _describes(self, path: str) -> bool:
        """Whether to read a file that is no source."""
        return is_project_file(path) or self._has_requirements(path)

    def _has_requirements(self, path: str) -> bool:
        """Whether to read in a file what is installed where the program runs."""
        return self.requirements is not None and is_requirements_file(path)

    def run_stdin(self, source: bytes) -> None:
        """Searches a source from stdin, and the project files above it."""
        name = self.request.stdin_filename
        self._add_evidence(name, os.path.abspath(name), source)
        self._take(project_files_above(name, self.request.excludes, is_project_file))

    def decided_keras(self) -> KerasChoice:
        """The Keras version to target, which the request gets if it does not give one.

        The first call prints warnings; without evidence in the project, it looks at what is
        installed, which takes as long as the search of a hundred files.
        """
        if self._decided is None:
            self._decided = self._decide_keras()
        return self._decided

    def _decide_keras(self) -> KerasChoice:
        choice = self.request.choice
        if choice is None:
            choice = self._project.choice()
        choice = choice._replace(sets_legacy_keras=self._project.sets_legacy_keras())
        self.request.choice = choice
        for warning in choice.warnings:
            self._messages.say(problem_line("warning", warning))
        for line in (choice.words, *choice.details) if self.request.verbose else ():
            self._messages.say(visible(line))
        return choice

    def _take(self, found: Iterable[Union[Candidate, Note]]) -> None:
        """Sorts what the search finds: candidates, and notes about paths that it left out.

        A warning is printed at once. A path that cannot be read is an outcome with an error. Why
        others were left out is an outcome only with `-v`.
        """
        for item in found:
            note = item if isinstance(item, Note) else self._searched(item)
            if note is not None:
                path = relative(note.path)
                problem = FileError(path, 0, note.why)
                if note.kind is NoteKind.WARNING:
                    self._messages.say(problem_line("warning", problem))
                elif note.kind is NoteKind.ERROR:
                    self.steps.append(FileOutcome(path, error=problem))
                elif self.request.verbose:
                    self.steps.append(FileOutcome(path, note=note.why))
            self._messages.at("Searching", len(self.files))

    def _searched(self, file: Candidate) -> Optional[Note]:
        """Searches a file; returns why that failed, and the search goes on."""
        try:
            with self._watch.step():
                if file.is_source:
                    self._source(file)
                elif file.is_data:
                    self._data(file)
                else:
                    self._describing(file, file.read(largest(file.real)))
            return None
        except OSError as error:
            why = words(error)
        except LateError as error:
            if self._watch.is_over:
                raise
            why = str(error)
        if file.is_source:
            return Note(file.path, NoteKind.ERROR, why)
        if self._is_keras_given and not (file.is_data or self._has_requirements(file.real)):
            return None
        what = "" if file.is_data else "does not count for --keras auto: "
        return Note(file.path, NoteKind.WARNING, what + why)

    def _describing(self, file: Candidate, data: bytes) -> None:
        """Takes from a file what it says about the project."""
        self._project.add(relative(file.path), file.real, data)
        if self.requirements is not None:
            self.requirements.add(relative(file.path), data)

    def _source(self, file: Candidate) -> None:
        """Adds the file to the steps if a rule could apply to it, or if that is reported."""
        self.files.append(file.real)
        try:
            concerns = self._concerns(file, file.read(self._limits.size))
        except TooLargeError as error:
            concerns = False
            if self._concerns_large(file.real):
                raise TooLargeError(error.errno, self._limits.too_large) from None
        if concerns:
            self.steps.append(Candidate(relative(file.path), file.real))
        elif self.request.verbose:
            self.steps.append(FileOutcome(relative(file.path), note="no legacy name in it"))

    def _data(self, file: Candidate) -> None:
        """Adds a file that is not Python to the steps if it may name a legacy path."""
        if file.real in self._outputs:
            return
        self.data_files.append(file.real)
        with contextlib.suppress(TooLargeError):  # not a configuration
            data = file.read(min(MOST_DATA, self._limits.size))
            if has_entry_points(file.real):
                self.links[file.real] = links_of_configuration(data.decode("utf-8-sig", "replace"))
            if may_name_path(data) and not (is_report(data) or is_baseline(data)):
                self.steps.append(Candidate(relative(file.path), file.real, is_data=True))

    def _concerns(self, file: Candidate, data: bytes) -> bool:
        """Whether a rule could apply to the file."""
        if file.real.endswith(NOTEBOOK):
            data = without_images(data)
        concerns = may_concern(data)
        self._add_evidence(relative(file.path), file.real, data)
        if self.requirements is not None:
            self.requirements.add(relative(file.path), data)
        if not concerns:  # the others count after the rewrite
            self.other_contrib += uses_other_contrib(data)
            self.hints |= traits_hinted(data, self.hints)
        return concerns

    def _add_evidence(self, path: str, real: str, data: bytes) -> None:
        """Adds what a Python file or notebook says about the Keras of the project."""
        if not self._project.may_decide(real, data):
            return
        if real.endswith(NOTEBOOK):
            from ..engine.notebook import code_cells  # late: few notebooks need it

            self._project.add_cells(path, code_cells(data))
        else:
            self._project.add(path, real, data)

    def _concerns_large(self, real: str) -> bool:
        """Whether a rule could apply to a file that is too large to process, or to be searched.

        It is searched only to find out whether that is an error. A sparse file is large at no cost,
        so all of them share one limit.
        """
        size = os.path.getsize(real)
        if size > self._bytes_left:
            return True
        self._bytes_left -= size
        with open(real, "rb") as file:
            return may_concern_in(file)


def keras_of_directory() -> str:
    """What `migrate` without options targets in the working directory, and why, as one line.

    Raises:
      SettingsError: if the settings of the project are invalid.
    """
    request = Request.of(argparse.Namespace(paths=["."], settings=True))
    try:
        with Watch(request.limits) as watch:
            search = FileSearch(request, watch, Messages(quiet=True))
            if request.choice is None:
                search.run()
            return visible(search.decided_keras().words)
    except LateError as error:
        return f"not known: {error}"
