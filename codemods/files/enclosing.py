"""The directories above a path that belong to the same project."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .git import top_of

__all__ = ["enclosing", "last_directory"]


def last_directory(start: str) -> str:
    """The last directory to search, going up from `start`.

    That is the top of its git work tree. Outside git, it is the working directory, or `start` if
    that is not below the working directory.
    """
    top = top_of(start)
    if top is not None:
        return top
    here = os.path.realpath(os.getcwd())
    return here if start == here or start.startswith(here.rstrip(os.sep) + os.sep) else start


def enclosing(path: str) -> Iterator[str]:
    """Yields the directories above `path` in its project, the nearest first.

    Args:
      path: a file or directory. The directory of a file counts as above it.
    """
    real = os.path.realpath(path)
    is_directory = os.path.isdir(real)
    above = real if is_directory else os.path.dirname(real)
    last = last_directory(above)
    if not is_directory:
        yield above
    while above not in (last, os.path.dirname(above)):
        above = os.path.dirname(above)
        yield above
