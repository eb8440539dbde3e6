"""Names of files, and text that comes from them, in a form that is safe to print.

A repository chooses the names of its files. Printed as they are, they could move the cursor of a
terminal, forge a line of a report, or give commands to the CI system that reads the log.
"""

from __future__ import annotations

import os
import re

__all__ = ["is_utf8", "quoted", "visible"]

_SHORT = {
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}

_COMMAND = re.compile(r"\s*::|.*##", re.DOTALL)
"""What GitHub Actions (`::error`, `##[error]`) or Azure Pipelines (`##vso[`) take for a command."""

_SPECIAL = '"' if os.sep == "\\" else '"\\'


def quoted(path: str) -> str:
    """The path as git shows it: in C-style quotes where it holds anything that is not plain text.

    That is a control character or another character that cannot be printed, a quote or backslash, a
    byte that is not UTF-8, or what a CI system takes for a command. Other paths stay as they are.
    `git apply` and `patch` read the quoted form.
    """
    plain = path.isprintable() and not any(one in path for one in _SPECIAL)
    if plain and not _COMMAND.match(path):
        return path
    return '"' + _hashes("".join(_quoted_character(one) for one in path)) + '"'


def visible(text: str) -> str:
    """Text on one line: what cannot be printed as an escape, the rest as it is.

    For messages that quote something of a file. Not reversible, as backslashes stay.
    """
    if not text.isprintable():
        text = "".join(one if one.isprintable() else _quoted_character(one) for one in text)
    return _hashes(text)


def is_utf8(path: str) -> bool:
    """Whether every byte of the name is part of a character."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _quoted_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return character if character.isprintable() else _octal(character)


def _octal(character: str) -> str:
    try:
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair, which only Windows has in names
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in data)


def _hashes(text: str) -> str:
    """Breaks `##` up, which is a command wherever in a line it stands."""
    return re.sub("#(?=#)", _octal("#").replace("\\", "\\\\"), text)
