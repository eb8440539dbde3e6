"""Splits Python source into tokens, in bounded time."""

from __future__ import annotations

import contextlib
import io
import re
import tokenize
from collections.abc import Iterator

__all__ = ["tokens"]

_LONG_LINE = re.compile(rb"[^\r\n]{2001,}")


def tokens(data: bytes) -> Iterator[tokenize.TokenInfo]:
    """Yields the tokens up to the first error; what comes before an error counts.

    Lines of more than 2,000 bytes are left out, because Python 3.12 takes quadratic time for them.
    """
    readline = io.BytesIO(_LONG_LINE.sub(b"", data)).readline
    with contextlib.suppress(tokenize.TokenError, SyntaxError, UnicodeDecodeError, LookupError):
        yield from tokenize.tokenize(readline)
