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
from . import text

__all__ = ["FORMATS", "Report", "replacing", "write"]

FORMATS = {"text": "text", "json": "json_", "sarif": "sarif", "github": "github", "html": "html"}
"""Maps a format to the module that writes it, which is imported on first use."""


class Report(NamedTuple):
    """A requested report: its format, and its file or None for stdout."""

    format: str
    file: Optional[str]


def write(
    form: str,
    outcomes: Iterable[FileOutcome],
    summary: Summary,
    stream: TextIO,
    style: text.Style = text.PLAIN,
    statistics: bool = False,
) -> None:
    """Writes a report in the given format; only the text report has a style and statistics."""
    if form == "text":
        text.write(outcomes, summary, stream, style, statistics)
    else:
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
        if _is_device(os.path.join(folder, name)):
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


def _is_device(path: str) -> bool:
    """Whether the path is one of a character device; otherwise, a report takes its place."""
    try:
        mode, target = os.lstat(path).st_mode, os.stat(path).st_mode
    except OSError:  # it does not exist, or is a broken link
        return False
    if stat.S_ISCHR(mode):
        return True
    if not (stat.S_ISREG(target) or stat.S_ISDIR(mode)):
        raise OSError(0, "Is neither a regular file nor a link to one", path)
    return False
