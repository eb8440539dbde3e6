"""Settings from `[tool.tf-lossscale]` in the project's pyproject.toml."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

__all__ = ["Settings", "SettingsError", "load"]

_TABLE = "tool.tf-lossscale"


class SettingsError(ValueError):
    """What is wrong in pyproject.toml, with its place."""


class Settings(NamedTuple):
    """The table.

    Attributes:
      values: option name, as argparse spells it, to value; only what the file sets.
      directory: that of the file, which its globs are relative to.
    """

    values: dict[str, Any]
    directory: str = ""


def load(paths: Sequence[str]) -> Settings:
    """The settings of the project that holds all of `paths`.

    That is the pyproject.toml in their common directory, or the nearest above it.

    Raises:
      SettingsError: it is no TOML, or has a key or value that we do not know.
    """
    path = _nearest(paths)
    if path is None:
        return Settings({})
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SettingsError(f"{os.path.relpath(path)}:0: {error.strerror}") from None
    if b"tf-lossscale" not in data:
        return Settings({})
    return Settings(_values(os.path.relpath(path), data), os.path.dirname(path))


def _nearest(paths: Sequence[str]) -> Optional[str]:
    directories = []
    for path in paths:
        real = os.path.realpath(path)
        directories.append(real if os.path.isdir(real) else os.path.dirname(real))
    try:
        above = os.path.commonpath(directories)
    except ValueError:  # on several drives
        return None
    while True:
        path = os.path.join(above, "pyproject.toml")
        if os.path.isfile(path):
            return path
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent


def _values(path: str, data: bytes) -> dict[str, Any]:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = data.decode("utf-8")
        tool = tomllib.loads(text).get("tool", {})
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}:{line}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        line_of_it = re.search(r"at line (\d+)", str(error))
        raise SettingsError(
            f"{path}:{line_of_it[1] if line_of_it else 0}: is no TOML: {error}"
        ) from None
    table = tool.get("tf-lossscale", {}) if isinstance(tool, dict) else {}
    values = {}
    for key, value in table.items():
        read = _KEYS.get(key)
        if read is None:
            known = ", ".join(sorted(_KEYS))
            raise SettingsError(
                f"{path}:{_line(text, key)}: [{_TABLE}] has no key {key!r}; it has {known}"
            )
        try:
            values[key.replace("-", "_")] = read(value)
        except ValueError as error:
            raise SettingsError(
                f"{path}:{_line(text, key)}: [{_TABLE}] {key} = {value!r}: {error}"
            ) from None
    return values


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
    "report": _strings,
    "jobs": _number,
}
"""`write` and `check` are not among them: what a run does to files is said where it is started."""
