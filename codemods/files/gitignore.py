"""Determines which paths git ignores.

In a work tree, git itself lists them. Outside, or if git fails, the patterns of the ignore files
are matched here, against one directory entry at a time, on the way down the tree. Like git, the
walk does not enter ignored directories.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple, Optional, Union

from . import ignore_file
from .ignore_file import LARGEST
from .patterns import Patterns
from .repository import Repositories, Repository, UserExcludes, Warn

__all__ = ["LARGEST", "IgnoreFiles", "Warn"]


class IgnoreFiles(NamedTuple):
    """The ignore files that apply to a directory: its own and those above it.

    Attributes:
      base: the directory of the innermost ignore file.
      patterns: the patterns of that file.
      above: the ignore files of the directories above.
      size: the total size of these files in bytes.
      repository: the work tree that contains the directory; None outside git.
      ignores_all: whether the directory itself is ignored; then only tracked files in it are not.
      by_git: whether git has listed what it ignores; then no ignore file is read.
    """

    base: str
    patterns: Union[Patterns, UserExcludes, None] = None
    above: Optional[IgnoreFiles] = None
    size: int = 0
    repository: Optional[Repository] = None
    ignores_all: bool = False
    by_git: bool = False

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether git ignores the entry `path`: a pattern matches, and git does not track it.

        A directory counts as tracked if it contains a tracked file.
        """
        if self.by_git:
            assert self.repository is not None
            return self.repository.ignores(path)
        if not self._matches(path, is_directory):
            return False
        return self.repository is None or not self.repository.tracks(path)

    def _matches(self, path: str, is_directory: bool) -> bool:
        """Whether the patterns ignore `path`; the last one that matches decides."""
        if self.ignores_all:
            return True
        level: Optional[IgnoreFiles] = self
        while level is not None:
            if level.patterns is not None:
                relative = path[len(level.base.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
                ignored = level.patterns.match(os.fsencode(relative), is_directory)
                if ignored is not None:
                    return ignored
            level = level.above
        return False

    def below(self, directory: str, warn: Warn) -> IgnoreFiles:
        """The ignore files for the entries of `directory`, a subdirectory of this one."""
        if self.by_git:
            return self
        if self._matches(
            directory, is_directory=True
        ):  # git does not read ignore files there either
            return self._replace(ignores_all=True)
        return self._into(directory, warn)

    def nested(self, top: str, warn: Warn, repositories: Repositories) -> IgnoreFiles:
        """The ignore files for the entries of `top`, the top of a nested work tree."""
        return self._of_top(top, warn, repositories, self.size)._into(top, warn)

    def _into(self, directory: str, warn: Warn) -> IgnoreFiles:
        if self.by_git:
            return self
        return self._with(directory, os.path.join(directory, ".gitignore"), warn)

    def _with(self, directory: str, path: str, warn: Warn) -> IgnoreFiles:
        try:
            data = ignore_file.read(path, LARGEST - self.size)
        except (FileNotFoundError, NotADirectoryError):
            return self
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # git cannot read such a deep path either
                return self
            warn(path, f"is ignored: {(error.strerror or str(error)).lower()}")
            return self
        patterns = Patterns(ignore_file.lines(data))
        if not patterns:
            return self
        return IgnoreFiles(directory, patterns, self, self.size + len(data), self.repository)

    @classmethod
    def _of_top(
        cls, top: str, warn: Warn, repositories: Repositories, size: int = 0
    ) -> IgnoreFiles:
        """The ignore files that apply to the whole work tree."""
        repository = repositories.at(top)
        if repository.is_listed:
            return cls(top, repository=repository, by_git=True)
        files = cls(top, repository.user_excludes, None, size, repository)
        return files._with(top, os.path.join(top, ".git", "info", "exclude"), warn)

    @classmethod
    def around(cls, directory: str, warn: Warn, repositories: Repositories) -> IgnoreFiles:
        """The ignore files for the entries of `directory`, from the top of its git work tree down.

        If they ignore `directory` itself, the files above it do not apply: the user has named the
        directory, so it is searched.
        """
        top = _work_tree(directory)
        if top is None:
            return cls(directory)._into(directory, warn)
        files = cls._of_top(top, warn, repositories)
        if files.by_git:
            assert files.repository is not None
            if directory == top or not files.repository.matches(directory):
                return files
            return cls(directory, repository=files.repository)._into(directory, warn)
        for between in _steps(top, directory):
            if between != top and files._matches(between, is_directory=True):
                files = cls(directory, repository=files.repository)
                break
            files = files._into(between, warn)
        else:
            return files
        return files._into(directory, warn)


def _work_tree(directory: str) -> Optional[str]:
    above = directory
    while True:
        if os.path.exists(os.path.join(above, ".git")):
            return above
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent


def _steps(top: str, directory: str) -> Iterator[str]:
    yield top
    relative = os.path.relpath(directory, top)
    if relative != ".":
        for part in relative.split(os.sep):
            top = os.path.join(top, part)
            yield top
