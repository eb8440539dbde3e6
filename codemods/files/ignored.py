"""The paths that git ignores, as git itself lists them.

Outside a work tree nothing is ignored. If git fails or takes too long, nothing is either, and a
warning says so.
"""

from __future__ import annotations

import os
import time
from typing import Callable

from . import git

__all__ = ["IgnoredPaths"]

_SECONDS = 20.0
"""Time limit for all work trees together. Git waits forever for a pipe in place of a `.gitignore`,
and some patterns take it exponential time."""

_LIST = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")


class IgnoredPaths:
    """The ignored paths of the work trees that were added.

    `path in ignored` is true for an ignored file or directory in a directory that is not ignored
    itself.

    Args:
      warn: called with the top of a work tree and the reason if git cannot list its ignored paths.
    """

    def __init__(self, warn: Callable[[str, str], None]) -> None:
        self._warn = warn
        self._paths: set[str] = set()
        self._tops: set[str] = set()
        self._seconds_left = _SECONDS

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def add(self, top: str) -> None:
        """Adds the ignored paths of the work tree at `top`, once."""
        if top in self._tops or self._seconds_left <= 0:
            return
        self._tops.add(top)
        started = time.monotonic()
        try:
            # The names on disk; git on macOS would normalize them.
            unchanged = ("-c", "core.precomposeUnicode=false")
            listed = git.run(top, *unchanged, *_LIST, seconds=self._seconds_left)
        except git.GitError as error:
            self._warn(top, f"git {error}, so ignored files are not skipped")
            if isinstance(error, git.LateError):  # do not wait again for the other work trees
                self._seconds_left = 0
            return
        self._seconds_left -= time.monotonic() - started
        self._paths.update(
            os.path.join(top, name.rstrip("/").replace("/", os.sep))
            for name in os.fsdecode(listed).split("\0")[:-1]
        )
