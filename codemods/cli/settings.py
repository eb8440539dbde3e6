"""Settings from `[tool.tf-lossscale]` in the project's pyproject.toml.

The file comes from the repository, which may not be trusted. So it is searched for only inside the
repository, it must be a regular file that belongs to the user, reading it takes bounded time, and
no key can make a run write or execute anything, or skip files without a note.
"""

from __future__ import annotations

import importlib
import os
import re
import reprlib
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from ..files.directories import Directory, TooLargeError
from ..files.discover import enclosing
from ..files.printable import quoted, visible

__all__ = ["Settings", "SettingsError", "load"]

_TABLE = "tool.tf-lossscale"

_MOST_BYTES = 512 * 1024
_MOST_STRINGS = 200
_LONGEST_STRING = 200
"""Limits for lists: every glob is matched against every path of the repository."""

_MOST_WORK = 10**7
"""Limit for the steps of the TOML parser."""

_SHOWN = ("allow-dirty", "unsafe", "exclude")
"""The settings that are printed: they make a run do more, or skip files."""


class SettingsError(ValueError):
    """An error in pyproject.toml; the message starts with its place."""


class Settings(NamedTuple):
    """The settings of a project.

    Attributes:
      values: the settings in the file, by option name as argparse spells it.
      path: the path of the file; empty if there is no file with a `[tool.tf-lossscale]` table.
    """

    values: dict[str, Any]
    path: str = ""

    @property
    def directory(self) -> str:
        """The directory of the file; globs in the file are relative to it."""
        return os.path.dirname(self.path)

    def shown(self, counts: Callable[[str], bool]) -> str:
        """The line that reports the settings that users must know about; may be empty.

        Args:
          counts: whether the setting of an option is in effect, that is, the command line does not
            override it.
        """
        parts = []
        for key in _SHOWN:
            name = key.replace("-", "_")
            value = self.values.get(name)
            if value and counts(name):
                listed = ", ".join(map(quoted, value)) if isinstance(value, list) else "true"
                parts.append(f"{key} = {listed}")
        return f"settings from {_shown(self.path)}: {'; '.join(parts)}" if parts else ""


def load(paths: Sequence[str]) -> Settings:
    """Loads the settings of the project that contains all of `paths`.

    The settings file is the pyproject.toml in the common directory of the paths, or the nearest one
    above it, up to the top of the git work tree. Outside git, the search ends at the working
    directory, or at the common directory if that is not below the working directory.

    Raises:
      SettingsError: if the file is not valid TOML, has an unknown key or an invalid value, is not a
        regular file, is too large, or belongs to another user.
    """
    path = _nearest(paths)
    data = b"" if path is None else _read(path)
    if path is None or b"tf-lossscale" not in data:
        return Settings({})
    _refuse_other_owner(path)
    return Settings(_values(_shown(path), data), path)


def _nearest(paths: Sequence[str]) -> Optional[str]:
    directories = []
    for path in paths:
        real = os.path.realpath(path)
        directories.append(real if os.path.isdir(real) else os.path.dirname(real))
    try:
        above = os.path.commonpath(directories)
    except ValueError:  # on several drives
        return None
    for directory in (above, *enclosing(above)):
        path = os.path.join(directory, "pyproject.toml")
        if os.path.lexists(path) and not os.path.isdir(path):
            return path
    return None


def _read(path: str) -> bytes:
    folder, name = os.path.split(os.path.realpath(path))
    try:
        with Directory(folder) as directory:
            return directory.read(name, _MOST_BYTES)
    except TooLargeError:
        raise SettingsError(f"{_shown(path)}:0: is larger than 512 KiB; {_WITHOUT}") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SettingsError(f"{_shown(path)}:0: {reason}; {_WITHOUT}") from None


_WITHOUT = "pass --no-settings to ignore it"


def _refuse_other_owner(path: str) -> None:
    """Raises an error if the file, or a link to it, belongs to neither the user nor root."""
    if not hasattr(os, "geteuid"):
        return
    trusted = {0, os.geteuid()}
    by_sudo = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and by_sudo.isdigit():
        trusted.add(int(by_sudo))
    for status in (os.lstat(path), os.stat(path)):
        if status.st_uid not in trusted:
            raise SettingsError(
                f"{_shown(path)}:0: belongs to another user (id {status.st_uid}); {_WITHOUT}"
            )


