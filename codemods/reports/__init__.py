"""The report formats. Each module writes the outcomes of a run, in order, to a text stream."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Optional, TextIO

from ..files import atomic_write
from ..files.directories import Directory, SwappedError
from ..run.results import FileOutcome, Summary

__all__ = ["FORMATS", "Report", "parse", "replacing", "write"]

FORMATS = {"text": "text", "json": "json_", "sarif": "sarif", "github": "github", "html": "html"}
"""Maps a format to the module that writes it, which is imported on first use."""


class Report(NamedTuple):
    """A requested report: its format, and its file or None for stdout."""

    format: str
    file: Optional[str]


def parse(value: str) -> Report:
    """Parses `FORMAT` or `FORMAT:FILE`.

    Raises:
      ValueError: if the format is unknown or the file name is empty.
    """
    name, colon, file = value.partition(":")
    if name not in FORMATS:
        raise ValueError(f"unknown report format {name!r}; the formats are {', '.join(FORMATS)}")
    if colon and not file:
        raise ValueError(f"{value!r} has no file name; use {name}:FILE, or {name} for stdout")
    return Report(name, file or None)


def write(form: str, outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes a report in the given format."""
    module = importlib.import_module(f".{FORMATS[form]}", __name__)
    module.write(outcomes, summary, stream)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Opens a text stream that replaces the file `path` if the block ends without an exception.

    Symbolic links are not followed: a link at `path` itself is replaced, and a link in place of a
    directory below the working directory is an error. A character device such as /dev/null is
    written to.

    Raises:
      OSError: if the file cannot be created, or is neither a regular file nor a link to one.
    """
    folder, name = os.path.split(os.path.abspath(path))
    with _directory(folder) as directory:
        opened: contextlib.AbstractContextManager[BinaryIO]
        if _is_device(folder, name):
            opened = open(directory.open(name, os.O_WRONLY), "wb")  # noqa: SIM115 - closed below
        else:
            opened = atomic_write.replacing(directory, name, 0o666)
        with opened as file:
            text = io.TextIOWrapper(file, "utf-8", "surrogateescape")
            yield text
            text.flush()


def _directory(folder: str) -> Directory:
    """Opens the directory.

    Links below the working directory are not followed, because they may come from the repository.
    Paths to directories outside come from the user.
    """
    here = os.getcwd()
    if os.path.commonpath([here, folder]) != here:
        return Directory(os.path.realpath(folder))
    try:
        below = os.path.relpath(folder, here)
        return Directory(os.path.normpath(os.path.join(os.path.realpath(here), below)))
    except SwappedError:
        why = "symbolic links below the working directory are not followed"
        raise OSError(errno.ELOOP, why, folder) from None


def _is_device(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    try:
        status = os.lstat(path)
        target = os.stat(path)
    except OSError:  # it does not exist, or is a broken link
        return False
    if stat.S_ISCHR(status.st_mode):
        return True
    if stat.S_ISLNK(status.st_mode) and not stat.S_ISREG(target.st_mode):
        raise OSError(0, "Links to something other than a regular file", path)
    if not (stat.S_ISREG(target.st_mode) or stat.S_ISDIR(target.st_mode)):
        raise OSError(0, "Is not a regular file", path)
    return False
