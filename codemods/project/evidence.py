"""The Keras version of a project, from its files, or else from what is installed.

The files are searched when a run searches them anyway, so that each is read once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Callable, NamedTuple, Optional

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from ..files.printable import quoted, visible
from ..model import FileError, KerasChoice
from .configurations import in_ini, in_toml, in_yaml
from .environment import places_in
from .pins import TENSORFLOW, Evidence, has_pins, keras_of, pins_in
from .scripts import in_dockerfile, in_environment_file, in_makefile, in_script
from .shell import PYTHON

__all__ = [
    "CodeCell",
    "ProjectSearch",
    "is_project_file",
    "largest",
    "legacy_keras_in",
    "legacy_keras_in_cells",
    "version_of",
]

_UNKNOWN = "no Keras version found in the project; pass --keras 2 or --keras 3 to choose one"
_SHOWN = 20
"""How many places are listed."""

_MB = 1024 * 1024
_MOST_SOURCE = 4 * _MB
"""The largest Python file or notebook in which evidence is searched, in bytes."""

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
_PACKAGE = "tf_keras"
_IMPORTED = _PACKAGE.encode()
_PACKAGES = (b"tensorflow", b"keras", b"nightly")
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str, str], Iterator[tuple[int, str]]]], ...] = (
    (re.compile(r"Dockerfile.*|Containerfile.*|.*\.dockerfile", re.IGNORECASE), in_dockerfile),
    (re.compile(r"Makefile"), in_makefile),
    (re.compile(r".*\.(?:sh|bash)|\.envrc"), in_script),
    (re.compile(r"\.env(?:\..*)?|.*\.env"), in_environment_file),
    (re.compile(r".*\.(?:ini|cfg)"), in_ini),
    (re.compile(r".*\.toml|Pipfile"), in_toml),
    (re.compile(r".*\.ya?ml"), in_yaml),
)
"""How each kind of file is read, by its name; others, such as lock files, set no variable."""
_TEMPLATE = re.compile(
    r"(?:.*[._-])?(?:example|sample|template|dist|tmpl|tpl|defaults?)(?:[._-].*)?", re.IGNORECASE
)
"""Matches the names of files that are copied first, such as `.env.example`."""
_PYTHON = (".py", ".pyi", ".pyw")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)(?:[ \t]+-a)?[ \t]*([^\s-]\S*)?")
_SHELLS = frozenset({"bash", "script", "sh", "sx", "system"})
"""Cell magics whose body a shell runs."""
_WRITERS = frozenset({"file", "writefile"})
"""Cell magics whose body becomes the file that they name."""
_LINE_MAGIC = re.compile(
    rf"\s*%(?:set_)?env[ \t]+{LEGACY_KERAS}(?:[ \t]*=[ \t]*|[ \t]+)(\w+)[ \t]*"
)
_SHELL_LINE = re.compile(r"[^!%]*(?:!!?|%(?:system|sx)\b)")
"""What stands before a command in a line that a shell runs."""


class CodeCell(NamedTuple):
    """A code cell of a notebook.

    Attributes:
      source: its Python code, with a comment or `pass` in place of each magic or shell line; None
        if the whole cell is in a different language.
      magics: its magic and shell lines, by number from 1.
      line_of: gives the line of the file of a line of the cell; both count from 1.
    """

    source: Optional[str]
    magics: Mapping[int, str]
    line_of: Callable[[int], int]


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
        if len(data) > _MOST_SOURCE:
            return False
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
        if _LEGACY_KERAS in data or _IMPORTED in data:
            is_target = is_project_file(real) and not is_project_file(path)
            self._add(path, legacy_keras_in(real if is_target else path, text))
        known = data.lower()
        named = path if has_pins(path) else real  # a link, or its target
        if has_pins(named) and any(word in known for word in _PACKAGES):
            self._add(path, pins_in(named, text))

    def add_cells(self, path: str, cells: Iterable[CodeCell]) -> None:
        """Adds the evidence in the code cells of a notebook, whose path in reports is given."""
        self._add(path, legacy_keras_in_cells(cells))

    def _add(self, path: str, found: Iterable[Evidence]) -> None:
        self._evidence += [mention._replace(path=path) for mention in found]


def legacy_keras_in(path: str, text: str) -> Iterator[Evidence]:
    """Yields the places that set `TF_USE_LEGACY_KERAS` or import `tf_keras`.

    Without the name of a file that sets environment variables or lists packages, the text is read
    as Python. A text that only mentions the variable does not count, nor do templates, such as
    `.env.example`, or the code of tests.
    """
    if path.endswith(_PYTHON) or not is_project_file(path):
        return _in_python(text, path)
    return _in_project_file(os.path.basename(path), text)


def legacy_keras_in_cells(cells: Iterable[CodeCell]) -> Iterator[Evidence]:
    """Yields the places in code cells that set `TF_USE_LEGACY_KERAS` or import `tf_keras`."""
    for cell in cells:
        for place in _in_cell(cell):
            yield place._replace(line=cell.line_of(place.line))


def _in_project_file(name: str, text: str) -> Iterator[Evidence]:
    """Yields the places in a file that is not Python."""
    if LEGACY_KERAS not in text or _TEMPLATE.fullmatch(name):
        return
    text = text.replace("\r\n", "\n")
    for pattern, values_in in _FORMS:
        if pattern.fullmatch(name):
            for number, value in values_in(text, LEGACY_KERAS):
                yield from _evidence_of(number, value)
            return


def _in_cell(cell: CodeCell) -> Iterator[Evidence]:
    """Yields the places in a cell, with the lines of the cell."""
    if cell.source is not None:
        yield from _in_python(cell.source, "")
        yield from _in_magics(cell.magics)
        return
    first, *lines = cell.magics.values()
    body = "\n".join(["", *lines])
    magic = _CELL_MAGIC.match(first)
    if magic is not None and magic[1] in _SHELLS:
        yield from _in_shell(1, body)
    elif magic is not None and magic[1] in _WRITERS and magic[2]:
        yield from legacy_keras_in(magic[2], body)


def _in_magics(magics: Mapping[int, str]) -> Iterator[Evidence]:
    """Yields the places in magic and shell lines, which a backslash continues."""
    start = 0
    text = ""
    for number, line in magics.items():
        start, text = (start, f"{text}\n{line}") if text.endswith("\\") else (number, line)
        setting = _LINE_MAGIC.fullmatch(line)
        if setting is not None:
            yield from _evidence_of(number, setting[1])
        before = _SHELL_LINE.match(text)
        if before is not None and not text.endswith("\\"):
            yield from _in_shell(start, text[before.end() :])


def _in_shell(start: int, text: str) -> Iterator[Evidence]:
    """Yields the places in what a shell of its own runs from a line on.

    What it exports is gone when it ends, so only what a Python program gets counts.
    """
    if LEGACY_KERAS in text:
        for number, value in in_script(text, LEGACY_KERAS, lives_on=False, programs=PYTHON):
            yield from _evidence_of(start + number - 1, value)


def _in_python(text: str, path: str) -> Iterator[Evidence]:
    """Yields the places in Python code, which may be that of tests, by its path."""
    if LEGACY_KERAS not in text and _PACKAGE not in text:
        return
    for number, value in places_in(text, LEGACY_KERAS, _PACKAGE, path):
        if value is None:
            yield Evidence(number, 2, f"an import of {_PACKAGE}", is_pin=False)
        else:
            yield from _evidence_of(number, value)


def _evidence_of(number: int, value: str) -> Iterator[Evidence]:
    """Yields what a value of `TF_USE_LEGACY_KERAS` decides, if it turns it on or off."""
    is_on = value in LEGACY_KERAS_VALUES
    if is_on or value.lower() in ("0", "false"):
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
