"""Collects evidence from the files of a run while they are searched: each file is read once."""

from __future__ import annotations

import os
import re

from ..model import KerasChoice
from . import legacy_keras, pins
from .evidence import Evidence, choose

__all__ = ["ProjectSearch", "is_project_file", "largest"]

_MB = 1024 * 1024
_MOST_SOURCE = 4 * _MB
"""The largest Python file or notebook in which evidence is searched, in bytes."""
_SETUP = os.sep + "setup.py"
_LEGACY_KERAS = legacy_keras.WORDS[0]

_SUFFIXES = (
    *(".txt", ".in", ".cfg", ".py", ".toml", ".lock", ".yml", ".yaml"),
    *(".sh", ".bash", ".env", ".ini", ".Dockerfile", ".dockerfile"),
)
_PREFIXES = ("Dockerfile", "Containerfile", "Makefile", "Pipfile", ".env")
"""What the names of all project files end or begin with."""

_LOCK = re.compile(r".*\.lock\Z|pylock\.toml\Z|.*conda-lock\.yml\Z")
_SETS_ENVIRONMENT = re.compile(
    r"(?:Dockerfile.*|Containerfile.*|.*\.[Dd]ockerfile|.*\.sh|.*\.bash|\.env(?:\..*)?|.*\.env|\.envrc"
    r"|Makefile|tox\.ini|pytest\.ini|\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml"
    r"|azure-pipelines.*\.yml|cloudbuild.*\.yaml|(?:docker-)?compose.*\.ya?ml)\Z"
)
"""Matches the names of files that set environment variables."""
_ENVIRONMENT_FOLDERS = (os.path.join(".github", "workflows"), ".circleci")


def is_project_file(path: str) -> bool:
    """Whether a file can have evidence by its name; Python files always can."""
    name = path[path.rfind(os.sep) + 1 :]
    if not name.endswith(_SUFFIXES) and not name.startswith(_PREFIXES):
        return False  # nearly all files, of which a tree can have millions
    if pins.reader_of(path) is not None or _SETS_ENVIRONMENT.match(name):
        return True
    in_folder = os.path.dirname(path).endswith(_ENVIRONMENT_FOLDERS)
    return in_folder and name.endswith((".yml", ".yaml"))


def largest(path: str) -> int:
    """The largest size at which a project file is read, in bytes."""
    return 16 * _MB if _LOCK.match(os.path.basename(path)) else _MB


class ProjectSearch:
    """The evidence of a run."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    def choice(self) -> KerasChoice:
        """The Keras version that the evidence so far decides for."""
        return choose(self.evidence)

    def may_decide(self, real: str, data: bytes) -> bool:
        """Whether a Python file or notebook may have evidence."""
        return b"tf_keras" in data or _LEGACY_KERAS in data or real.endswith(_SETUP)

    def source(self, path: str, real: str, data: bytes) -> None:
        """Adds the evidence in a Python file or notebook.

        Args:
          path: the path to show in reports.
          real: the absolute path.
          data: the content.
        """
        if len(data) <= _MOST_SOURCE and any(word in data for word in legacy_keras.WORDS):
            notebook = real.endswith(".ipynb")
            read = legacy_keras.in_notebook if notebook else legacy_keras.in_python
            self.evidence += read(path, data)
        if real.endswith(_SETUP):
            self._pins(path, real, data)

    def project_file(self, path: str, real: str, data: bytes) -> None:
        """Like `source`, for a file of another kind."""
        if real.endswith(".py"):
            self.source(path, real, data)
            return
        if _LEGACY_KERAS in data:
            self.evidence += legacy_keras.in_text(path, data)
        self._pins(path, real, data)

    def _pins(self, path: str, real: str, data: bytes) -> None:
        reader = pins.reader_of(real) or pins.reader_of(path)
        known = data.lower()
        if reader is None or len(data) > largest(real):
            return
        if b"tensorflow" in known or b"keras" in known or b"nightly" in known:
            text = data.decode("utf-8-sig", "replace")
            self.evidence += pins.evidence_of(path, text, reader)
