"""Starts and stops the recording of this process. Does not import TensorFlow."""

import atexit
import contextlib
import os
import signal
import sys
import threading
import warnings
from types import FrameType, ModuleType
from typing import Any, Dict, List, NoReturn, Optional

from tf_lossscale import _import_hook
from tf_lossscale._records import advice
from tf_lossscale._records.destination import Destination, RecordingError
from tf_lossscale._records.format import Disturbance
from tf_lossscale._records.writing import RecordFile, StepTally, notify
from tf_lossscale._versions.interventions import EXIT, Replacements
from tf_lossscale._versions.originals import RECORDED_CLASSES

_SIGNALS = ("SIGTERM", "SIGHUP")
"""Those that end a process without its exit handlers."""


class _Recording(_import_hook.Subscriber):
    """The recording of this process, which is also written where that ends without exit handlers.

    The script's own handler of a signal is called afterwards, if it was set before. One that it
    sets later replaces our handler, and the record ends with what was written in the last second.
    """

    def __init__(self, file: RecordFile, with_norm: bool, reports: bool) -> None:
        self.file = file
        self.reports = reports
        self._with_norm = with_norm
        self._recorder: Any = None
        self._originals: Any = None
        self._waiting: List[str] = []  # modules imported before TensorFlow, which patches need
        self._was_terminated = False
        self._handlers: Dict[int, Any] = {}  # by signal: the one that our handler has replaced
        self._exit: Any = os._exit
        self._replacements = Replacements(EXIT)

    def begin(self) -> None:
        """Prepares the record for any end of the process."""
        for name in _SIGNALS:
            if hasattr(signal, name):  # not on Windows
                self._handle(getattr(signal, name))
        self._replacements.replace(os, "_exit", self._exit_now)

    def wait(self) -> None:
        """Patches the classes that are loaded already, and waits for the others."""
        _import_hook.subscribe(self)
        self._waiting += [name for name in RECORDED_CLASSES if _import_hook.is_loaded(name)]
        if _import_hook.is_loaded("tensorflow"):
            self._patch_waiting()

    def _handle(self, number: int) -> None:
        handler = signal.getsignal(number)
        # None is a handler that was not set from Python. An ignored signal remains ignored.
        if callable(handler) or handler is signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # only the main thread may set a handler
                signal.signal(number, self._terminate)
                self._handlers[number] = handler

    def is_of_interest(self, name: str) -> bool:
        return name in RECORDED_CLASSES or name == "tensorflow"

    def imported(self, name: str, module: ModuleType) -> None:
        """Patches the classes of a module, once TensorFlow is there."""
        if name != "tensorflow":
            self._waiting.append(name)
        if name == "tensorflow" or self._recorder or _import_hook.is_loaded("tensorflow"):
            self._patch_waiting()

    def _patch_waiting(self) -> None:
        if self._recorder is None:
            from tf_lossscale._recorder.originals import Originals
            from tf_lossscale._recorder.recorder import Recorder

            self._recorder = Recorder(self.file, self._with_norm)
            self._originals = Originals(self._recorder)
        waiting, self._waiting = self._waiting, []
        for name in waiting:
            self._originals.patch_module(name, sys.modules[name])

    def _terminate(self, number: int, frame: Optional[FrameType]) -> None:
        """Handles SIGTERM and SIGHUP: completes the file, and calls the handler before ours.

        The record does not count as ended. It waits where the file is just being written.
        """
        self._was_terminated = True

        def flush_and_pass_on() -> None:
            self._flush(has_ended=False)
            handler = self._handlers[number]
            if callable(handler):
                handler(number, frame)
            else:  # so that the process ends by the signal, as its parent expects
                self.file.close(has_ended=False)
                self.report()
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        self.file.guard.call_outside(flush_and_pass_on)

    def _exit_now(self, status: int) -> NoReturn:
        self._flush(has_ended=not status and not self._was_terminated)
        self.file.close(has_ended=False)
        self.report()
        self._exit(status)
        raise AssertionError("the process has ended")

    def _flush(self, has_ended: bool) -> None:
        if not self.file.is_of_this_process:
            return
        if self._recorder is not None:
            self._recorder.reader.flush()
        if has_ended:
            self.file.close(has_ended=True)

    def report(self) -> None:
        """Prints what was recorded, once, in the process that was asked for it."""
        is_due, self.reports = self.reports, False
        if is_due and self.file.is_of_this_process and self.file.steps:
            for line in self.file.last_lines():
                notify(line)

    def end(self, has_ended: bool = True) -> List[str]:
        """Restores the classes, and writes the record; returns what is missing in it."""
        _import_hook.unsubscribe(self)
        # What somebody has replaced since is left alone.
        self._replacements.undo()
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._terminate:
                # In another thread it remains, and still does what it should.
                with contextlib.suppress(ValueError):
                    signal.signal(number, handler)
        if self._recorder is not None:
            self._originals.undo()
            self._recorder.close()
        self.file.close(has_ended and not self._was_terminated)
        complaints = self.file.complaints
        if not (complaints or self.file.steps or self.file.may_be_empty):
            has_tensorflow = _import_hook.is_loaded("tensorflow")
            complaints.append(self.file.without_steps(has_tensorflow))
            if self._recorder is not None and self._trains_without_scale():
                complaints.append(f"{advice.MIXED_FLOAT16}.")
        return complaints if self.file.is_of_this_process else []

    def _trains_without_scale(self) -> bool:
        """Returns whether steps were made under mixed_float16, all without a loss scale."""
        from tf_lossscale._versions.keras import mixed_float16_is_on

        makes_only_others = self._originals.saw_other_steps and not self._recorder.saw_steps
        return makes_only_others and mixed_float16_is_on()


