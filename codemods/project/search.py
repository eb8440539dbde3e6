"""Collects evidence from the files of a run while they are searched: each file is read once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from ..model import KerasChoice
from .evidence import choose
from .pins import Evidence, has_pins, pins_in

__all__ = ["ProjectSearch", "is_project_file", "largest", "legacy_keras_in"]

_MB = 1024 * 1024
_MOST_SOURCE = 4 * _MB
"""The largest Python file or notebook in which evidence is searched, in bytes."""
_LONGEST_LINE = 2000

_SUFFIXES = (
    *(".txt", ".in", ".cfg", ".py", ".toml", ".lock", ".yml", ".yaml"),
    *(".sh", ".bash", ".env", ".ini", ".Dockerfile", ".dockerfile"),
)
_PREFIXES = ("Dockerfile", "Containerfile", "Makefile", "Pipfile", ".env")
"""What the names of all project files end or begin with."""

_SETS_ENVIRONMENT = re.compile(
    r"(?:Dockerfile.*|Containerfile.*|.*\.[Dd]ockerfile|.*\.sh|.*\.bash|\.env(?:\..*)?|.*\.env|\.envrc"
    r"|Makefile|tox\.ini|pytest\.ini|\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml"
    r"|azure-pipelines.*\.yml|cloudbuild.*\.yaml|(?:docker-)?compose.*\.ya?ml)\Z"
)
"""Matches the names of files that set environment variables."""
_ENVIRONMENT_FOLDERS = (os.path.join(".github", "workflows"), ".circleci")

_LEGACY_KERAS = LEGACY_KERAS.encode()
_IMPORTED = b"tf_keras"
_PACKAGES = (b"tensorflow", b"keras", b"nightly")
_SET = re.compile(
    # Not the expansion `$TF_USE_LEGACY_KERAS`. Dockerfiles allow a space instead of `=`, and quotes
    # are escaped in notebooks.
    rf"(?<![\w$\{{]){LEGACY_KERAS}"
    r"(?:\\?[\"'])?(?:\s{0,9}\]?\s{0,9}[:=,](?!=)\s*|[ \t]+)(?:\\?[\"'])?(\w+)"
)
_READ = re.compile(r"(?:get|getenv|pop)\(\s*\\?[\"']\Z")
"""What stands before the name where the variable is read."""
_IMPORT = re.compile(r"[ \t]*(?:import|from)[ \t]+tf_keras\b")
_IMPORT_IN_CELL = re.compile(r"[^#]*(?:\"|\\n)[ \t]*(?:import|from)[ \t]+tf_keras\b")
_DOCSTRING = re.compile(r"(\"\"\"|''').*?\1", re.DOTALL)


def is_project_file(path: str) -> bool:
    """Whether a file can have evidence by its name; Python files always can."""
    name = path[path.rfind(os.sep) + 1 :]
    if not name.endswith(_SUFFIXES) and not name.startswith(_PREFIXES):
        return False  # nearly all files, of which a tree can have millions
    if has_pins(path) or _SETS_ENVIRONMENT.match(name):
        return True
    in_folder = os.path.dirname(path).endswith(_ENVIRONMENT_FOLDERS)
    return in_folder and name.endswith((".yml", ".yaml"))


def largest(path: str) -> int:
    """The largest size at which a project file is read, in bytes."""
    return 16 * _MB if "lock" in os.path.basename(path) else _MB


class ProjectSearch:
    """The evidence of a run."""

    def __init__(self) -> None:
        self._evidence: list[Evidence] = []

    def choice(self) -> KerasChoice:
        """The Keras version that the evidence so far decides for."""
        return choose(self._evidence)

    def may_decide(self, real: str, data: bytes) -> bool:
        """Whether a Python file or notebook may have evidence."""
        return _IMPORTED in data or _LEGACY_KERAS in data or real.endswith(os.sep + "setup.py")

    def add(self, path: str, real: str, data: bytes) -> None:
        """Adds the evidence in a file.

        Args:
          path: the path to show in reports.
          real: the absolute path.
          data: the content.
        """
        if len(data) > max(largest(real), _MOST_SOURCE):
            return
        text = data.decode("utf-8-sig", "replace")
        is_source = real.endswith((".py", ".pyi", ".pyw", ".ipynb"))
        if _LEGACY_KERAS in data or (is_source and _IMPORTED in data):
            self._add(path, legacy_keras_in(real, text))
        known = data.lower()
        named = path if has_pins(path) else real  # a link, or its target
        if has_pins(named) and any(word in known for word in _PACKAGES):
            self._add(path, pins_in(named, text))

    def _add(self, path: str, found: Iterable[Evidence]) -> None:
        self._evidence += [one._replace(path=path) for one in found]


def legacy_keras_in(path: str, text: str) -> Iterator[Evidence]:
    """Yields the places that set `TF_USE_LEGACY_KERAS` or import `tf_keras`.

    Comments and docstrings do not count. Long lines are not searched.
    """
    is_import = (_IMPORT_IN_CELL if path.endswith(".ipynb") else _IMPORT).match
    if path.endswith(".py"):
        text = _DOCSTRING.sub(lambda match: "\n" * match[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > _LONGEST_LINE:
            continue
        if "tf_keras" in line and is_import(line):
            yield Evidence(number, 2, "an import of tf_keras", is_pin=False)
        for match in _SET.finditer(line.split("#")[0]) if LEGACY_KERAS in line else ():
            value = match[1]
            is_on, is_off = value in LEGACY_KERAS_VALUES, value.lower() in ("0", "false")
            is_read = _READ.search(line[max(match.start() - 20, 0) : match.start()])
            if (is_on or is_off) and not is_read:
                words = f"{LEGACY_KERAS}={value}"
                yield Evidence(number, 2 if is_on else 3, words, is_pin=False)
