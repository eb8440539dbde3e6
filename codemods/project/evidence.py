"""The Keras version of a project, from its files, or else from what is installed.

The files are searched when a run searches them anyway, so that each is read once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Optional

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from ..files.printable import quoted, visible
from ..model import FileError, KerasChoice
from .pins import TENSORFLOW, Evidence, has_pins, keras_of, pins_in

__all__ = ["ProjectSearch", "is_project_file", "largest", "legacy_keras_in", "version_of"]

_UNKNOWN = "no Keras version found in the project; pass --keras 2 or --keras 3 to choose one"
_SHOWN = 20
"""How many places are listed."""

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
        return _choose(self._evidence)

    def sets_legacy_keras(self) -> bool:
        """Whether a file sets `TF_USE_LEGACY_KERAS`, so that `tf.keras` is `tf_keras`."""
        settings = (found for found in self._evidence if found.words.startswith(LEGACY_KERAS))
        return any(found.keras == 2 for found in settings)

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
        self._evidence += [mention._replace(path=path) for mention in found]


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
        if LEGACY_KERAS in line:
            yield from _set_in(number, line)


def _set_in(number: int, line: str) -> Iterator[Evidence]:
    """Yields the values to which a line sets `TF_USE_LEGACY_KERAS`."""
    for match in _SET.finditer(line.split("#")[0]):
        value = match[1]
        is_on = value in LEGACY_KERAS_VALUES
        is_off = value.lower() in ("0", "false")
        is_read = _READ.search(line[max(match.start() - 20, 0) : match.start()])
        if (is_on or is_off) and not is_read:
            words = f"{LEGACY_KERAS}={value}"
            yield Evidence(number, 2 if is_on else 3, words, is_pin=False)


def _choose(evidence: Iterable[Evidence]) -> KerasChoice:
    """Returns the target that the evidence decides, or else the installed TensorFlow.

    `TF_USE_LEGACY_KERAS` and imports of `tf_keras` come first, then version pins. If the evidence
    of one kind is contradictory, or if there is none at all, the result runs on both versions.
    """
    ordered = sorted(set(evidence), key=_order)
    for is_pin in (False, True):
        found = [mention for mention in ordered if mention.is_pin is is_pin]
        two, three = ([mention for mention in found if mention.keras == keras] for keras in (2, 3))
        if two and three:
            words = f"{two[0].words} means Keras 2, but {_place(three[0])} means Keras 3"
            more = "the result runs on both; pass --keras 2 or --keras 3 to choose one"
            warning = FileError(two[0].path, two[0].line, f"{words}; {more}")
            reason = f"contradictory: {_place(two[0])}, but {_place(three[0])}"
            return KerasChoice(None, reason, (warning,), _details(found))
        if found:
            return KerasChoice(found[0].keras, _place(found[0]), (), _details(found))
    return _installed_keras()


def _order(place: Evidence) -> tuple[int, str, int, str]:
    """The key for sorting: files near the top of the project come first."""
    return place.path.replace("\\", "/").count("/"), place.path, place.line, place.words


def _place(place: Evidence) -> str:
    return f"{visible(place.words)} in {quoted(place.path)}:{place.line}"


def _details(found: list[Evidence]) -> tuple[str, ...]:
    more = len(found) - _SHOWN
    shown = [f"Keras {mention.keras}: {_place(mention)}" for mention in found[:_SHOWN]]
    return (*shown, f"and {more:,} more") if more > 0 else tuple(shown)


def version_of(package: str) -> Optional[str]:
    """The version of an installed distribution; None if it is not installed."""
    from importlib import metadata  # late: it takes longer to import than most of the command

    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return None


def _installed_keras() -> KerasChoice:
    """Returns the Keras of the TensorFlow that is installed beside the command, and the reason.

    The last evidence, after settings and files of the project. `TF_USE_LEGACY_KERAS` in the
    environment counts only for TensorFlow from 2.16 on, which has Keras 3 otherwise.
    """
    versions = {name: version_of(name) for name in TENSORFLOW}
    for name, version in versions.items():
        keras = keras_of("tensorflow", f"=={version}") if version else None
        if keras is None:
            continue
        words = f"{name} {version} is installed"
        value = os.environ.get(LEGACY_KERAS)
        if keras == 3 and value in LEGACY_KERAS_VALUES:
            reason = f"{words}, and {LEGACY_KERAS}={value} is set in the environment"
            return KerasChoice(2, reason)
        beside = version_of("keras")
        if beside:
            words = f"{name} {version} and keras {beside} are installed"
        return KerasChoice(keras, words)
    return KerasChoice(None, _UNKNOWN)
