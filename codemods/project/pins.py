"""The versions of TensorFlow and Keras that the files of a project require.

Each format is read only as far as its dependencies need, and nothing is executed: of setup.py, the
string literals count. Unknown or damaged content is skipped.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import Any, Callable, NamedTuple, Optional

from ..files import toml
from .evidence import Evidence, Rank
from .legacy_keras import tokens
from .specifiers import PACKAGES, keras_of, normalized

__all__ = ["Pin", "Reader", "evidence_of", "reader_of"]

_LONGEST_LINE = 2000
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_REQUIREMENT = re.compile(rf"\s*({_NAME})\s*(?:\[[^\]]*\])?\s*([^;#@]*)")
_CONDA = re.compile(rf"\s*-\s+[\"']?(?:[\w./-]+::)?({_NAME})\s*(?:\[[^\]]*\])?\s*([^#\"']*)")
_LOCKED = re.compile(rf"\s*(?:-\s+)?name\s*[:=]\s*[\"']?({_NAME})[\"']?\s*\Z")
_LOCKED_VERSION = re.compile(r"\s*version\s*[:=]\s*[\"']?([\w.+-]+)")
_JSON_LOCKED = re.compile(rf"\s*\"({_NAME})\":\s*\{{\s*\Z")
_JSON_VERSION = re.compile(r"\s*\"version\":\s*\"([^\"]*)\"")
_LITERAL = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')([^\\]*)\1\Z", re.DOTALL)
_SHOWN = re.compile(r"[\w.,*+!<>=~^| -]*\Z")
"""What reports show of a specifier; a version of tf-keras can be any text."""

_MOST_PINS = 100
"""How many requirements of TensorFlow or Keras are read in each file."""

_NEAR = 25
"""The lines of a lock file in which the version follows the name."""


class Pin(NamedTuple):
    """A required distribution: the line, the name, the version specifier, which may be empty."""

    line: int
    name: str
    specifier: str


Reader = Callable[[str], Iterable[Pin]]


def evidence_of(path: str, text: str, reader: Reader) -> Iterator[Evidence]:
    """Yields the pins that allow only one Keras version."""
    for pin in itertools.islice(reader(text), _MOST_PINS):
        keras = keras_of(pin.name, pin.specifier)
        if keras is not None:
            shown = pin.specifier if _SHOWN.match(pin.specifier) else ""
            words = f"{pin.name}{' ' if shown[:1].isalnum() else ''}{shown}"
            yield Evidence(Rank.PIN, keras, path, pin.line, words)


def reader_of(path: str) -> Optional[Reader]:
    """The function that reads the pins in a file with this path; None if it has none."""
    tail = "/".join(path.replace(os.sep, "/").split("/")[-2:])
    return next((reader for names, reader in _READERS if names.match(tail)), None)


def _requirements(text: str) -> Iterator[Pin]:
    """Yields the pins of a requirements or constraints file."""
    for number, line in _numbered(text):
        yield from _requirement(number, re.split(r"\s(?:#|--|\\)", line)[0])


def _requirement(number: int, text: str) -> Iterator[Pin]:
    match = _REQUIREMENT.match(text)
    if match and normalized(match[1]) in PACKAGES:
        yield Pin(number, match[1], match[2].strip().rstrip("\\").rstrip())


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= _LONGEST_LINE:
            yield number, line


def _setup_cfg(text: str) -> Iterator[Pin]:
    section = ""
    for number, line in _numbered(text):
        if line.startswith("["):
            section = line.strip().strip("[]")
        elif section in ("options", "options.extras_require"):
            value = line if line[:1].isspace() else re.sub(r"\A[\w.\- ]+[=:](?!=)", "", line)
            yield from _requirement(number, value)


def _setup_py(text: str) -> Iterator[Pin]:
    """The string literals in brackets that are a requirement."""
    depth = 0
    for token in tokens(text.encode("utf-8", "replace")):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.STRING and depth > 0:
            match = _LITERAL.match(token.string)
            for index, line in enumerate(match[2].split("\n") if match else ()):
                yield from _requirement(token.start[0] + index, line)


def _pyproject(text: str) -> Iterator[Pin]:
    try:
        content = toml.parse(text)
    except toml.TomlError:
        return
    listed = [
        *_strings(_at(content, "project", "dependencies")),
        *_strings(_at(content, "project", "optional-dependencies")),
        *_strings(_at(content, "dependency-groups")),
        *_strings(_at(content, "tool", "uv", "dev-dependencies")),
        *_strings(_at(content, "tool", "uv", "constraint-dependencies")),
        *_strings(_at(content, "tool", "pdm", "dev-dependencies")),
    ]
    for requirement in listed:
        for pin in _requirement(0, requirement):
            yield pin._replace(line=_line(text, re.escape(requirement.strip())))
    poetry = _at(content, "tool", "poetry")
    tables = [_at(poetry, "dependencies"), _at(poetry, "dev-dependencies")]
    groups = _at(poetry, "group")
    if isinstance(groups, dict):
        tables += [_at(group, "dependencies") for group in groups.values()]
    yield from _tables(text, tables)


def _pipfile(text: str) -> Iterator[Pin]:
    with contextlib.suppress(toml.TomlError):
        content = toml.parse(text)
        yield from _tables(text, [_at(content, "packages"), _at(content, "dev-packages")])


def _tables(text: str, tables: Iterable[object]) -> Iterator[Pin]:
    """The pins in tables of names and versions, as Poetry and Pipenv have them."""
    for table in tables:
        for name, value in table.items() if isinstance(table, dict) else ():
            if normalized(name) not in PACKAGES:
                continue
            for one in value if isinstance(value, list) else [value]:
                version = _at(one, "version") if isinstance(one, dict) else one
                line = _line(text, rf"^[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*=")
                yield Pin(line, name, version if isinstance(version, str) else "")


def _at(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _strings(value: Any) -> Iterator[str]:
    """The strings in a list, or in the lists of a table."""
    for one in value.values() if isinstance(value, dict) else [value]:
        if isinstance(one, list):
            yield from (each for each in one if isinstance(each, str))


def _line(text: str, pattern: str) -> int:
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _environment_yml(text: str) -> Iterator[Pin]:
    for number, line in _numbered(text):
        match = _CONDA.match(line)
        if match and normalized(match[1]) in PACKAGES:
            specifier = match[2].split(";")[0].strip()
            # `=2.10.0=py39_0` ends in the build.
            yield Pin(number, match[1], re.sub(r"\A(=?\s*[\w.*]+)=[^=].*", r"\1", specifier))


def _lock(text: str) -> Iterator[Pin]:
    return _locked(text, _LOCKED, _LOCKED_VERSION, "==")


def _pipfile_lock(text: str) -> Iterator[Pin]:
    return _locked(text, _JSON_LOCKED, _JSON_VERSION, "")


def _locked(
    text: str, name: re.Pattern[str], version: re.Pattern[str], operator: str
) -> Iterator[Pin]:
    """The packages whose version follows the name on a line of its own."""
    package, until = "", 0
    for number, line in _numbered(text):
        named = name.match(line)
        if named:
            package = named[1] if normalized(named[1]) in PACKAGES else ""
            at, until = number, number + _NEAR
        found = version.match(line) if package and number <= until else None
        if found:
            yield Pin(at, package, operator + found[1])
            package = ""


_LOCK_FILES = r"(?:poetry|uv|pdm)\.lock|pylock\.toml|conda-lock\.yml"
_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(rf"(?:.*/)?(?:{names})\Z"), reader)
    for names, reader in (
        (r"setup\.cfg", _setup_cfg),
        (r"setup\.py", _setup_py),
        (r"pyproject\.toml", _pyproject),
        (r"Pipfile", _pipfile),
        (r"Pipfile\.lock", _pipfile_lock),
        (_LOCK_FILES, _lock),
        (r"[^/]*requirements[^/]*\.(?:txt|in)|[^/]*constraints[^/]*\.txt", _requirements),
        (r"requirements/[^/]*\.(?:txt|in)", _requirements),
        (r"environment[^/]*\.ya?ml|[^/]*conda[^/]*\.ya?ml", _environment_yml),
    )
)
"""The function for each name of a file; the first that matches counts."""
