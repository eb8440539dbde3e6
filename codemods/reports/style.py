"""How text looks on a terminal: colors, and lines that are wrapped between words."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import NamedTuple

__all__ = ["PLAIN", "Style", "width_of"]

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}


class Style(NamedTuple):
    """The style of a stream.

    Attributes:
      color: whether to use colors.
      width: the columns of the terminal; 0 if lines are not wrapped.
    """

    color: bool = False
    width: int = 0

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles."""
        if not (self.color and styles):
            return text
        return f"\x1b[{';'.join(_CODES[one] for one in styles)}m{text}\x1b[0m"

    def wrapped(self, text: str) -> list[str]:
        """The text in lines; a word that is longer than a line stays whole."""
        if not self.width or len(text) <= self.width:
            return [text]
        return textwrap.wrap(
            text,
            self.width,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


PLAIN = Style()


def width_of(text: str) -> int:
    """The columns that printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) != 0 for one in text)
