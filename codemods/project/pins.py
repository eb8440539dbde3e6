"""The versions of TensorFlow and Keras that the files of a project require.

The files are searched line by line for requirements, as pip, Poetry and conda write them; nothing
is executed. What cannot be read does not decide. The `packaging` library would read only pip's.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

from tf_lossscale._versions.releases import FIRST_WITH_KERAS_3, LAST_WITH_KERAS_2

__all__ = ["TENSORFLOW", "Evidence", "has_pins", "keras_of", "pins_in"]

TENSORFLOW = (
    *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-macos"),
    *("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
)
"""The distributions of TensorFlow."""

_LOCKS = re.compile(r"(?:poetry|uv|pdm|Pipfile)\.lock|pylock\.toml|conda-lock\.yml")
_FILES = re.compile(
    r"(?:.*/)?(?:setup\.(?:cfg|py)|pyproject\.toml|Pipfile"
    r"|[^/]*requirements[^/]*\.(?:txt|in)|[^/]*constraints[^/]*\.txt|requirements/[^/]*\.(?:txt|in)"
    rf"|environment[^/]*\.ya?ml|[^/]*conda[^/]*\.ya?ml|{_LOCKS.pattern})"
)
"""Matches the last two parts of the paths of files with requirements."""

_NAME = r"((?i:tensorflow|tf[-_.]nightly)(?:[-_.](?:cpu|gpu|intel|macos))?|(?i:(?:tf[-_.])?keras))"
_LINE = re.compile(
    rf"(?:^\s*(?:-\s+|[\w.-]+\s*=\s*)?[\"']?(?:[\w./-]+::)?|[\"']){_NAME}(?![-\w.])[\"']?\s*(?:\[[\w\s,-]*\]\s*)?"
    # A table of Poetry or Pipenv: `tensorflow = "^2.10"` or `tensorflow = {version = "^2.10"}`.
    r"(?:=\s*(?:\{[^}]{0,200}?\bversion\s*=\s*)?[\"'])?([^\"'#;@\\{}]*)"
)
_PIPFILE_LOCKED = re.compile(
    rf'"{_NAME}"\s*:\s*\{{[^{{}}]{{0,20000}}?"version"\s*:\s*"=*([\w.+-]+)"'
)
_LOCKED = re.compile(
    rf"^[ \t]*(?:-[ \t]+)?name[ \t]*[:=][ \t]*[\"']?{_NAME}[\"']?[ \t]*\r?\n"
    r"[ \t]*version[ \t]*[:=][ \t]*[\"']?([\w.+-]+)",
    re.MULTILINE,
)
"""A package in a lock file: its name, and its version in the next line."""

_CLAUSE = re.compile(
    r"(===|==|~=|!=|<=|>=|<|>|=|\^|~|)\s*v?(?:\d+!)?(\d{1,9}(?:\.\d{1,9})*)(?!\.?\d)"
    r"(\.?\*)?(?:[-_.+=a-zA-Z][-\w.+=]*)?\Z"
)
_OWN_TABLE = re.compile(
    r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?tf-lossscale\b[^\n]*(?:\n(?![ \t]*\[)[^\n]*)*",
    re.MULTILINE,
)
"""The settings of this command, in which `keras = "3"` is no requirement."""
_LONGEST_LINE = 2000
_LONGEST = 200
_MOST = 100
"""How many requirements of TensorFlow or Keras are read in each file."""
_LAST = (10**9,)
"""After every version."""
_Version = tuple[int, ...]


class Evidence(NamedTuple):
    """A line that decides for one Keras version.

    Attributes:
      line: the line, counted from 1.
      keras: the Keras version: 2 or 3.
      words: what the file contains there, such as `tensorflow==2.10`.
      path: the path of the file, as reports show it.
      is_pin: whether it requires a version; otherwise it turns legacy Keras on or off, or uses it.
    """

    line: int
    keras: int
    words: str
    path: str = ""
    is_pin: bool = True


def has_pins(path: str) -> bool:
    """Whether the file with this path is read, by its name."""
    return bool(_FILES.fullmatch("/".join(path.replace(os.sep, "/").split("/")[-2:])))


def pins_in(path: str, text: str) -> Iterator[Evidence]:
    """Yields the requirements in a file that allow only one Keras version."""
    is_conda = path.endswith((".yml", ".yaml"))
    is_lock = _LOCKS.fullmatch(os.path.basename(path))
    if path.endswith(".toml"):
        text = _OWN_TABLE.sub(lambda table: "\n" * table[0].count("\n"), text)
    found = _locked(path, text) if is_lock else _required(text)
    for line, name, specifier in itertools.islice(found, _MOST):
        keras = keras_of(name, specifier)
        is_setting = re.match("=[^=]", specifier) and not is_conda  # such as `keras = 3`
        if keras is not None and not is_setting:
            space = " " if specifier[:1].isalnum() else ""
            yield Evidence(line, keras, f"{name}{space}{specifier}")


def _locked(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    line = at = 0
    pattern = _PIPFILE_LOCKED if path.endswith("Pipfile.lock") else _LOCKED
    for match in pattern.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield line + 1, match[1], f"=={match[2]}"


def _required(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) <= _LONGEST_LINE and not line.lstrip().startswith("#"):
            for match in _LINE.finditer(line):
                yield number, match[1], match[2].partition(" --")[0].strip().rstrip(" =")


def keras_of(name: str, specifier: str) -> Optional[int]:
    """The Keras version, 2 or 3, that all versions that a specifier allows have.

    Returns:
      None if the allowed versions include both, or if the specifier cannot be read: alternatives
      are not read, and exclusions do not count. Every version of tf-keras is Keras 2.

    >>> keras_of("tensorflow", ">=2.4,<2.16"), keras_of("keras", "^3.1")
    (2, 3)
    >>> keras_of("tensorflow", ">=2.4")
    """
    name = re.sub("[-_.]", "-", name).lower()
    if name == "tf-keras":
        return 2
    if len(specifier) > _LONGEST or name not in (*TENSORFLOW, "keras"):
        return None
    admitted = _admitted(specifier)
    if admitted is None:
        return None
    low, high = admitted
    if low >= high:
        return None
    package = "keras" if name == "keras" else "tensorflow"
    if LAST_WITH_KERAS_2[package] < low:
        return 3 if high > FIRST_WITH_KERAS_3[package] else None
    return 2 if high <= FIRST_WITH_KERAS_3[package] else None


def _admitted(specifier: str) -> Optional[tuple[_Version, _Version]]:
    """The first version that a specifier admits, and the first one after; None if unreadable."""
    low: _Version = (0,)
    high: _Version = _LAST
    for part in re.split(r"[,\s]+(?![\d.]|v\d)", specifier.strip("() ")):
        match = _CLAUSE.match(part)
        if match is None:
            if part in ("", "*"):
                continue
            return None
        if match[1] != "!=":
            first, last = _interval(match[1], match[2], bool(match[3]))
            low, high = max(low, first), min(high, last)
    return low, high


def _interval(operator: str, text: str, is_prefix: bool) -> tuple[_Version, _Version]:
    """The first version that a clause admits, and the first one after those that it admits."""
    version = tuple(map(int, text.split(".")[:3]))
    full = (*version, 0, 0)[:3]
    if operator == "<":
        return (0,), full
    if operator == "<=":
        return (0,), _after(full)
    if operator in (">", ">="):
        return (_after(full) if operator == ">" else full), _LAST
    if operator == "^":
        kept = next((i for i, part in enumerate(version) if part), len(version) - 1) + 1
    elif operator in ("~", "~="):
        kept = 2 if operator == "~" else max(len(version) - 1, 1)
    else:  # conda's `=2.10` is a prefix
        kept = len(version) if is_prefix or operator == "=" else 3
    return full, _after(version[:kept] if kept < 3 else full)


def _after(version: _Version) -> _Version:
    """The first version after all that begin with the numbers of `version`."""
    return (*version[:-1], version[-1] + 1)
