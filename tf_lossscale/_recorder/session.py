"""Starts and stops the recording of this process. Does not import TensorFlow.

`tf-lossscale run --record` asks for it in an environment variable. The process that `run` becomes
writes the file that was asked for; each other process that makes steps writes one of its own, with
its number in the name.
"""

import atexit
import contextlib
import json
import os
import signal
import sys
import threading
import warnings
from typing import Any, Dict, List, NoReturn, Optional

from tf_lossscale import _import_hook
from tf_lossscale._records import writing
from tf_lossscale._records.writing import RecordFile, RecordingError, notify
from tf_lossscale._versions.originals import RECORDED_CLASSES


class _Recording(_import_hook.Subscriber):
    """The recording of this process, which is also written where that ends without exit handlers.

    The script's own handler of SIGTERM is called afterwards, if it was set before. One that it sets
    later replaces ours, and the record ends with what was written in the last second.
    """

    def __init__(self, file: RecordFile, with_norm: bool, advice: bool) -> None:
        self.file = file
        self.advice = advice
        self._with_norm = with_norm
        self._recorder: Any = None
        self._originals: Any = None
        self._waiting: List[str] = []  # modules imported before TensorFlow, which patches need
        self._was_terminated = False
        self._handler: Any = None  # that of SIGTERM which ours has replaced
        self._exit: Any = os._exit

    def begin(self) -> None:
        """Patches the classes that are loaded already, and waits for the others."""
        _import_hook.subscribe(self)
        handler = signal.getsignal(signal.SIGTERM)
        # None is a handler that was not set from Python. An ignored signal remains ignored.
        if callable(handler) or handler is signal.SIG_DFL:
            with contextlib.suppress(ValueError):  # only the main thread may set a handler
                signal.signal(signal.SIGTERM, self._terminate)
                self._handler = handler
        os._exit = self._exit_now
        self._waiting += [name for name in RECORDED_CLASSES if _import_hook.is_loaded(name)]
        if _import_hook.is_loaded("tensorflow"):
            self._patch_waiting()

    def is_of_interest(self, name: str) -> bool:
        return name in RECORDED_CLASSES or name == "tensorflow"

    def imported(self, name: str, module: Any) -> None:
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

    def _terminate(self, number: int, frame: Any) -> None:
        self._was_terminated = True

        def flush_and_pass_on() -> None:
            self._flush(has_ended=False)
            if callable(self._handler):
                self._handler(number, frame)
            else:  # so that the process ends by the signal, as its parent expects
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)

        self.file.guard.call_outside(flush_and_pass_on)

    def _exit_now(self, status: int) -> NoReturn:
        self._flush(has_ended=not status and not self._was_terminated)
        self._exit(status)
        raise AssertionError("the process has ended")

    def _flush(self, has_ended: bool) -> None:
        if not self.file.is_of_this_process:
            return
        if self._recorder is not None:
            self._recorder.reader.flush()
        if has_ended:
            self.file.close(has_ended=True)

    def end(self, has_ended: bool = True) -> List[str]:
        """Restores the classes, and writes the record; returns what is missing in it."""
        _import_hook.unsubscribe(self)
        # What somebody has replaced since is left alone.
        if os._exit == self._exit_now:
            os._exit = self._exit
        if self._handler is not None and signal.getsignal(signal.SIGTERM) == self._terminate:
            # In another thread it remains, and still does what it should.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, self._handler)
        if self._recorder is not None:
            self._originals.undo()
            self._recorder.close()
        self.file.close(has_ended and not self._was_terminated)
        complaints = self.file.complaints
        if not (complaints or self.file.steps or self.file.may_be_empty):
            complaints.append(
                f"No step was recorded in {self.file.path}: no loss-scale optimizer made one in a "
                "graph or function that was built after recording began."
            )
        return complaints if self.file.is_of_this_process else []


_recording: Optional[_Recording] = None
_lock = threading.RLock()


def start(
    path: str,
    norm: bool = True,
    lazy: bool = False,
    held: Optional[int] = None,
    advice: bool = False,  # whether to print at the exit what makes two runs comparable
) -> None:
    """Starts to record: see `tf_lossscale.recording.start`, and `RecordFile`."""
    global _recording
    with _lock:
        if _recording is not None:
            raise RecordingError(
                f"This process is already recording to {_recording.file.path}: call stop() first."
            )
        recording = _Recording(RecordFile(path, lazy, held), norm, advice)
        recording.begin()
        _recording = recording
        atexit.register(_stop_at_exit)


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
    if recording.advice and recording.file.is_of_this_process and recording.file.steps:
        notify(
            f"recorded {recording.file.steps} steps in {recording.file.path}. "
            "`tf-lossscale compare OLD NEW` needs two runs that begin with the same weights, from "
            "a checkpoint that both restore, and that see the same data in the same order, without "
            "dropout; `--seed N` alone does that only on one version of TensorFlow."
        )


REQUEST = "TF_LOSSSCALE_RECORD"

_has_started = False


def announce(path: str, norm: bool, held: Optional[int]) -> None:
    """Asks Python processes with the environment of this one to record."""
    request = {"path": os.path.abspath(path), "norm": norm, "process": os.getpid(), "held": held}
    os.environ[REQUEST] = json.dumps(request)


def start_requested() -> None:
    """Starts the recording that the environment of this process asks for."""
    global _has_started
    _has_started = True
    request = json.loads(os.environ[REQUEST])
    if _is_for_this_process(request):
        if request["held"] is not None:
            writing.keep(request["held"])
        start(request["path"], request["norm"], held=request["held"], advice=True)
    else:
        root, extension = os.path.splitext(request["path"])
        start(f"{root}.{os.getpid()}{extension}", request["norm"], lazy=True)


def report_unused() -> None:
    """Reports, when the script ends, that it was not recorded because it has no TensorFlow."""
    request = json.loads(os.environ.get(REQUEST, "null"))
    if _has_started or request is None or not _is_for_this_process(request):
        return
    writing.remove_record(request["path"])
    notify(f"nothing was recorded in {request['path']}: the script did not import TensorFlow.")


def _is_for_this_process(request: Dict[str, Any]) -> bool:
    # On Windows the script runs in a child of the process that announced it.
    parent = os.getppid() if os.name == "nt" else None
    return request["process"] in (os.getpid(), parent)
