"""Writes what was recorded where a process ends without its exit handlers: SIGTERM, `os._exit`."""

import contextlib
import os
import signal
from typing import Any, Callable, NoReturn

from tf_lossscale._recorder.record_file import Guard

__all__ = ["Endings"]


class Endings:
    """Has a function called before this process ends, from `begin` to `undo`.

    The script's own handler of SIGTERM is called afterwards, if it was set before. One that it sets
    later replaces ours, and the record ends with what was written in the last second.

    Attributes:
      was_terminated: whether the process has received SIGTERM.

    Args:
      guard: what the handler must not interrupt.
      flush: called with whether the process ends without an error.
    """

    def __init__(self, guard: Guard, flush: Callable[[bool], None]) -> None:
        self.was_terminated = False
        self._guard = guard
        self._flush = flush
        self._process = os.getpid()
        self._previous: Any = None
        self._exit: Any = None
        # One object each: a method is another one at each access.
        self._handler = self._terminate
        self._our_exit = self._exit_now

    def begin(self) -> None:
        """Sets the handler, and replaces `os._exit`."""
        previous = signal.getsignal(signal.SIGTERM)
        # None is a handler that was not set from Python. An ignored signal remains ignored.
        if callable(previous) or previous is signal.SIG_DFL:
            try:
                signal.signal(signal.SIGTERM, self._handler)
                self._previous = previous
            except ValueError:
                pass  # only the main thread may set a handler
        self._exit = os._exit
        os._exit = self._our_exit

    def undo(self) -> None:
        """Restores both, where nobody has replaced them since."""
        if os._exit is self._our_exit:
            os._exit = self._exit
        if self._previous is not None and signal.getsignal(signal.SIGTERM) == self._handler:
            # In another thread it remains, and still does what it should.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, self._previous)

    def _terminate(self, number: int, frame: Any) -> None:
        if os.getpid() == self._process:
            self.was_terminated = True
            self._guard.call_outside(lambda: self._flush_and_pass_on(number, frame))
        else:
            self._pass_on(number, frame)

    def _flush_and_pass_on(self, number: int, frame: Any) -> None:
        self._flush(False)
        self._pass_on(number, frame)

    def _pass_on(self, number: int, frame: Any) -> None:
        if callable(self._previous):
            self._previous(number, frame)
        else:  # so that the process ends by the signal, as its parent expects
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _exit_now(self, status: int) -> NoReturn:
        if os.getpid() == self._process:
            self._flush(not status and not self.was_terminated)
        self._exit(status)
        raise AssertionError("the process has ended")
