"""What all commands share: every failure is one line and an exit status, not a traceback.

Streams can be closed, full, or unable to encode a file name, and Ctrl-C can come at any moment.
"""

import _thread
import argparse
import contextlib
import io
import os
import re
import signal
import sys
import threading
import traceback
from typing import Any, Callable, Iterator

from tf_lossscale._about import HOME

_PR_SET_PDEATHSIG = 1  # in <linux/prctl.h>


class ArgumentParser(argparse.ArgumentParser):
    """Raises an error if help cannot be written to stdout; the base class ignores the failure."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def escaped(text: str) -> str:
    """Returns a text as one line, without control characters, which a terminal would obey."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def printable(text: str) -> str:
    """Returns a text as one line that every terminal can show, in the encoding of the output."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return escaped(text).encode(encoding, "backslashreplace").decode(encoding)


def end_with_parent() -> None:
    """Lets this process end when its parent does; on Linux only."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def guarded(
    prog: str,
    function: Callable[[], int],
    tracebacks: bool = True,
    interrupted: str = "interrupted",
) -> int:
    """Returns the exit status of `function`, and turns exceptions into a message and a status.

    Without `tracebacks`, -vv prints those of internal errors. After Ctrl-C, prints `interrupted`.
    """
    if sys.stdout is None:
        _say(f"{prog}: error: stdout is closed; redirect it to {os.devnull} to discard the output")
        return 2
    with _streams():
        try:
            with _no_lost_interrupt():
                status = function()
            sys.stdout.flush()
            return status
        except KeyboardInterrupt:
            _say(f"{prog}: {interrupted}")
            status = 130  # which shells report for a program that was ended by SIGINT
        except BrokenPipeError:  # the reader closed the pipe: `tf-lossscale migrate | head`
            status = 2
        except Exception as error:
            reason = _outside(error)
            if not reason:
                if tracebacks:
                    with contextlib.suppress(OSError):
                        traceback.print_exc()
                what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
                hint = "" if tracebacks else "run with -vv for a traceback; "
                where = f" at {HOME}/issues" if HOME else ""
                reason = f"internal error ({what}); {hint}please report it{where}"
            _say(f"{prog}: error: {reason}")
            status = 2
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            # Otherwise, Python reports another error when it flushes the rest.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return status


def handing_over(prog: str, function: Callable[[], int]) -> int:
    """The same for a command that is replaced by another program, whose streams these are."""
    try:
        return function()
    except Exception as error:
        reason = _outside(error)
        if not reason:
            raise
        _say(f"{prog}: error: {reason}")
        return 2


def _outside(error: Exception) -> str:
    """Returns what failed outside of this program; nothing for an internal error."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"{error.strerror.lower()}{where}"
    return "out of memory" if isinstance(error, MemoryError) else ""


def _say(line: str) -> None:
    """Prints a line to stderr; does nothing if stderr cannot be written."""
    # A name in the line may come from a repository: `##[error]` is a command to some CI systems.
    line = re.sub("#(?=#)", r"\\043", printable(line))
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _no_lost_interrupt() -> Iterator[None]:
    """Repeats an interrupt that came where Python drops exceptions: a weakref callback, `__del__`.

    The import system has such callbacks, so Ctrl-C during an import could be lost.
    """
    before: Any = getattr(sys, "unraisablehook", None)  # Python 3.7 calls none
    again = threading.Timer(0.2, _interrupt)  # by then, what dropped it is left
    again.daemon = True

    def hook(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            before(dropped)
        elif again.ident is None:
            again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        if again.ident is not None:
            again.cancel()
            again.join()  # an interrupt that is on its way comes here
    if again.ident is not None:
        raise KeyboardInterrupt


def _interrupt() -> None:
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)  # also ends a wait, which `interrupt_main` does not
    else:
        _thread.interrupt_main()


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Makes stdout and stderr escape what they cannot encode, and replaces closed streams."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file to be opened would get this number
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
