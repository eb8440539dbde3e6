"""The report formats. Each module writes the outcomes of a run, in order, to a text stream."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Optional, TextIO, cast

from tf_lossscale._process import WaitingWriter

from ..files import atomic_write
from ..files.directories import Directory, SwappedError
from ..files.excludes import INTERNAL, VERSION_CONTROL
from ..run.results import FileOutcome, Summary
from . import earlier, text

__all__ = ["FORMATS", "Report", "check_replaceable", "replacing", "write"]

FORMATS = {"text": "text", "json": "json_", "sarif": "sarif", "github": "github", "html": "html"}
"""Maps a format to the module that writes it, which is imported on first use."""

_MOST_LINKS = 40


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


def check_replaceable(path: str) -> None:
    """Checks, before the run, that a report may be written to `path`.

    A file with content is replaced only if it is a report of an earlier run.

    Raises:
      OSError: if it is a different file, if the path belongs to version control, or if `replacing`
        would refuse it.
    """
    path = os.path.abspath(path)
    if _descriptor_of(path) is not None:
        return
    if VERSION_CONTROL.intersection(os.path.realpath(path).split(os.sep)):
        raise OSError(errno.EPERM, f"{INTERNAL}; name another file", path)
    folder, name = os.path.split(path)
    with _directory(folder) as directory:
        if _is_stream(path) or not os.path.lexists(path):
            return
        data = earlier.ends_of(directory, name)
    if data and not earlier.is_report(data):
        what = "exists and is not a report of tf-lossscale; name another file, or delete this one"
        raise FileExistsError(errno.EEXIST, what, path)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Opens a text stream that replaces the file `path` if the block ends without an exception.

    A device, a pipe, and a link to an open file of this process, such as /dev/stdout, are written
    to. Other symbolic links are neither followed nor replaced: at `path`, and in place of a
    directory below the working directory, they are an error.

    Raises:
      OSError: if the file cannot be created, is such a link, or no process reads the pipe.
    """
    with _opened(os.path.abspath(path)) as file:
        text = io.TextIOWrapper(file, "utf-8", "surrogateescape")
        yield text
        text.flush()


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens a report: an open file behind a link, a pipe or device, or a file to replace."""
    descriptor = _descriptor_of(path)
    if descriptor is not None:
        sys.stdout.flush()
        waiting = io.BufferedWriter(WaitingWriter(descriptor))
        yield cast(BinaryIO, waiting)
        waiting.flush()
        return
    folder, name = os.path.split(path)
    with _directory(folder) as directory:
        if _is_stream(path):
            stream = directory.open(name, os.O_WRONLY)  # an error if no process reads the pipe
            os.set_blocking(stream, True)
            with open(stream, "wb") as file:
                yield file
            return
        with atomic_write.replacing(directory, name, 0o666) as file:
            yield file


def _descriptor_of(path: str) -> Optional[int]:
    """Returns the number of the open file that a path is a link to, as /dev/stdout is.

    A file that is opened a second time is written from its beginning, over what it already has.
    """
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if folder == f"/proc/{os.getpid()}/fd" and name.isdecimal():
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:  # it is no link
            return None
    return None


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


def _is_stream(path: str) -> bool:
    """Whether the path is one of a character device or a pipe; a report replaces other files."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # it does not exist
        return False
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "is a symbolic link; name the file that it leads to", path)
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return True
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "is no regular file, device or pipe", path)
    return False
