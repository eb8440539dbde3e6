"""Finds the files below the given paths: each file once, in a stable order."""

from __future__ import annotations

import collections
import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple, Optional, Union

from ..model import FileError
from .directories import Directory, Entry, SwappedError
from .enclosing import enclosing
from .gitignore import IgnoreFiles
from .repository import Repositories

__all__ = [
    "NOTEBOOK",
    "SUFFIXES",
    "Candidate",
    "Describes",
    "Excludes",
    "ProjectFile",
    "Skipped",
    "Warned",
    "discover",
    "no_file",
    "project_files_above",
    "words",
]

NOTEBOOK = ".ipynb"
SUFFIXES = (".py", ".pyi", ".pyw", NOTEBOOK)

_ENVIRONMENTS = frozenset({".venv", "venv", "env", ".tox", ".nox"})
_CACHES = frozenset(
    [
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".pytype",
        ".eggs",
        ".ipynb_checkpoints",
        "node_modules",
    ]
)
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "CVS"})


class Candidate(NamedTuple):
    """A file to check.

    Attributes:
      path: the path as given, or below the given directory.
      real: the absolute path without symbolic links.
      ignores: the ignore files that apply; None for a file that the user named.
    """

    path: str
    real: str
    ignores: Optional[IgnoreFiles]

    @property
    def is_ignored(self) -> bool:
        """Whether git ignores the file; computed late, because most files have no legacy name."""
        return self.ignores is not None and self.ignores.ignores(self.real, is_directory=False)


class ProjectFile(NamedTuple):
    """A file that is read but not rewritten: by its name, it describes the project."""

    file: Candidate


class Skipped(NamedTuple):
    """A skipped path, and the reason."""

    path: str
    why: str


class Excludes:
    """The globs of `--exclude`.

    Args:
      globs: the globs.
      base: the directory that they are relative to.
    """

    def __init__(self, globs: Sequence[str] = (), base: str = "") -> None:
        self._base = base
        patterns = [fnmatch.translate(glob.rstrip("/")) for glob in globs]
        self._globs = re.compile("|".join(patterns)) if patterns else None
        self._directories = {"": False}

    def match(self, real: str) -> bool:
        """Whether a glob matches the path, a parent directory, or a single name in the path."""
        if self._globs is None:
            return False
        path = os.path.relpath(real, self._base).replace(os.sep, "/")
        # What is known about the parent is kept: a tree can be deep, and its globs many.
        above = []
        parent = path.rpartition("/")[0]
        while parent not in self._directories:
            above.append(parent)
            parent = parent.rpartition("/")[0]
        for directory in reversed(above):
            self._directories[directory] = self._directories[parent] or self._matches(directory)
            parent = directory
        return self._directories[parent] or self._matches(path)

    def _matches(self, path: str) -> bool:
        assert self._globs is not None
        return bool(self._globs.match(path) or self._globs.match(path.rpartition("/")[2]))


class Warned(NamedTuple):
    """A warning about a path."""

    path: str
    why: str


_Found = Union[Candidate, ProjectFile, Skipped, Warned, FileError]


Describes = Callable[[str], bool]
"""Whether an absolute path is one of a project file."""


def no_file(path: str) -> bool:
    """No path is a project file."""
    return False


def discover(
    paths: Sequence[str],
    excludes: Excludes,
    follow_outside: bool = False,
    describes: Describes = no_file,
) -> Iterator[_Found]:
    """Yields the files below `paths`: in the given order, by name in directories, links last.

    A file that can be reached by several paths is yielded once, if possible under a path without
    links. A link that is found, rather than named by the user, is followed only if its target is
    below one of `paths`, or if `follow_outside` is set: the owner of the tree may not be trusted.

    Args:
      paths: files and directories.
      excludes: the paths to skip.
      follow_outside: whether to follow links that leave `paths`.
      describes: whether a path is a project file. Such files are yielded as well, also from the
        directories above `paths` in their project.
    """
    walk = _Walk(paths, excludes, follow_outside, describes)
    yield from walk.all()
    yield from walk.above()


def project_files_above(
    path: str, excludes: Excludes, describes: Describes
) -> Iterator[ProjectFile]:
    """Yields the project files in the directories above `path`, in its project."""
    return _Walk([path], excludes, False, describes).above()


