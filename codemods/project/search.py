"""Collects evidence from the files of a run while they are searched: each file is read once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase, translate
from typing import NamedTuple

from ..files import atomic_write
from ..files.discover import last_directory
from . import legacy_keras, pins
from .evidence import Evidence

__all__ = ["ProjectSearch", "Unread", "is_project_file", "largest"]

_MB = 1024 * 1024
_LOCKS = ("*.lock", "pylock.toml", "*conda-lock.yml")
_MOST_INCLUDES = 100
_MOST_INCLUDED = 2 * _MB
"""Limits for files that only `-r` and `-c` name: how many are read, and their size in total."""
_TOO_MANY = (
    f"-r and -c name more than {_MOST_INCLUDES} files or {_MOST_INCLUDED // _MB} MiB in total"
)
_MOST_NAMED = 10_000
"""How many files `-r` and `-c` may name at all, counting those that the search finds by itself."""
_MOST_SOURCE = 4 * _MB
"""The largest Python file or notebook in which evidence is searched, in bytes."""

_ENVIRONMENT = (
    "Dockerfile*",
    "*.Dockerfile",
    "*.dockerfile",
    "Containerfile*",
    "*.sh",
    "*.bash",
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "Makefile",
    "tox.ini",
    "pytest.ini",
    ".gitlab-ci.yml",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "azure-pipelines*.yml",
    "cloudbuild*.yaml",
    "docker-compose*.yml",
    "docker-compose*.yaml",
    "compose*.yml",
    "compose*.yaml",
)
"""The names of files that set environment variables."""

_SUFFIXES = (
    *(".txt", ".in", ".cfg", ".py", ".toml", ".lock", ".yml", ".yaml"),
    *(".sh", ".bash", ".env", ".ini", ".Dockerfile", ".dockerfile"),
)
_PREFIXES = ("Dockerfile", "Containerfile", "Makefile", "Pipfile", ".env")
"""What the names of all project files end or begin with."""

_SETS_ENVIRONMENT = re.compile("|".join(map(translate, _ENVIRONMENT)))
_ENVIRONMENT_FOLDERS = (os.path.join(".github", "workflows"), ".circleci")


def is_project_file(path: str) -> bool:
    """Whether a file can have evidence by its name; Python files always can."""
    name = path[path.rfind(os.sep) + 1 :]
    if not name.endswith(_SUFFIXES) and not name.startswith(_PREFIXES):
        return False  # nearly all files, of which a tree can have millions
    directory = os.path.dirname(path)
    if pins.reader_of(path) is not None:
        return True
    if _SETS_ENVIRONMENT.match(name):
        return True
    return name.endswith((".yml", ".yaml")) and directory.endswith(_ENVIRONMENT_FOLDERS)


def largest(path: str) -> int:
    """The largest size at which a project file is read, in bytes."""
    name = os.path.basename(path)
    return 16 * _MB if any(fnmatchcase(name, glob) for glob in _LOCKS) else _MB


class Unread(NamedTuple):
    """A project file that was not read, and the reason."""

    path: str
    why: str


class ProjectSearch:
    """The evidence of a run."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self._read: set[str] = set()
        self._includes: dict[str, str] = {}  # the absolute path of each, and the one to show

    def source(self, path: str, real: str, data: bytes) -> list[Evidence]:
        """Returns the evidence in a Python file or notebook.

        Args:
          path: the path to show in reports.
          real: the absolute path.
          data: the content.
        """
        found: list[Evidence] = []
        if len(data) <= _MOST_SOURCE and any(word in data for word in legacy_keras.WORDS):
            notebook = real.endswith(".ipynb")
            read = legacy_keras.in_notebook if notebook else legacy_keras.in_python
            found += read(path, data)
        if os.path.basename(real) == "setup.py":
            found += self._pins(path, real, data)
        return found

    def project_file(self, path: str, real: str, data: bytes) -> list[Evidence]:
        """Like `source`, for a file of another kind."""
        if real.endswith(".py"):
            return self.source(path, real, data)
        found = list(legacy_keras.in_text(path, data)) if legacy_keras.WORDS[0] in data else []
        return found + self._pins(path, real, data)

    def _pins(self, path: str, real: str, data: bytes) -> list[Evidence]:
        reader = pins.reader_of(real) or pins.reader_of(path)
        self._read.add(real)
        if reader is None or len(data) > largest(real):
            return []
        found: list[Evidence] = []
        text = data.decode("utf-8-sig", "replace")
        if b"tensorflow" in data.lower() or b"keras" in data.lower() or b"nightly" in data.lower():
            found += pins.evidence_of(path, text, reader)
        if real.endswith((".txt", ".in", ".yml", ".yaml")):
            self._include(path, real, text)
        return found

    def _include(self, path: str, real: str, text: str) -> None:
        """Notes the files that `-r` and `-c` name, if they are inside the project."""
        folder = os.path.dirname(real)
        top = last_directory(folder).rstrip(os.sep) + os.sep
        for include in pins.includes_in(text):
            if len(self._includes) >= _MOST_NAMED:
                return
            target = os.path.normpath(os.path.join(folder, include.path))
            if target.startswith(top) and target not in self._includes:
                shown = os.path.normpath(os.path.join(os.path.dirname(path), include.path))
                self._includes[target] = shown

    def finish(self) -> Iterator[Unread]:
        """Reads the included files that the search has not found; yields those it cannot read."""
        done: set[str] = set()
        files, size = 0, 0
        while len(done) < len(self._includes):
            # Files that are read here can name more.
            for real, path in [one for one in self._includes.items() if one[0] not in done]:
                done.add(real)
                if real in self._read:
                    continue
                self._read.add(real)
                files += 1
                try:
                    length = os.path.getsize(real) if files <= _MOST_INCLUDES else 0
                    size += length
                    if files > _MOST_INCLUDES or size > _MOST_INCLUDED:
                        yield Unread(path, _TOO_MANY)
                        return
                    if length > largest(real):
                        yield Unread(path, f"is larger than {largest(real) // _MB} MiB")
                        continue
                    text = atomic_write.read(real).decode("utf-8-sig", "replace")
                except OSError as error:
                    yield Unread(path, (error.strerror or str(error)).lower())
                    continue
                self.evidence += pins.evidence_of(path, text, pins.requirements)
                self._include(path, real, text)
