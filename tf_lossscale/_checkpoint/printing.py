"""Makes text from a file safe to print on a terminal."""

import sys

__all__ = ["printable"]


def printable(text: str) -> str:
    """Returns a text as one line that every terminal can show.

    Names in a file may contain line breaks, control characters, and characters that the encoding of
    the output lacks. Such characters are escaped.
    """
    text = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