def _shown(path: str) -> str:
    try:
        return quoted(os.path.relpath(path))
    except ValueError:  # on another drive
        return quoted(path)


def _values(path: str, data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}:{line}: is not UTF-8") from None
    tool = _parsed(path, text).get("tool", {})
    table = tool.get("tf-lossscale", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{path}:{_line(text, 'tf-lossscale')}: [{_TABLE}] is not a table")
    values = {}
    for key, value in table.items():
        read = _KEYS.get(key)
        if read is None:
            known = ", ".join(sorted(_KEYS))
            raise SettingsError(
                f"{path}:{_line(text, key)}: [{_TABLE}] has the unknown key {_short(key)}; "
                f"the keys are {known}"
            )
        try:
            values[key.replace("-", "_")] = read(value)
        except ValueError as error:
            raise SettingsError(
                f"{path}:{_line(text, key)}: [{_TABLE}] {key} = {_short(value)}: {error}"
            ) from None
    return values


def _parsed(path: str, text: str) -> dict[str, Any]:
    """Parses TOML in bounded time; real files need a thousandth of it."""
    if _work(text) > _MOST_WORK:
        raise SettingsError(f"{path}:0: its keys have too many parts; {_WITHOUT}")
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    line, hint = 0, f"; {_WITHOUT}"
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
        return parsed
    except tomllib.TOMLDecodeError as error:
        what = f"is not valid TOML: {error}"
        found = re.search(r"at line (\d+)", what)
        if found:
            line, hint = int(found[1]), ""
    except RecursionError:
        what = "is nested too deeply"
    except ValueError as error:  # a number with more digits than Python reads
        what = f"cannot be read: {error}"
    raise SettingsError(f"{path}:{line}: {visible(what)}{hint}")


def _work(text: str) -> int:
    """An upper bound for the steps of the parser that are not proportional to the text.

    A dotted key takes quadratic time, and each key takes as many steps as the header above it has
    parts. A line of a string can look like a header, so the longest header counts everywhere.
    """
    work = longest = 0
    for line in text.split("\n"):
        dots = line.count(".")
        if dots > longest and line.lstrip().startswith("["):
            longest = dots
        work += dots * dots + longest
    return work


def _short(value: object) -> str:
    shortened = reprlib.Repr()
    shortened.maxstring = shortened.maxother = 60
    try:
        return visible(shortened.repr(value))
    except ValueError:  # a number with more digits than Python prints
        return "a number too large to show"


def _line(text: str, key: str) -> int:
    """The line of `key` in the table, or of the table itself."""
    here = inside = 0
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            is_our_table = "tf-lossscale" in line
            here, inside = (number, number) if is_our_table else (here, 0)
        elif inside and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
            return number
    return here


def _one_of(*allowed: object) -> Callable[[object], object]:
    def read(value: object) -> object:
        if value not in allowed or isinstance(value, bool):
            raise ValueError("must be one of " + ", ".join(map(repr, allowed)))
        return value

    return read


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("must be a whole number, 1 or more")
    return value


def _strings(value: object) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError("must be a list of strings")
    if len(values) > _MOST_STRINGS or any(len(one) > _LONGEST_STRING for one in values):
        raise ValueError(
            f"must be at most {_MOST_STRINGS} strings of at most {_LONGEST_STRING} characters"
        )
    return values


def _formats(value: object) -> list[str]:
    from .. import reports  # late: most runs do not need it here

    values = _strings(value)
    for one in values:
        report = reports.parse(one)
        if report.file is not None:
            raise ValueError(
                "names a file, which is allowed on the command line only: "
                f"--report {report.format}:FILE"
            )
    return values


_KEYS: dict[str, Callable[[object], object]] = {
    "to": _one_of("shim", "final"),
    "keras": _one_of("auto", 2, 3),
    "unsafe": _flag,
    "mark": _flag,
    "allow-dirty": _flag,
    "select": _strings,
    "ignore": _strings,
    "exclude": _strings,
    "report": _formats,
    "jobs": _number,
}
"""The keys, each with the function that validates its value.

`write`, `check` and the file of a report cannot be set here: only the command line decides what a
run writes.
"""
