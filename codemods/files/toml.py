"""Parses TOML that may not be trusted, in bounded time."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

__all__ = ["TomlError", "parse"]

_MOST_WORK = 10**7
"""Limit for the steps of the parser; real files need a thousandth of it."""


class TomlError(ValueError):
    """The text is not TOML, or takes too long to parse.

    Attributes:
      line: the line of the error; 0 if it has none.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> dict[str, Any]:
    """Parses TOML.

    Raises:
      TomlError: if the text is invalid, is nested too deeply, or has keys with too many parts.
    """
    if _work(text) > _MOST_WORK:
        raise TomlError("its keys have too many parts")
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        parsed: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise TomlError(f"is not valid TOML: {error}", int(line[1]) if line else 0) from None
    except RecursionError:
        raise TomlError("is nested too deeply") from None
    except ValueError as error:  # a number with more digits than Python reads
        raise TomlError(f"cannot be read: {error}") from None
    return parsed


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
