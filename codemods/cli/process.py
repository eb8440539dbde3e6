"""The command as a process: whatever goes wrong has a status and a line, and never a traceback.

Streams may be closed, full, or unable to show a name; somebody may press Ctrl-C at any moment.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Callable

from ..files.printable import quoted, visible

__all__ = ["INTERRUPTED", "guarded"]

INTERRUPTED = 130
"""The status of a program that SIGINT has ended, as shells show it."""

_REPORT = "https://github.com/tf-lossscale/tf-lossscale/issues"


def guarded(prog: str, function: Callable[[], int], tracebacks: bool) -> int:
    """The status of `function`, or that of what went wrong in it.

    Args:
      prog: the name of the command in messages.
      function: the command.
      tracebacks: print that of a defect of ours.
    """
    if sys.stdout is None:
        _say(f"{prog}: error: stdout is closed; to see nothing, send it to {os.devnull}")
        return 2
    with _streams():
        try:
            status = function()
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            _say(f"{prog}: interrupted; each file is whole, old or new")
            status = INTERRUPTED
        except BrokenPipeError:  # the reader has seen enough: `tf-lossscale migrate | head`
            status = 2
        except Exception as error:
            if tracebacks:
                with contextlib.suppress(OSError):
                    traceback.print_exc()
            _say(f"{prog}: error: {_words(error)}")
            status = 2
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            _drop_stdout()
        return status


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {quoted(os.fsdecode(error.filename))}" if error.filename else ""
        return f"{error.strerror.lower()}{where}"
    what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return f"internal error ({what}); -vv shows where; please report it at {_REPORT}"


def _say(line: str) -> None:
    """A line on stderr; nothing where that cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        print(visible(line), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Streams that show what they cannot encode as escapes; none of them is closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file that is opened would take its place
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
            changed.append(stream)
    try:
        yield
    finally:
        for stream in changed:
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="strict")


def _drop_stdout() -> None:
    """Python would complain once more when it flushes what nobody can take."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
