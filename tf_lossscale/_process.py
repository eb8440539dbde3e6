"""What all commands share: every failure is one line and an exit status, not a traceback.

Streams can be closed, full, slow, or unable to encode a file name, and Ctrl-C can come at any time.
"""

import _thread
import argparse
import atexit
import contextlib
import gc
import io
import os
import re
import select
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import IO, Any, Callable, Dict, Iterator, List, NoReturn, Optional, Tuple

from tf_lossscale._about import HOME

_PR_SET_PDEATHSIG = 1  # in <linux/prctl.h>

_RAISING = ("strict", "surrogateescape")
"""How Python's own streams treat a character that they cannot encode: the second is that of the C
locale, which escapes bytes of file names only."""


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
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
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

    Without `tracebacks`, -vv prints the tracebacks of internal errors. After Ctrl-C, SIGTERM or
    SIGHUP, prints `interrupted`. SIGTERM and SIGHUP then end the process, as its parent expects.
    """
    if sys.stdout is None:
        _say(f"{prog}: error: stdout is closed; redirect it to {os.devnull} to discard the output")
        return 2
    with _ENDING.installed(), _streams():
        return _guarded(prog, function, tracebacks, interrupted)


def _guarded(prog: str, function: Callable[[], int], tracebacks: bool, interrupted: str) -> int:
    """Returns the status of `function`; each exception becomes a line on stderr and a status."""
    try:
        with _no_lost_interrupt():
            status = function()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _discard_rest()  # its reader may never read it
        _say(f"{prog}: {interrupted}")
        return 130  # which shells report for a program that was ended by SIGINT
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
        _discard_rest()
    return status


def at_once(prog: str, function: Callable[[], int]) -> NoReturn:
    """Like `guarded`, for all that a process does: ends it, without freeing what it holds.

    Looking for garbage, and freeing each object of each module at the end, took a sixth of a run of
    the codemods over a small repository.
    """
    gc.disable()
    status = guarded(prog, function)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or never open
            stream.flush()
    os._exit(status)


def _discard_rest() -> None:
    """Lets the output that stdout still has go nowhere: Python would report its failure."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, WaitingWriter):
        raw.discards = True
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    if isinstance(error, ModuleNotFoundError) and str(error) == f"No module named {error.name!r}":
        return (
            f"the module {error.name!r}, which this command needs, is not installed: install "
            "tf-lossscale with its dependencies"
        )
    return "out of memory" if isinstance(error, MemoryError) else ""


def _say(line: str) -> None:
    """Prints a line to stderr; does nothing if stderr cannot be written."""
    # A name in the line may come from a repository: `##[error]` is a command to some CI systems.
    line = re.sub("#(?=#)", r"\\043", printable(line))
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


class _Ending:
    """The signals that end a command: the first one raises KeyboardInterrupt in the main thread.

    What was begun can then be undone, as after Ctrl-C. Further signals are ignored, so that this is
    not cut short. A signal that was ignored when the command began, as by `nohup`, remains so.
    """

    _NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

    def __init__(self) -> None:
        self._before: Dict[int, Any] = {}
        self._received: Optional[int] = None
        self._delays = 0
        self._is_late = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handles the signals in the block; SIGTERM and SIGHUP end the process after it."""
        is_main = threading.current_thread() is threading.main_thread()
        if self._before or not is_main:
            yield
            return
        self._received = None
        for number in (getattr(signal, name, None) for name in self._NAMES):
            handler = None if number is None else signal.getsignal(number)
            if number is not None and handler in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = handler
                signal.signal(number, self._receive)
        try:
            yield
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()
        if self._received not in (None, signal.SIGINT):
            os.kill(os.getpid(), self._received)

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        if self._received is not None:
            return
        self._received = number
        if self._delays:
            self._is_late = True
        else:
            raise KeyboardInterrupt

    def lost(self) -> None:
        """Takes note that what the first signal has raised was dropped; the next one counts."""
        self._received = None

    @contextlib.contextmanager
    def delayed(self) -> Iterator[None]:
        """Delays the signals until the end of the block, which must be short."""
        self._delays += 1
        try:
            yield
        finally:
            self._delays -= 1
            if self._is_late and not self._delays:
                self._is_late = False
                raise KeyboardInterrupt


_ENDING = _Ending()
signals_delayed = _ENDING.delayed


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
            _ENDING.lost()
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


class WaitingWriter(io.RawIOBase):
    """Writes to an open file, and waits where it is not blocking and its reader is slow.

    Python's own writes all or nothing to the buffer of such a file, or a part without an error if
    there is no buffer (PYTHONUNBUFFERED=1). Making it blocking would change it for other processes.

    Attributes:
      discards: whether to write nothing from now on.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.discards = False

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Writes all bytes."""
        with memoryview(data) as view, view.cast("B") as left:
            done = len(left) if self.discards else 0
            while done < len(left):
                try:
                    done += os.write(self._descriptor, left[done:])
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
            return len(left)


def _waiting(stream: IO[Any]) -> Any:
    """Returns a stream that writes to the same file as another one, and waits for its reader."""
    buffer = getattr(stream, "buffer", None)
    is_file = isinstance(getattr(buffer, "raw", buffer), io.FileIO)
    if os.name != "posix" or not isinstance(stream, io.TextIOWrapper) or not is_file:
        return stream
    is_shown_at_once = stream.line_buffering or getattr(stream, "write_through", False)
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(WaitingWriter(stream.fileno())),
        stream.encoding,
        stream.errors,
        line_buffering=is_shown_at_once or stream is sys.stderr,
    )


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Lets stdout and stderr escape what they cannot encode, and wait; replaces closed streams."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file to be opened would get this number
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_waiting, before)
    changed: List[Tuple[io.TextIOWrapper, str]] = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in _RAISING:
            changed.append((stream, stream.errors))
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream, errors in changed:
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors=errors)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        sys.stdout, sys.stderr = before