_recording: Optional[_Recording] = None
_lock = threading.RLock()


def start(
    destination: Optional[Destination],
    norm: bool = True,
    lazy: bool = False,
    reports: bool = False,
    disturbed: Optional[Disturbance] = None,
    waits: bool = True,
) -> None:
    """Starts to record to a file; without one, only counts the steps.

    Unless `lazy`, the file is already held; for that see `RecordFile`. With `reports`, a summary is
    printed when the process ends. A `disturbed` run is changed as this says. If it does not wait,
    `wait_for_tensorflow` must be called before TensorFlow is imported.
    """
    global _recording
    with _lock:
        check_not_recording()
        file = RecordFile(destination, lazy, disturbed) if destination else StepTally(lazy)
        recording = _Recording(file, norm, reports)
        recording.begin()
        if waits:
            recording.wait()
        _recording = recording
        atexit.register(_stop_at_exit)


def wait_for_tensorflow() -> None:
    """Lets a recording that was started early begin when TensorFlow is imported."""
    if _recording is not None:
        _recording.wait()


def is_recording() -> bool:
    return _recording is not None


def check_not_recording() -> None:
    """Raises RecordingError if this process is recording."""
    if _recording is not None:
        raise RecordingError(
            f"This process is already recording to {_recording.file.path}: call stop() first."
        )


def stop() -> None:
    """Ends the recording: see `tf_lossscale.recording.stop`."""
    recording = _taken()
    for complaint in [] if recording is None else recording.end():
        warnings.warn(complaint, RuntimeWarning, stacklevel=3)


def _taken() -> Optional[_Recording]:
    global _recording
    with _lock:
        recording, _recording = _recording, None
        atexit.unregister(_stop_at_exit)
        return recording


def _stop_at_exit() -> None:
    recording = _taken()
    if recording is None:
        return
    # Set by the interpreter when it prints the traceback of an error that nobody caught.
    for complaint in recording.end(has_ended=not hasattr(sys, "last_type")):
        notify(complaint[0].lower() + complaint[1:])
    recording.report()
