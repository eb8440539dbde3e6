"""Finds the files below the given paths: each file once, in a stable order."""

from __future__ import annotations

import collections
import contextlib
import enum
import os
import stat
from collections.abc import Generator, Iterator, Sequence
from typing import Callable, NamedTuple, Optional, Union

from . import atomic_write
from .directories import Directory, SwappedError, TooLargeError
from .excludes import (
    INTERNAL,
    SUFFIXES,
    VERSION_CONTROL,
    Excludes,
    is_data,
    is_environment_or_cache,
)
from .git import top_of
from .work_trees import IgnoredPaths, enclosing

__all__ = [
    "Candidate",
    "Note",
    "NoteKind",
    "discover",
    "project_files_above",
    "words",
]

_MOST_OPEN = 16
"""Directories that stay open while those in them are walked; a tree can be very deep."""
_EXCLUDED = "matches --exclude"
_IGNORED = "is ignored by git"
_OUTSIDE = "is a symbolic link that leaves the given paths; see --follow-links-outside"


class Candidate(NamedTuple):
    """A file that is found.

    Attributes:
      path: the path as given, or below the given directory.
      real: the absolute path without symbolic links.
      is_source: whether it is Python; otherwise it describes the project, or is data.
      is_data: whether a program may look up names in it.
      level: the directory in the walk, for `read`; None if the file is read by its path.
    """

    path: str
    real: str
    is_source: bool = True
    is_data: bool = False
    level: Optional[_Level] = None

    def read(self, most: Optional[int] = None) -> bytes:
        """Reads the file; fastest right after it was found, while its directory is open.

        Raises:
          TooLargeError: if it has more than `most` bytes.
          OSError: if it cannot be read.
        """
        if self.level is not None:
            return self.level.read(self.real, most)
        return atomic_write.read(self.real, most)


class NoteKind(enum.Enum):
    """What a note says of a path."""

    SKIPPED = "skipped"
    ERROR = "error"
    WARNING = "warning"


class Note(NamedTuple):
    """A path that is skipped, cannot be read, or needs a warning.

    Attributes:
      path: as in `Candidate`.
      kind: whether the path is skipped, cannot be read, or needs a warning.
      why: the reason.
    """

    path: str
    kind: NoteKind
    why: str


_Found = Union[Candidate, Note]

Describes = Callable[[str], bool]
"""Whether an absolute path is one of a project file."""


def discover(
    paths: Sequence[str],
    excludes: Excludes,
    follow_outside: bool = False,
    describes: Optional[Describes] = None,
    with_data: bool = False,
) -> Iterator[_Found]:
    """Yields the files below `paths`: in the given order, by name in directories, links last.

    A file that can be reached by several paths is yielded once, if possible under a path without
    links. A link that is found, rather than named by the user, is followed only if its target is
    below one of `paths`, or if `follow_outside` is set: the owner of the tree may not be trusted.

    Args:
      paths: files and directories.
      excludes: the paths to skip.
      follow_outside: whether to follow links that leave `paths`.
      describes: whether a path is one of a project file. Such files are yielded as well, also from
        the directories above `paths` in their project.
      with_data: whether to yield files that are not Python, in which a program may look up names.
    """
    walk = _Walk(paths, excludes, follow_outside, describes or (lambda _: False), with_data)
    yield from walk.all()
    if describes is not None:
        yield from walk.above()


def project_files_above(path: str, excludes: Excludes, describes: Describes) -> Iterator[Candidate]:
    """Yields the project files in the directories above `path`, in its project."""
    return _Walk([path], excludes, False, describes).above()


class _Level:
    """A directory that is being walked, and its remaining entries; OSError if it cannot be read.

    Args:
      path: the path as given, or below the given directory.
      real: the absolute path without symbolic links.
      above: the directory that contains it, if that is being walked, too.
    """

    def __init__(self, path: str, real: str, above: Optional[_Level]) -> None:
        self.path = "" if path == os.curdir else os.path.join(path, "")
        self.real = os.path.join(real, "")
        self._real = real
        opened = above._directory if above is not None else None
        self._directory: Optional[Directory] = Directory(real, opened)
        try:
            self.status = self._directory.status()
            entries = self._directory.entries()
        except BaseException:
            self.close()
            raise
        self.is_work_tree = any(entry.name == ".git" for entry in entries)
        self.entries = iter(entries)

    def read(self, real: str, most: Optional[int]) -> bytes:
        """Reads a file in the directory."""
        if self._directory is None:
            self._directory = Directory(self._real)
        return self._directory.read(real[len(self.real) :], most)

    def close(self) -> None:
        """Closes the directory until it is read from again; a tree can be very deep."""
        if self._directory is not None:
            self._directory.close()
            self._directory = None