class _Level(NamedTuple):
    """A directory that is being walked, and its remaining entries."""

    path: str
    real: str
    ignores: IgnoreFiles
    entries: Iterator[Entry]


class _Walk:
    def __init__(
        self,
        paths: Sequence[str],
        excludes: Excludes,
        follow_outside: bool,
        describes: Describes,
    ) -> None:
        self._paths = paths
        self._roots = frozenset(os.path.realpath(path) for path in paths)
        self._excludes = excludes
        self._follow_outside = follow_outside
        self._describes = describes
        self._directories: set[tuple[int, int]] = set()
        self._files: set[str] = set()  # named by the user, or the target of a link
        self._links: collections.deque[Candidate] = collections.deque()
        self._warnings: list[Warned] = []
        self._repositories = Repositories(self._warn, SUFFIXES)

    def all(self) -> Iterator[_Found]:
        for path in self._paths:
            yield from self._named(path)
        while self._links:
            yield from self._linked(self._links.popleft())
        yield from self._warned()

    def above(self) -> Iterator[ProjectFile]:
        """Yields the project files above the paths, once each, without following links."""
        listed = set()
        for path in self._paths:
            for directory in enclosing(path):
                if directory in listed:
                    continue
                listed.add(directory)
                try:
                    entries = self._entries(directory)
                    names = [entry.name for entry in entries if entry.kind == "file"]
                    files = [os.path.join(directory, name) for name in names]
                    files = [file for file in files if self._describes(file)]
                except OSError:  # project files only help: the run goes on without these
                    continue
                if files:
                    ignores = IgnoreFiles.around(directory, _no_warning, self._repositories)
                for file in files:
                    yield from self._project_file(Candidate(file, file, ignores))

    def _named(self, path: str) -> Iterator[_Found]:
        real = os.path.realpath(path)
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            yield FileError(path, 0, words(error))
            return
        if self._excludes.match(real):
            yield Skipped(path, _EXCLUDED)
        elif stat.S_ISDIR(mode):
            yield from self._tree(path, real)
        elif not stat.S_ISREG(mode):
            yield FileError(path, 0, "is neither a file nor a directory")
        elif os.path.islink(path):
            self._links.append(Candidate(path, real, None))
        elif real not in self._files and not self._walked(real):
            self._files.add(real)
            yield Candidate(path, real, None)

    def _tree(self, path: str, real: str) -> Iterator[_Found]:
        """Yields everything below a directory; iterative, because trees can be very deep."""
        stack: list[_Level] = []
        above: Optional[IgnoreFiles] = None
        while True:
            try:
                entries = self._entries(real)
            except OSError as error:
                yield FileError(path, 0, words(error))
                entries = []
            if entries:
                ignores = self._ignores(real, entries, above)
                yield from self._warned()
                stack.append(_Level(path, real, ignores, iter(entries)))
            below: Optional[Candidate] = None
            while stack and below is None:
                level = stack[-1]
                entry = next(level.entries, None)
                if entry is None:
                    stack.pop()
                    continue
                shown = (
                    entry.name if level.path == os.curdir else os.path.join(level.path, entry.name)
                )
                found = Candidate(shown, os.path.join(level.real, entry.name), level.ignores)
                if entry.kind == "link":
                    self._links.append(found)
                elif entry.kind == "directory":
                    why = self._why_not_into(found)
                    if why:
                        yield Skipped(found.path, why)
                    else:
                        below = found
                elif entry.kind == "file" and entry.name.endswith(SUFFIXES):
                    yield from self._file(found)
                elif entry.kind == "file" and self._describes(found.real):
                    yield from self._project_file(found)
            if below is None:
                return
            path, real, above = below

    def _ignores(
        self, real: str, entries: Sequence[Entry], above: Optional[IgnoreFiles]
    ) -> IgnoreFiles:
        """The ignore files that apply to a directory; `above` are those of its parent."""
        if above is None:
            return IgnoreFiles.around(real, self._warn, self._repositories)
        if any(entry.name == ".git" for entry in entries):
            return above.nested(real, self._warn, self._repositories)
        return above.below(real, self._warn)

    def _entries(self, real: str) -> list[Entry]:
        """The entries of a directory; none if it has already been walked."""
        with Directory(real) as directory:
            status = directory.status()
            if (status.st_dev, status.st_ino) in self._directories:
                return []
            self._directories.add((status.st_dev, status.st_ino))
            return directory.entries()

    def _why_not_into(self, found: Candidate) -> str:
        why = self._why_skipped(found.real)
        if not why and found.ignores and found.ignores.ignores(found.real, is_directory=True):
            why = _IGNORED
        return why

    def _file(self, found: Candidate) -> Iterator[_Found]:
        if self._excludes.match(found.real):
            yield Skipped(found.path, _EXCLUDED)
        elif found.real not in self._files:
            is_named = found.real in self._roots
            yield found._replace(ignores=None) if is_named else found

    def _linked(self, link: Candidate) -> Iterator[_Found]:
        target = os.path.realpath(link.real)
        if link.ignores is not None and not self._may_follow(target):
            yield Skipped(link.path, _OUTSIDE)
        elif link.ignores is not None and self._is_internal(target):
            yield Skipped(link.path, _INTERNAL)
        elif os.path.isdir(target):
            if link.ignores is not None and link.is_ignored:
                yield Skipped(link.path, _IGNORED)
                return
            why = self._why_skipped(link.real) or self._why_skipped(target)
            if why:
                yield Skipped(link.path, why)
            else:
                yield from self._tree(link.path, target)
        elif link.ignores is not None and not link.path.endswith(SUFFIXES):
            yield from self._linked_project_file(link, target)
        elif self._excludes.match(link.real) or self._excludes.match(target):
            yield Skipped(link.path, _EXCLUDED)
        elif link.is_ignored:
            yield Skipped(link.path, _IGNORED)
        elif not os.path.exists(target):
            yield Skipped(link.path, f"is a broken symbolic link to {target}")
        elif os.path.isfile(target) and target not in self._files and not self._walked(target):
            self._files.add(target)
            yield Candidate(link.path, target, None)

    def _project_file(self, found: Candidate) -> Iterator[ProjectFile]:
        if not self._excludes.match(found.real):
            yield ProjectFile(found)

    def _linked_project_file(self, link: Candidate, target: str) -> Iterator[ProjectFile]:
        if not self._describes(link.real) or not os.path.isfile(target) or link.is_ignored:
            return
        if not (self._excludes.match(link.real) or self._excludes.match(target)):
            yield ProjectFile(Candidate(link.path, target, None))

    def _may_follow(self, target: str) -> bool:
        return self._follow_outside or self._root_of(target) is not None

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
        return not parts.isdisjoint(name.lower() for name in _VERSION_CONTROL)

    def _warn(self, path: str, why: str) -> None:
        self._warnings.append(Warned(path, why))

    def _warned(self) -> Iterator[Warned]:
        while self._warnings:
            yield self._warnings.pop(0)

    def _walked(self, real: str) -> bool:
        """Whether the directory of this file has been walked, so the file was already yielded."""
        try:
            status = os.stat(os.path.dirname(real))
        except OSError:
            return False
        identity = (status.st_dev, status.st_ino)
        return identity in self._directories and real.endswith(SUFFIXES)

    def _why_skipped(self, real: str) -> str:
        name = os.path.basename(real)
        if name in _VERSION_CONTROL:
            return _INTERNAL
        if name in _CACHES:
            return "is a cache"
        if name in _ENVIRONMENTS:
            return "is a virtual environment (by its name)"
        if os.path.isfile(os.path.join(real, "pyvenv.cfg")):
            return "is a virtual environment (has a pyvenv.cfg)"
        return _EXCLUDED if self._excludes.match(real) else ""


def _no_warning(path: str, why: str) -> None:
    """Ignores a warning about an ignore file: the walk gives it where the file matters."""


def words(error: OSError) -> str:
    """Describes an error about a path, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the spelling and the working directory"
    if isinstance(error, SwappedError):
        return "not processed: its path now contains a symbolic link; run again"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; change its mode, or --exclude it"
    reason = (error.strerror or str(error)).lower()
    return f"cannot be read: {reason}; --exclude it to skip it"


_EXCLUDED = "matches --exclude"
_IGNORED = "is ignored by git"
_INTERNAL = "belongs to a version control system"
_OUTSIDE = "is a symbolic link that leaves the given paths; see --follow-links-outside"
