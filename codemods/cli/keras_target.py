"""The Keras version to target for a project: from the settings, or from the project's files."""

from __future__ import annotations

import os
import sys
from typing import Optional

from ..files.discover import Candidate, Excludes, ProjectFile, discover
from ..files.printable import quoted, visible
from ..model import KerasChoice
from ..project.choice import choose
from ..project.search import ProjectSearch, is_project_file, largest
from ..workers.limits import Limits
from .settings import Settings, load
from .watch import LateError, Watch

__all__ = ["described", "given", "read_project_file", "shown", "warn"]


def given(option: Optional[str], settings: Settings) -> Optional[KerasChoice]:
    """The Keras version that the command line or the settings give; None for `auto`.

    Args:
      option: the value of `--keras`; None if it was not passed.
      settings: the settings of the project.
    """
    value = settings.values.get("keras", "auto") if option is None else option
    if value == "auto":
        return None
    if option is not None:
        return KerasChoice(int(option), f"--keras {option}", is_given=True)
    return KerasChoice(int(value), f"keras = {value} in {quoted(shown(settings.path))}")


def read_project_file(file: Candidate, project: ProjectSearch, quiet: bool = False) -> None:
    """Adds the evidence in a project file; a file that cannot be read gives a warning.

    Args:
      file: the file.
      project: the evidence so far.
      quiet: whether to print no warning.
    """
    path = shown(file.path)
    why = ""
    try:
        if os.path.getsize(file.real) <= largest(file.real):
            project.evidence += project.project_file(path, file.real, file.read())
            return
        why = f"is larger than {largest(file.real):,} bytes"
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    if not quiet:
        warn(path, 0, f"does not count for --keras auto: {why}")


def described() -> str:
    """What `migrate` without options targets in the working directory, and why, as one line.

    Raises:
      SettingsError: if the settings of the project are invalid.
    """
    settings = load(["."])
    choice = given(None, settings)
    if choice is None:
        project = ProjectSearch()
        try:
            with Watch(Limits()):
                _read_all(project, settings)
        except LateError as error:
            return f"not known: {error}"
        choice = choose(project.evidence)
    return visible(choice.words)


def _read_all(project: ProjectSearch, settings: Settings) -> None:
    excludes = Excludes(settings.values.get("exclude", []), settings.directory)
    for found in discover(["."], excludes, describes=is_project_file):
        if isinstance(found, ProjectFile):
            read_project_file(found.file, project, quiet=True)
        elif isinstance(found, Candidate):
            _read_source(found, project)
    list(project.finish())


def _read_source(candidate: Candidate, project: ProjectSearch) -> None:
    try:
        if os.path.getsize(candidate.real) <= Limits().size:
            data = candidate.read()
            project.evidence += project.source(candidate.path, candidate.real, data)
    except OSError:
        return  # `migrate` reports it


def shown(path: str) -> str:
    """The path relative to the working directory if there is a relative path."""
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return path


def warn(path: str, line: int, why: str) -> None:
    """Prints a warning about a place; line 0 means the whole file."""
    place = quoted(path) + (f":{line}" if line else "")
    print(f"{place}: warning: {visible(why)}", file=sys.stderr)