class _Walk:
    """A walk through paths that yields each file once, whatever links lead to it."""

    def __init__(
        self,
        paths: Sequence[str],
        excludes: Excludes,
        follow_outside: bool,
        describes: Describes,
        with_data: bool = False,
    ) -> None:
        self._paths = paths
        self._roots = frozenset(os.path.realpath(path) for path in paths)
        self._excludes = excludes
        self._follow_outside = follow_outside
        self._describes = describes
        self._with_data = with_data
        self._data: dict[str, str] = {}
        """The path of each file that is not Python, by its real path."""
        self._directories: set[tuple[int, int]] = set()
        self._files: set[str] = set()
        self._links: collections.deque[tuple[Candidate, bool]] = collections.deque()
        self._warnings: list[Note] = []
        self._ignored = IgnoredPaths(
            lambda top, why: self._warnings.append(Note(top, NoteKind.WARNING, why))
        )

    def all(self) -> Iterator[_Found]:
        for path in self._paths:
            yield from self._named(path)
        while self._links:
            yield from self._linked(*self._links.popleft())
        # A link can make a Python file of one.
        for real, path in self._data.items():
            if real not in self._files:
                yield Candidate(path, real, is_source=False, is_data=True)

    def above(self) -> Iterator[Candidate]:
        """Yields the project files above the paths, once each, without following links."""
        for directory in dict.fromkeys(
            folder for path in self._paths for folder in enclosing(path)
        ):
            # Project files only help: the run goes on without those that cannot be read.
            with contextlib.suppress(OSError), Directory(directory) as opened:
                if not self._is_new(opened.status()):
                    continue
                self._add_ignored(directory)
                for entry in opened.entries():
                    real = os.path.join(directory, entry.name)
                    is_one = entry.kind == "file" and self._describes(real)
                    if is_one and not (real in self._ignored or self._excludes.match(real)):
                        yield Candidate(real, real, is_source=False)

    def _named(self, path: str) -> Iterator[_Found]:
        """Yields what a path of the command line stands for; its own link is followed."""
        real = os.path.realpath(path)
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            yield Note(path, NoteKind.ERROR, words(error))
            return
        if self._excludes.match(real):
            yield Note(path, NoteKind.SKIPPED, _EXCLUDED)
        elif stat.S_ISDIR(mode):
            yield from self._tree(path, real)
        elif not stat.S_ISREG(mode):
            yield Note(path, NoteKind.ERROR, "is neither a file nor a directory")
        elif os.path.islink(path):
            self._links.append((Candidate(path, real), True))
        elif self._is_data(real):
            self._data.setdefault(real, path)
        elif real not in self._files:
            self._files.add(real)
            yield Candidate(path, real)

    def _tree(self, path: str, real: str) -> Iterator[_Found]:
        """Yields everything below a directory; iterative, because trees can be very deep."""
        self._add_ignored(real)
        stack: list[_Level] = []
        try:
            below: Optional[tuple[str, str]] = (path, real)
            while below is not None:
                yield from self._entered(*below, stack)
                below = yield from self._next_below(stack)
        finally:
            for level in stack:
                level.close()

    def _entered(self, path: str, real: str, stack: list[_Level]) -> Iterator[Note]:
        """Adds a directory to the walk if it is new; yields what went wrong."""
        try:
            level = _Level(path, real, stack[-1] if stack else None)
            if not self._is_new(level.status):
                level.close()
            else:
                if len(stack) >= _MOST_OPEN:
                    stack[-_MOST_OPEN].close()
                stack.append(level)
                if level.is_work_tree:
                    self._ignored.add(real)
        except OSError as error:
            yield Note(path, NoteKind.ERROR, words(error))
        while self._warnings:
            yield self._warnings.pop(0)

    def _next_below(
        self, stack: list[_Level]
    ) -> Generator[_Found, None, Optional[tuple[str, str]]]:
        """Yields files up to the next directory, and returns that; None at the end of the walk."""
        while stack:
            below = yield from self._entries(stack[-1])
            if below is not None:
                return below
            stack.pop().close()
        return None

    def _entries(self, level: _Level) -> Generator[_Found, None, Optional[tuple[str, str]]]:
        """Yields the files of a level; returns its next directory, None at the end."""
        for name, kind in level.entries:
            path, real = level.path + name, level.real + name
            if kind == "link":
                self._links.append((Candidate(path, real), False))
            elif kind == "file":
                yield from self._file(name, path, real, level)
            elif kind == "directory":
                why = self._why_skipped(real, True) or self._why_ignored(real)
                if not why:
                    return path, real
                yield Note(path, NoteKind.SKIPPED, why)
        return None

    def _file(self, name: str, path: str, real: str, level: _Level) -> Iterator[_Found]:
        """Yields a file of a level if it is wanted; what may only be data comes at the end."""
        if real in self._files:
            return
        is_source = name.endswith(SUFFIXES)
        is_read = is_source or self._describes(real)
        is_data = self._is_data(name)
        if not (is_read or is_data):
            return
        why = self._why_skipped(real, False) or self._why_ignored(real)
        if why:
            yield Note(path, NoteKind.SKIPPED, why)
            return
        if is_source:
            self._files.add(real)
        if is_read:
            yield Candidate(path, real, is_source, level=level)
        if is_data:
            self._data.setdefault(real, path)

    def _linked(self, link: Candidate, is_named: bool) -> Iterator[_Found]:
        """Yields what a link leads to, if it is followed."""
        target = os.path.realpath(link.real)
        is_directory = os.path.isdir(target)
        why = "" if is_named else self._why_not_followed(link.real, target)
        for real in (link.real, target):
            why = why or self._why_skipped(real, is_directory)
        if why:
            yield Note(link.path, NoteKind.SKIPPED, why)
        elif is_directory:
            yield from self._tree(link.path, target)
        else:
            yield from self._linked_file(link, target, is_named)

    def _why_not_followed(self, link: str, target: str) -> str:
        """Why a link that was found, rather than named, is not followed; empty if it is."""
        if not self._follow_outside and self._root_of(target) is None:
            return _OUTSIDE
        if self._is_internal(target):
            return INTERNAL
        return _IGNORED if link in self._ignored else ""

    def _linked_file(self, link: Candidate, target: str, is_named: bool) -> Iterator[_Found]:
        """Yields the file that a link leads to, if it is wanted and new."""
        is_source = is_named or link.path.endswith(SUFFIXES)
        if not (is_source or self._describes(link.real)):
            return
        if not os.path.exists(target):
            yield Note(link.path, NoteKind.SKIPPED, f"is a broken symbolic link to {target}")
        elif os.path.isfile(target) and target not in self._files:
            if is_source:
                self._files.add(target)
            yield Candidate(link.path, target, is_source)

    def _add_ignored(self, directory: str) -> None:
        top = top_of(directory)
        if top is not None:
            self._ignored.add(top)

    def _is_data(self, name: str) -> bool:
        return self._with_data and is_data(name)

    def _is_new(self, status: os.stat_result) -> bool:
        """Whether a directory has not been walked yet."""
        identity = (status.st_dev, status.st_ino)
        if identity in self._directories:
            return False
        self._directories.add(identity)
        return True

    def _root_of(self, target: str) -> Optional[str]:
        """The given path that is, or contains, `target`."""
        while target not in self._roots:
            above = os.path.dirname(target)
            if above == target:
                return None
            target = above
        return target

    def _is_internal(self, target: str) -> bool:
        """Whether `target` is inside the data of a version control system."""
        below = target[len(self._root_of(target) or "") :]
        parts = {part.lower() for part in below.split(os.sep)}  # some file systems ignore case
        return not parts.isdisjoint(name.lower() for name in VERSION_CONTROL)

    def _why_ignored(self, real: str) -> str:
        """Why a path is skipped because of git; what the user names is not."""
        return _IGNORED if real in self._ignored and real not in self._roots else ""

    def _why_skipped(self, real: str, is_directory: bool) -> str:
        why = is_environment_or_cache(real) if is_directory else ""
        return why or (_EXCLUDED if self._excludes.match(real) else "")


def words(error: OSError) -> str:
    """Describes an error about a path, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the spelling and the working directory"
    if isinstance(error, TooLargeError):
        return str(error.strerror)
    if isinstance(error, SwappedError):
        return "not processed: its path now contains a symbolic link; run again"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; change its mode, or --exclude it"
    reason = (error.strerror or str(error)).lower()
    return f"cannot be read: {reason}; --exclude it to skip it"
