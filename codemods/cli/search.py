"""The search of a run: finds the files to process, and what says which Keras version to target."""

from __future__ import annotations

import os
import sys
from typing import Optional, Union

from ..engine.prefilter import may_concern, may_concern_in, uses_other_contrib
from ..files.directories import TooLargeError
from ..files.discover import Candidate, ProjectFile, Skipped, Warned, discover, words
from ..files.excludes import Excludes
from ..files.printable import quoted, visible
from ..model import FileError, KerasChoice
from ..project.search import ProjectSearch, is_project_file, largest
from ..run.limits import LateError, Limits, Watch
from ..run.results import FileOutcome, Summary
from ..run.words import Words
from .request import Request, given_keras, shown
from .settings import load
from .terminal import Progress

__all__ = ["FileSearch", "Step", "keras_of_directory", "read_project_file", "warn"]

Step = Union[Candidate, FileOutcome]

_MOST_WAITING = 64 * 1024 * 1024
"""Bytes of files whose words are not read before a file of the run has a legacy name."""


class FileSearch:
    """The search of a run, which reads every file once.

    Attributes:
      steps: the files to process and, in order between them, the outcomes that are already known.
        Files without a legacy name, which are nearly all files, are counted but not kept.
      files: the path of every file, by its absolute path.
      words: what their words show.
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
        self._waiting: list[tuple[str, bytes]] = []
        self._may_wait = _MOST_WAITING
        self.steps: list[Step] = []
        self.files: dict[str, str] = {}
        self.words = Words()
        self.project = None if request.keras is not None else ProjectSearch()

    def run(self, progress: Progress) -> None:
        """Searches all files."""
        request = self._request
        describes = None if self.project is None else is_project_file
        paths = sorted(request.paths)  # the report must not depend on their order
        for found in discover(paths, request.excludes, request.follow_links_outside, describes):
            if isinstance(found, Candidate):
                step = self._searched(found)
                if step is not None:
                    self.steps.append(step)
                progress.at("Searching", self._summary.files)
            elif isinstance(found, FileError):
                error = found._replace(path=shown(found.path))
                self.steps.append(FileOutcome(error.path, error=error))
            elif isinstance(found, ProjectFile):
                progress.clear()
                self._project_file(found.file)
            elif isinstance(found, Warned):
                progress.clear()
                warn(shown(found.path), 0, found.why)
            elif request.verbose:
                assert isinstance(found, Skipped)
                self.steps.append(FileOutcome(shown(found.path), note=found.why))
        self._waiting.clear()

    def _project_file(self, file: Candidate) -> None:
        assert self.project is not None
        try:
            with self._watch.step:
                read_project_file(file, self.project)
        except LateError as error:
            if self._watch.is_over:
                raise
            warn(shown(file.path), 0, f"does not count for --keras auto: {error}")

    def _searched(self, candidate: Candidate) -> Optional[Step]:
        """The candidate if a rule could apply to it; otherwise its outcome, if it is reported."""
        self._summary.files += 1
        self.files[candidate.real] = candidate.path
        message = ""
        concerns = False
        try:
            with self._watch.step:
                try:
                    concerns = self._concerns(candidate, candidate.read(self._limits.size))
                except TooLargeError:
                    if self._concerns_large(candidate.real):
                        message = self._limits.too_large
        except OSError as problem:
            message = words(problem)
        except LateError as late:
            if self._watch.is_over:
                raise
            message = str(late)
        if message:
            path = shown(candidate.path)
            return FileOutcome(path, error=FileError(path, 0, message))
        if concerns:
            return Candidate(shown(candidate.path), candidate.real)
        if self._request.verbose:
            return FileOutcome(shown(candidate.path), note="no legacy name in it")
        return None

    def _concerns(self, candidate: Candidate, data: bytes) -> bool:
        """Whether a rule could apply to the file."""
        concerns = may_concern(data)
        self._waiting.append((candidate.real, data))
        self._may_wait = 0 if concerns else self._may_wait - len(data)
        if self._may_wait <= 0:
            self._read_words()
        if self.project is not None and self.project.may_decide(candidate.real, data):
            self.project.add(shown(candidate.path), candidate.real, data)
        if not concerns:  # the others count after the rewrite
            self._summary.other_contrib += uses_other_contrib(data)
        return concerns

    def _read_words(self) -> None:
        """Reads the words of the files that wait; most runs find no legacy name and need none."""
        for file, source in self._waiting:
            self.words.add(file, source)
        self._waiting.clear()

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


def read_project_file(file: Candidate, project: ProjectSearch, quiet: bool = False) -> None:
    """Reads a project file for `project`; one that cannot be read gives a warning if not `quiet`.

    Raises:
      LateError: if it takes too long.
    """
    path, most = shown(file.path), largest(file.real)
    try:
        project.add(path, file.real, file.read(most))
        return
    except TooLargeError:
        why = f"is larger than {most:,} bytes"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    if not quiet:
        warn(path, 0, f"does not count for --keras auto: {why}")


def keras_of_directory() -> str:
    """What `migrate` without options targets in the working directory, and why, as one line.

    Raises:
      SettingsError: if the settings of the project are invalid.
    """
    settings = load(["."])
    choice = given_keras(None, settings)
    if choice is None:
        try:
            with Watch(Limits()):
                excludes = Excludes(settings.values.get("exclude", []), settings.directory)
                choice = _searched_keras(excludes)
        except LateError as error:
            return f"not known: {error}"
    return visible(choice.words)


def _searched_keras(excludes: Excludes) -> KerasChoice:
    project = ProjectSearch()
    for found in discover(["."], excludes, describes=is_project_file):
        if isinstance(found, ProjectFile):
            read_project_file(found.file, project, quiet=True)
        elif isinstance(found, Candidate):
            try:
                project.add(shown(found.path), found.real, found.read(Limits().size))
            except OSError:
                continue  # `migrate` reports it
    return project.choice()


def warn(path: str, line: int, why: str) -> None:
    """Prints a warning about a place; line 0 means the whole file."""
    place = quoted(path) + (f":{line}" if line else "")
    print(f"{place}: warning: {visible(why)}", file=sys.stderr)
