"""What a search needs from git: which paths it ignores, and if it fails, what helps to tell.

Git lists the ignored paths of a work tree once. If it fails or takes too long, the ignore files are
read here instead, with the user's own ignore file and the tracked files.
"""

from __future__ import annotations

import bisect
import os
import re
import time
from typing import Callable, Optional

from . import git, ignore_file
from .patterns import LONGEST, Patterns

__all__ = ["Repositories", "Repository", "UserExcludes", "Warn"]

Warn = Callable[[str, str], None]
"""Called with the path of an ignore file that cannot be used, and the reason."""

_SECONDS = 60.0
"""Time limit for reading the indexes of all work trees together; a tree can contain many."""

_SECONDS_TO_LIST = 20.0
"""Time limit for listing the ignored paths of all work trees together. Git waits forever for a pipe
in place of a `.gitignore`, and some patterns take it exponential time."""

_ENTRY = re.compile(rb"(\d{6}) [0-9a-f]+ [0-3]\t([^\0]+)\0")
_LINK = b"120000"
_SUBMODULE = b"160000"


class Repositories:
    """The git work trees in a search.

    Args:
      warn: called if the user's ignore file cannot be used.
      suffixes: the suffixes of the files to search; whether other files are tracked is irrelevant.
      ask_git: whether git decides what is ignored; otherwise the ignore files are read here.
    """

    def __init__(self, warn: Warn, suffixes: tuple[str, ...], ask_git: bool = True) -> None:
        self._warn = warn
        self._ask_git = ask_git
        self._suffixes = tuple(os.fsencode(suffix) for suffix in suffixes)
        self._known: dict[str, Repository] = {}
        self._user_file: Optional[str] = None
        self._read: dict[str, Optional[Patterns]] = {}
        self._seconds_left = _SECONDS
        self._seconds_to_list = _SECONDS_TO_LIST

    def at(self, top: str) -> Repository:
        """The work tree with this top directory."""
        if top not in self._known:
            self._known[top] = Repository(top, self)
        return self._known[top]

    def user_patterns(self, top: str) -> Optional[Patterns]:
        """The patterns of the user's ignore file, for the work tree at `top`."""
        if self._user_file is None:
            self._user_file = _user_file()
        if self._user_file in ("", os.devnull):  # no ignore file
            return None
        path = os.path.join(top, self._user_file)  # git resolves a relative path from there
        if path not in self._read:
            self._read[path] = self._patterns(path, is_users=os.path.isabs(self._user_file))
        return self._read[path]

    def _patterns(self, path: str, is_users: bool) -> Optional[Patterns]:
        try:
            return Patterns(ignore_file.lines(ignore_file.read(path, follow=is_users)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn(path, f"is ignored: {(error.strerror or str(error)).lower()}")
            return None

    def ignored(self, top: str) -> Optional[frozenset[bytes]]:
        """The ignored paths, a directory with a trailing slash; None if git cannot list them.

        A directory stands for everything in it.
        """
        options = ["--others", "--ignored", "--exclude-standard", "--directory", "-z"]
        # The names on disk; git on macOS would normalize them.
        listed = self._ask(top, "-c", "core.precomposeUnicode=false", "ls-files", *options)
        return None if listed is None else frozenset(listed.split(b"\0")[:-1])

    def matches(self, top: str, path: bytes) -> bool:
        """Whether an ignore pattern matches the path or a directory above it, tracked or not."""
        # This command refuses --literal-pathspecs, so a leading colon must not come first.
        command = ["--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin"]
        return bool(self._ask(top, *command, data=b"./" + path))

    def _ask(self, top: str, *arguments: str, data: bytes = b"") -> Optional[bytes]:
        """The output of git; None if it fails, from then on in all work trees if it is late."""
        if not self._ask_git or self._seconds_to_list <= 0:
            return None
        limit = self._seconds_to_list
        started = time.monotonic()
        try:
            return git.run(top, *arguments, data=data, statuses=(0, 1), seconds=limit)
        except git.GitError as error:
            self._warn(top, f"git {error}, so the ignore files were read without git")
            if isinstance(error, git.LateError):
                self._seconds_to_list = 0
            return None
        finally:
            self._seconds_to_list -= time.monotonic() - started

    def tracked(self, top: str) -> list[bytes]:
        """The tracked files with the suffixes, links and submodules, sorted."""
        if self._seconds_left <= 0:
            return []
        started = time.monotonic()
        try:
            listed = git.run(top, "ls-files", "--stage", "-z", seconds=self._seconds_left)
        except git.LateError:
            self._seconds_left = 0
            return []
        except git.GitError:
            return []
        finally:
            self._seconds_left -= time.monotonic() - started
        return sorted(
            path
            for mode, path in _ENTRY.findall(listed)
            if len(path) <= LONGEST
            and (mode in (_LINK, _SUBMODULE) or path.endswith(self._suffixes))
        )


class Repository:
    """A git work tree."""

    def __init__(self, top: str, all_of_them: Repositories) -> None:
        self._top = top
        self._all = all_of_them
        self._tracked: Optional[list[bytes]] = None
        self._ignored = all_of_them.ignored(top)

    @property
    def is_listed(self) -> bool:
        """Whether git has listed the ignored paths; otherwise the ignore files must be read."""
        return self._ignored is not None

    def ignores(self, path: str) -> bool:
        """Whether git ignores the entry `path` of a directory that it does not ignore."""
        assert self._ignored is not None
        name = self._name(path)
        return name in self._ignored or name + b"/" in self._ignored

    def matches(self, path: str) -> bool:
        """Whether an ignore pattern matches the path or a directory above it, tracked or not."""
        return self._all.matches(self._top, self._name(path))

    @property
    def user_excludes(self) -> UserExcludes:
        """The patterns of the user's ignore file, for the paths in this work tree."""
        return UserExcludes(self._top, self._all)

    def tracks(self, path: str) -> bool:
        """Whether git tracks the file `path`, or a file below the directory `path`."""
        if self._tracked is None:
            self._tracked = self._all.tracked(self._top)
        name = self._name(path)
        return self._next_from(name) == name or self._next_from(name + b"/").startswith(name + b"/")

    def _name(self, path: str) -> bytes:
        """The path as git spells it."""
        return os.fsencode(path[len(self._top.rstrip(os.sep)) + 1 :].replace(os.sep, "/"))

    def _next_from(self, path: bytes) -> bytes:
        assert self._tracked is not None
        at = bisect.bisect_left(self._tracked, path)
        return self._tracked[at] if at < len(self._tracked) else b""


class UserExcludes:
    """The patterns of the user's ignore file, read when they are first matched."""

    def __init__(self, top: str, repositories: Repositories) -> None:
        self._top = top
        self._repositories = repositories

    def match(self, path: bytes, is_directory: bool) -> Optional[bool]:
        """Like `Patterns.match`."""
        patterns = self._repositories.user_patterns(self._top)
        return None if patterns is None else patterns.match(path, is_directory)


def _user_file() -> str:
    """The path of the user's own ignore file."""
    try:
        named = git.user_path("core.excludesFile")
    except git.GitError:
        named = None
    if named is not None:
        return named
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "git", "ignore")
