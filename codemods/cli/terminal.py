"""Output: bytes to stdout, messages, a progress bar and colors on terminals only."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TextIO

from ..reports.text import Style

__all__ = ["Messages", "put", "style_of"]


def put(stream: TextIO, data: bytes) -> None:
    """Writes bytes to a text stream unchanged, after any text that was written before."""
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None:  # an in-memory stream
        stream.write(data.decode("utf-8", "replace"))
    else:
        buffer.write(data)
        buffer.flush()


def style_of(stream: TextIO, color: str) -> Style:
    """The style of a stream: colors, and the width if it is a terminal.

    Args:
      stream: the stream.
      color: `always`, `never`, or `auto`: on a terminal. The environment variables NO_COLOR and
        FORCE_COLOR take precedence over `auto`.
    """
    is_terminal = stream.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else 0
    if color != "auto":
        return Style(color == "always", width)
    if os.environ.get("NO_COLOR"):
        return Style(False, width)
    forced = bool(os.environ.get("FORCE_COLOR"))
    return Style(forced or (is_terminal and os.environ.get("TERM") != "dumb"), width)


class Messages:
    """What is written to stderr: lines, and on a terminal a progress bar after half a second.

    Args:
      quiet: whether to write nothing, because stderr is for something else.
    """

    _QUIET_SECONDS = 0.5
    _EVERY_SECONDS = 0.1

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._has_bar = sys.stderr.isatty() and not quiet
        self._next = time.monotonic() + self._QUIET_SECONDS
        self._drawn = False

    def say(self, line: str) -> None:
        """Writes a line."""
        self.clear()
        if not self._quiet:
            print(line, file=sys.stderr)

    def at(self, verb: str, done: int, total: int = 0) -> None:
        """Shows that `done` of `total` files are done; `total` is 0 if it is not known yet."""
        now = time.monotonic() if self._has_bar else 0.0
        if not self._has_bar or now < self._next:
            return
        self._next = now + self._EVERY_SECONDS
        text = f"{verb} {done:,} files"
        if total:
            text = f"{verb} {done:,} of {total:,} files"
            width = max(min(shutil.get_terminal_size().columns - len(text) - 4, 40), 0)
            filled = width * done // total
            text += f" [{'#' * filled}{'.' * (width - filled)}]"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Removes the bar, before other output and at the end."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False
