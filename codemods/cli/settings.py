"""Settings from `[tool.tf-lossscale]` in the project's pyproject.toml.

The file belongs to the repository, which nobody has to trust. So it is searched for in the
repository only, it is a regular file of the user's, reading it takes bounded time, and no key can
make a run write, execute or leave out anything unseen.
"""

from __future__ import annotations

import importlib
import os
import re
import reprlib
import stat
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from ..files.git import top_of
from ..files.printable import quoted, visible

__all__ = ["Settings", "SettingsError", "load"]

_TABLE = "tool.tf-lossscale"

_MOST_BYTES = 512 * 1024
_MOST_WORK = 5 * 10**7
"""Bound of the squared number of dots on a line: reading dotted keys takes quadratic time."""

_MOST_STRINGS = 200
_LONGEST_STRING = 200
"""A glob is matched with each path of the repository."""

_SHOWN = ("allow-dirty", "unsafe", "exclude")
"""The keys that the summary shows: with them a repository could make a run do more, or see less."""


class SettingsError(ValueError):
    """What is wrong in pyproject.toml, with its place."""


class Settings(NamedTuple):
    """The table.

    Attributes:
      values: option name, as argparse spells it, to value; only what the file sets.
      path: of the file; empty where there is none, or none with our table.
    """

    values: dict[str, Any]
    path: str = ""

    @property
    def directory(self) -> str:
        """The directory of the file, which its globs are relative to."""
        return os.path.dirname(self.path)

    def shown(self, counts: Callable[[str], bool]) -> str:
        """The line of the summary with the settings that users must know of; empty without such.

        Args:
          counts: whether the setting of that option counts, as the command line has no other.
        """
        parts = []
        for key in _SHOWN:
            name = key.replace("-", "_")
            value = self.values.get(name)
            if value and counts(name):
                listed = ", ".join(map(quoted, value)) if isinstance(value, list) else "true"
                parts.append(f"{key} = {listed}")
        return f"settings of {_shown(self.path)}: {'; '.join(parts)}" if parts else ""


def load(paths: Sequence[str]) -> Settings:
    """The settings of the project that holds all of `paths`.

    That is the pyproject.toml in their common directory, or the nearest above it, up to the top of
    the git work tree. Outside git it is searched for up to the working directory, or in the common
    directory alone where the working directory is not above that.

    Raises:
      SettingsError: it is no TOML, has a key or value that we do not know, is not a regular file,
        is too large, or belongs to another user.
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
    last = _last_directory(above)
    while True:
        path = os.path.join(above, "pyproject.toml")
        if os.path.lexists(path) and not os.path.isdir(path):
            return path
        parent = os.path.dirname(above)
        if above == last or parent == above:
            return None
        above = parent


def _last_directory(start: str) -> str:
    """The uppermost directory in which the settings of what is in `start` are searched for."""
    top = top_of(start)
    if top is not None:
        return top
    here = os.path.realpath(os.getcwd())
    return here if start == here or start.startswith(here.rstrip(os.sep) + os.sep) else start


def _read(path: str) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SettingsError(f"{_shown(path)}:0: is not a regular file; {_WITHOUT}")
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SettingsError(f"{_shown(path)}:0: {reason}") from None
    if len(data) > _MOST_BYTES:
        raise SettingsError(f"{_shown(path)}:0: is larger than 512 KiB; {_WITHOUT}")
    return data


_WITHOUT = "pass --no-settings to go without it"


def _refuse_other_owner(path: str) -> None:
    """Raises an error where somebody else than the user or root has made the file or its link."""
    if not hasattr(os, "geteuid"):
        return
    trusted = {0, os.geteuid()}
    by_sudo = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and by_sudo.isdigit():
        trusted.add(int(by_sudo))
    for status in (os.lstat(path), os.stat(path)):
        if status.st_uid not in trusted:
            raise SettingsError(
                f"{_shown(path)}:0: belongs to another user (id {status.st_uid}), so its settings "
                f"are not taken; {_WITHOUT}"
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
                f"{path}:{_line(text, key)}: [{_TABLE}] has no key {_short(key)}; it has {known}"
            )
        try:
            values[key.replace("-", "_")] = read(value)
        except ValueError as error:
            raise SettingsError(
                f"{path}:{_line(text, key)}: [{_TABLE}] {key} = {_short(value)}: {error}"
            ) from None
    return values


def _parsed(path: str, text: str) -> dict[str, Any]:
    if sum(line.count(".") ** 2 for line in text.split("\n")) > _MOST_WORK:
        raise SettingsError(f"{path}:0: its keys have too many parts to be read; {_WITHOUT}")
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{line[1] if line else 0}"
        raise SettingsError(f"{place}: is no TOML: {visible(str(error))}") from None
    except RecursionError:
        raise SettingsError(f"{path}:0: is nested too deeply; {_WITHOUT}") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise SettingsError(f"{path}:0: cannot be read: {visible(str(error))}") from None
    return parsed


def _short(value: object) -> str:
    shortened = reprlib.Repr()
    shortened.maxstring = shortened.maxother = 60
    try:
        return visible(shortened.repr(value))
    except ValueError:  # a number of more digits than Python prints
        return "a number too large to show"


def _line(text: str, key: str) -> int:
    """Where `key` stands in our table, or the table itself."""
    here = inside = 0
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            ours = "tf-lossscale" in line
            here, inside = (number, number) if ours else (here, 0)
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
    from .. import reports  # not before: most runs need no report's module so early

    values = _strings(value)
    for one in values:
        report = reports.parse(one)
        if report.file is not None:
            raise ValueError(
                "names a file, which settings cannot do; say where the report goes on the command "
                f"line: --report {report.format}:FILE"
            )
    return values


_KEYS: dict[str, Callable[[object], object]] = {
    "to": _one_of("shim", "final"),
    "keras": _one_of(2, 3),
    "unsafe": _flag,
    "mark": _flag,
    "allow-dirty": _flag,
    "select": _strings,
    "ignore": _strings,
    "exclude": _strings,
    "report": _formats,
    "jobs": _number,
}
"""Not among them: `write` and `check`, as what a run does to files is said where it is started.

`report` has formats only, for the same reason: where a report goes is said on the command line.
"""
