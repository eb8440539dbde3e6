"""Escapes file names, and text from files, so that they are safe to print.

A repository chooses the names of its files. Printed unchanged, they could move the cursor of a
terminal, forge a line of a report, or send commands to the CI system that reads the log.
"""

from __future__ import annotations

import os
import re

__all__ = ["quoted", "relative", "visible"]

_SHORT = {character: f"\\{letter}" for character, letter in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\')}
"""The short escapes of C."""

_COMMAND = re.compile(r"\s*::|.*##", re.DOTALL)
"""A command of GitHub Actions (`::error`, `##[error]`) or Azure Pipelines (`##vso[`)."""

_SPECIAL = '"' if os.sep == "\\" else '"\\'


def quoted(path: str) -> str:
    """Quotes a path like git: in C-style quotes if it contains anything but plain text.

    That is an unprintable character, a quote or backslash, a byte that is not UTF-8, or a CI
    command. Other paths are returned unchanged. `git apply` and `patch` read the quoted form. An
    empty path is shown as `''`.
    """
    if not path:
        return "''"
    plain = path.isprintable() and not any(special in path for special in _SPECIAL)
    if plain and not _COMMAND.match(path):
        return path
    return '"' + _hashes("".join(_quoted_character(character) for character in path)) + '"'


def visible(text: str) -> str:
    """Escapes unprintable characters, for messages that quote text from a file.

    Not reversible, because backslashes are not escaped.
    """
    if not text.isprintable():
        text = "".join(
            character if character.isprintable() else _quoted_character(character)
            for character in text
        )
    return _hashes(text)


def relative(path: str) -> str:
    """The path relative to the working directory if there is a relative path."""
    try:
        return os.path.relpath(path)
    except ValueError:  # on another drive
        return path


def _quoted_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else _octal(character)


def _octal(character: str) -> str:
    try:
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair, possible on Windows
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)


def _hashes(text: str) -> str:
    """Breaks up `##`, which begins a command anywhere in a line."""
    return re.sub("#(?=#)", _octal("#").replace("\\", "\\\\"), text)
