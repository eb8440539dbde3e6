"""Which files below a directory are checked: by suffix, but not in caches, or by `--exclude`."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence

__all__ = [
    "INTERNAL",
    "MOST_DATA",
    "NOTEBOOK",
    "SUFFIXES",
    "VERSION_CONTROL",
    "Excludes",
    "is_data",
    "is_environment_or_cache",
]

NOTEBOOK = ".ipynb"
SUFFIXES = (".py", ".pyi", ".pyw", NOTEBOOK)

_DATA_SUFFIXES = (".json", ".yaml", ".yml", ".cfg", ".gin", ".toml", ".txt", ".ini")
"""The files in which programs look up names, such as `tensorflow.keras...` in a configuration."""
_PROSE = re.compile(
    r"requirements|constraints|sources\.txt|package(?:-lock)?\.json|.*\.lock|readme|change|history|"
    r"news|licen[cs]e|notice|authors|contributing|todo",
    re.IGNORECASE,
)
"""The beginning of the names of files that list packages, or that people read."""
MOST_DATA = 1024 * 1024
"""Bytes of a configuration; a larger file holds data."""

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", "CVS"})
INTERNAL = "belongs to a version control system"
_ENVIRONMENTS = frozenset({".venv", "venv", "env", ".tox", ".nox"})
_CACHES = frozenset(
    [
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".pytype",
        ".eggs", ".ipynb_checkpoints", "node_modules",
    ]
)  # fmt: skip


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


def is_data(path: str) -> bool:
    """Whether a file, by its name, is one in which a program may look up names."""
    name = os.path.basename(path)
    return name.endswith(_DATA_SUFFIXES) and not _PROSE.match(name)


def is_environment_or_cache(directory: str) -> str:
    """Why a directory has no source files of the project; empty if it may have."""
    name = os.path.basename(directory)
    if name in VERSION_CONTROL:
        return INTERNAL
    if name in _CACHES:
        return "is a cache"
    if os.path.isfile(os.path.join(directory, "pyvenv.cfg")):
        return "is a virtual environment (has a pyvenv.cfg)"
    # Packages are called `env`, too.
    if name in _ENVIRONMENTS and not os.path.isfile(os.path.join(directory, "__init__.py")):
        return "is a virtual environment (by its name)"
    return ""
