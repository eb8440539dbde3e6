"""From the paths that were named to the files to look at: each file once, in a stable order."""

from __future__ import annotations

import collections
import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional, Union

from .gitignore import IgnoreFiles
from .model import FileError

__all__ = ["SUFFIXES", "Candidate", "Excludes", "Skipped", "discover", "words"]

SUFFIXES = (".py", ".pyi", ".pyw", ".ipynb")

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
    """A file to look at.

    Attributes:
      path: as it was named, or below the directory that was named.
      real: its absolute path without symbolic links.
      ignores: the ignore files to ask before anything is done with it; None where it was named.
    """

    path: str
    real: str
    ignores: Optional[IgnoreFiles]

    @property
    def is_ignored(self) -> bool:
        """Whether git ignores it; asked late, as most files have nothing for us anyway."""
        return self.ignores is not None and self.ignores.ignores(self.real, is_directory=False)


class Skipped(NamedTuple):
    """A path that is left out, and why."""

    path: str
    why: str


class Excludes(NamedTuple):
    """The globs of `--exclude`, each with the directory that it is relative to."""

    globs: tuple[tuple[str, str], ...] = ()

    def match(self, real: str) -> bool:
        """Whether a glob matches the path, a directory above it, or a single name in it."""
        for glob, base in self.globs:
            parts = os.path.relpath(real, base).replace(os.sep, "/").split("/")
            prefixes = ["/".join(parts[: end + 1]) for end in range(len(parts))]
            if any(fnmatch.fnmatchcase(one, glob.rstrip("/")) for one in prefixes + parts):
                return True
        return False


_Found = Union[Candidate, Skipped, FileError]


def discover(paths: Sequence[str], excludes: Excludes) -> Iterator[_Found]:
    """The files below `paths`: in the order named, inside a directory by name, links last.

    A file that several names lead to is given once, if possible under a name that is no link.
    """
    return _Walk(excludes).all(paths)


class _Walk:
    def __init__(self, excludes: Excludes) -> None:
        self._excludes = excludes
        self._directories: set[tuple[int, int]] = set()
        self._files: set[str] = set()  # those that were named, or that a link led to
        self._links: collections.deque[Candidate] = collections.deque()

    def all(self, paths: Sequence[str]) -> Iterator[_Found]:
        for path in paths:
            yield from self._named(path)
        while self._links:
            yield from self._linked(self._links.popleft())

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
            yield from self._directory(path, real, IgnoreFiles.around(real))
        elif not stat.S_ISREG(mode):
            yield FileError(path, 0, "is neither a file nor a directory; name one of them")
        elif os.path.islink(path):
            self._links.append(Candidate(path, real, None))
        elif real not in self._files and not self._walked(real):
            self._files.add(real)
            yield Candidate(path, real, None)

    def _directory(self, path: str, real: str, ignores: IgnoreFiles) -> Iterator[_Found]:
        try:
            status = os.stat(real)
            if (status.st_dev, status.st_ino) in self._directories:
                return
            self._directories.add((status.st_dev, status.st_ino))
            with os.scandir(real) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as error:
            yield FileError(path, 0, words(error))
            return
        for entry in entries:
            shown = entry.name if path == os.curdir else os.path.join(path, entry.name)
            candidate = Candidate(shown, entry.path, ignores)
            if entry.is_symlink():
                self._links.append(candidate)
            elif entry.is_dir():
                yield from self._subdirectory(candidate, ignores)
            elif entry.name.endswith(SUFFIXES) and entry.is_file():
                yield from self._file(candidate)

    def _subdirectory(self, found: Candidate, ignores: IgnoreFiles) -> Iterator[_Found]:
        why = self._why_skipped(found.real)
        if not why and ignores.ignores(found.real, is_directory=True):
            why = _IGNORED
        if why:
            yield Skipped(found.path, why)
        else:
            yield from self._directory(found.path, found.real, ignores.below(found.real))

    def _file(self, found: Candidate) -> Iterator[_Found]:
        if self._excludes.match(found.real):
            yield Skipped(found.path, _EXCLUDED)
        elif found.real not in self._files:
            yield found

    def _linked(self, link: Candidate) -> Iterator[_Found]:
        target = os.path.realpath(link.real)
        if os.path.isdir(target):
            if link.ignores is not None and link.is_ignored:
                yield Skipped(link.path, _IGNORED)
                return
            why = self._why_skipped(link.real) or self._why_skipped(target)
            if why:
                yield Skipped(link.path, why)
            else:
                yield from self._directory(link.path, target, IgnoreFiles.around(target))
        elif link.ignores is None or link.path.endswith(SUFFIXES):
            if self._excludes.match(link.real):
                yield Skipped(link.path, _EXCLUDED)
            elif link.is_ignored:
                yield Skipped(link.path, _IGNORED)
            elif not os.path.exists(target):
                yield Skipped(link.path, f"a symbolic link to nothing ({target})")
            elif os.path.isfile(target) and target not in self._files and not self._walked(target):
                self._files.add(target)
                yield Candidate(link.path, target, None)

    def _walked(self, real: str) -> bool:
        """Whether the walk has been through the directory of this file, and so has given it."""
        try:
            status = os.stat(os.path.dirname(real))
        except OSError:
            return False
        identity = (status.st_dev, status.st_ino)
        return identity in self._directories and real.endswith(SUFFIXES)

    def _why_skipped(self, real: str) -> str:
        name = os.path.basename(real)
        if name in _VERSION_CONTROL:
            return "holds the data of a version control system"
        if name in _CACHES:
            return "is a cache"
        if name in _ENVIRONMENTS:
            return "is a virtual environment, by its name"
        if os.path.isfile(os.path.join(real, "pyvenv.cfg")):
            return "is a virtual environment: it has a pyvenv.cfg"
        return _EXCLUDED if self._excludes.match(real) else ""


def words(error: OSError) -> str:
    """What is wrong with a path and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the spelling and the working directory"
    if isinstance(error, PermissionError):
        return "cannot be read: permission denied; change its mode, or --exclude it"
    reason = (error.strerror or str(error)).lower()
    return f"cannot be read: {reason}; --exclude it to go without it"


_EXCLUDED = "is excluded by --exclude"
_IGNORED = "is ignored by git"
