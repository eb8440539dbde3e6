"""Settings from `[tool.tf-lossscale]` in the project's pyproject.toml.

The file comes from the repository, which may not be trusted. So it is searched for only inside the
repository, it must be a regular file that belongs to the user, reading it takes bounded time, and
no key can make a run write or execute anything, or skip files without a note.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

from ..files import atomic_write, git
from ..files.printable import quoted, relative, visible
from ..files.work_trees import enclosing
from .options import Parser, add_options

__all__ = ["Settings", "SettingsError", "load"]

_NAME = "tf-lossscale"
_TABLE = f"tool.{_NAME}"
_LIKE_NAME = re.compile("tf[-_.]?loss[-_.]?scale", re.IGNORECASE)
"""Matches the name of the table, and what is taken for it."""

_IGNORE_IT = "; pass --no-settings to ignore it"
_TRUST_IT = (
    "; add its directory to git's safe.directory, or pass --settings FILE to read it, or "
    "--no-settings to ignore it"
)

_MOST_BYTES = 512 * 1024
_MOST_STRINGS = 200
_LONGEST_STRING = 200
"""Limits for lists: every glob is matched against every path of the repository."""

_MOST_WORK = 10**7
"""Limit for the steps of the TOML parser."""

_FLAGS = ("unsafe", "mark", "allow-dirty")
_LISTS = ("select", "ignore", "exclude", "report")
_KEYS = ("to", "keras", "jobs", *_FLAGS, *_LISTS)
"""The options that can be set here. `write`, `check`, the limits and the file of a report cannot:
only the command line decides what a run writes, and how much it may use up."""

_SHOWN = ("allow-dirty", "unsafe", "exclude", "ignore", "select")
"""The settings that are printed: they make a run do more, or hide findings."""


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

    def shown(self, given: Collection[str]) -> str:
        """The line that reports the settings that users must know about; may be empty.

        Args:
          given: the names of the options that the command line gives, which override settings.
        """
        parts = []
        for key in _SHOWN:
            name = key.replace("-", "_")
            value = self.values.get(name)
            if value and name not in given:
                parts.append(f"{key} = {_listed(value)}")
        return f"settings from {quoted(relative(self.path))}: {'; '.join(parts)}" if parts else ""


def _listed(value: Any) -> str:
    """A flag, globs, or lists of codes, as one text."""
    if not isinstance(value, list):
        return "true"
    texts = [text for item in value for text in (item if isinstance(item, tuple) else [item])]
    return ", ".join(map(quoted, texts))


def load_file(path: str) -> Settings:
    """Loads the settings in a file that the command line names, whoever owns it.

    Raises:
      SettingsError: if it has no settings, or as `load`.
    """
    settings = _read(path, is_named=True)
    if not settings.values:
        raise _error(path, 0, f"has no settings in a table [{_TABLE}]", hint="")
    return settings


def load(paths: Sequence[str]) -> Settings:
    """Loads the settings of the project that contains all of `paths`.

    The settings file is the pyproject.toml in the common directory of the paths, or the nearest one
    above it, up to the top of the git work tree. Outside git, the search ends at the working
    directory, or at the common directory if that is not below the working directory.

    Raises:
      SettingsError: if the file is not valid TOML, has an unknown key or an invalid value, is not a
        regular file, is too large, or belongs to another user and git does not call its directory
        safe.
    """
    path = _nearest(paths)
    return Settings({}) if path is None else _read(path)


def _read(path: str, is_named: bool = False) -> Settings:
    """Reads a file of settings. One that the user has named may belong to anybody."""
    try:
        data = atomic_write.read(os.path.realpath(path), _MOST_BYTES)
    except OSError as error:
        hint = "" if is_named else _IGNORE_IT
        raise _error(path, 0, error.strerror or type(error).__name__, hint) from None
    if _NAME.encode() not in data:
        _refuse_other_name(path, data.decode("utf-8", "replace"))
        return Settings({})
    if not is_named:
        _refuse_other_owner(path)
    try:
        return Settings(_values(path, data.decode("utf-8")), os.path.abspath(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(path, line, "is not UTF-8") from None


def _nearest(paths: Sequence[str]) -> Optional[str]:
    try:
        common = os.path.commonpath([os.path.realpath(path) for path in paths])
    except ValueError:  # on several drives
        return None
    files = (os.path.join(directory, "pyproject.toml") for directory in enclosing(common))
    return next((file for file in files if os.path.lexists(file) and not os.path.isdir(file)), None)


def _error(path: str, line: int, what: str, hint: str = _IGNORE_IT) -> SettingsError:
    """An error at a line; line 0 means the whole file, for which there is a hint."""
    place = quoted(relative(path))
    if line:
        return SettingsError(f"{place}:{line}: {visible(what)}")
    return SettingsError(f"{place}: {visible(what)}{hint}")


def _refuse_other_owner(path: str) -> None:
    """Raises an error if the file, or a link to it, belongs to neither the user nor root.

    In a container, files often belong to the user outside, and the job runs as root. There, the
    checkout adds the directory to git's `safe.directory`, which counts here, too.
    """
    if not hasattr(os, "geteuid"):
        return
    trusted = {0, os.geteuid()}
    by_sudo = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and by_sudo.isdigit():
        trusted.add(int(by_sudo))
    owners = {os.lstat(path).st_uid, os.stat(path).st_uid} - trusted
    if owners and not git.is_safe(os.path.dirname(os.path.realpath(path))):
        what = f"belongs to another user (id {min(owners)}), and git does not call it safe"
        raise _error(path, 0, what, _TRUST_IT)


def _values(path: str, text: str) -> dict[str, Any]:
    """Reads the table `[tool.tf-lossscale]`; returns values by option, with `_` for `-`.

    Raises the error that names the line for a key that is no option, or a value of another type: a
    misspelled setting must not be ignored.
    """
    tool = _tool(path, text)
    _check_names(path, text, tool)
    table = tool.get(_NAME, {})
    if not isinstance(table, dict):
        raise _error(path, _line(text, _NAME), f"[{_TABLE}] is not a table")
    values = {}
    for key, value in table.items():
        if key not in _KEYS:
            what = f"the unknown key {key[:60]!r}; the keys are {', '.join(sorted(_KEYS))}"
            raise _error(path, _line(text, key), f"[{_TABLE}] has {what}")
        try:
            values[key.replace("-", "_")] = _value(key, value)
        except ValueError as error:
            raise _error(path, _line(text, key), f"[{_TABLE}] {key}: {error}") from None
    return values


def _refuse_other_name(path: str, text: str) -> None:
    """Raises an error if a file without our table has one whose name is taken for ours.

    What else is wrong in such a file is left to the tools that read it.
    """
    if not _LIKE_NAME.search(text):
        return
    try:
        tool = _tool(path, text)
    except SettingsError:
        return
    _check_names(path, text, tool)


def _tool(path: str, text: str) -> dict[str, Any]:
    """The table `[tool]`; empty if there is none."""
    tool = _parsed(path, text).get("tool")
    return tool if isinstance(tool, dict) else {}


def _check_names(path: str, text: str, tool: Collection[str]) -> None:
    """Raises an error for `[tool.tf_lossscale]`, which would have no effect."""
    for key in tool:
        if key != _NAME and _LIKE_NAME.fullmatch(key):
            lines = enumerate(text.splitlines(), 1)
            place = next((number for number, line in lines if "tool" in line and key in line), 0)
            raise _error(path, place, f"[tool.{key}] is not read; name the table [{_TABLE}]")


class _Parser(Parser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message.partition(": ")[2])  # without the name of the option


def _value(key: str, value: Any) -> object:
    """The value of a key, read like the value of the option on the command line.

    Raises:
      ValueError: if the option has no such value, if it is too long, or names a file.
    """
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    is_list = key in _LISTS
    values = value if is_list and isinstance(value, list) else [value]
    kinds: tuple[type, ...] = (str,) if is_list else (str, int)
    if not all(type(item) in kinds for item in values):
        raise ValueError(f"must be a {'list of strings' if is_list else 'string or a number'}")
    texts = list(map(str, values))
    if len(texts) > _MOST_STRINGS or any(len(text) > _LONGEST_STRING for text in texts):
        raise ValueError(
            f"must be at most {_MOST_STRINGS} strings of at most {_LONGEST_STRING} characters"
        )
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_options(parser)
    read = getattr(parser.parse_args([f"--{key}={text}" for text in texts]), key) or []
    if key == "report" and any(report.file is not None for report in read):
        raise ValueError(
            "names a file, which is allowed on the command line only: "
            f"--report {read[0].format}:FILE"
        )
    return read


def _parsed(path: str, text: str) -> dict[str, Any]:
    """Parses TOML in bounded time; real files need a thousandth of it."""
    if _work(text) > _MOST_WORK:
        raise _error(path, 0, "its keys have too many parts")
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
        return parsed
    except RecursionError:
        raise _error(path, 0, "is nested too deeply") from None
    except ValueError as error:  # also a number with more digits than Python reads
        found = re.search(r"at line (\d+)", str(error))
        raise _error(path, int(found[1]) if found else 0, f"is not valid TOML: {error}") from None


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
