"""Starts and stops the recording of this process. Does not import TensorFlow."""

import atexit
import sys
import threading
import warnings
from typing import Any, List, Optional

from tf_lossscale._import_hook import Subscriber, is_loaded, subscribe, unsubscribe
from tf_lossscale._recorder.errors import RecordingError
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._versions.recorded_classes import RECORDED_CLASSES

__all__ = ["start", "stop"]


class _Recording(Subscriber):
    """The recording of this process.

    Args:
      file: the record.
      with_norm: whether to record the norm of the gradients.
    """

    def __init__(self, file: RecordFile, with_norm: bool) -> None:
        self.file = file
        self._with_norm = with_norm
        self._patches: Any = None
        self._waiting: List[str] = []
        """Modules whose import ended before that of TensorFlow, which the patches need."""

    def begin(self) -> None:
        """Patches the classes that are loaded already, and waits for the others."""
        subscribe(self)
        names = [name for name in RECORDED_CLASSES if is_loaded(name)]
        if is_loaded("tensorflow"):
            self._patch(names)
            self._patches.look_for_earlier_optimizers()
        else:
            self._waiting += names

    def is_of_interest(self, name: str) -> bool:
        """Returns whether the module defines a class that can be recorded, or is TensorFlow."""
        return name in RECORDED_CLASSES or name == "tensorflow"

    def imported(self, name: str, module: Any) -> None:
        """Patches the classes of a module, once TensorFlow is there."""
        if name != "tensorflow":
            self._waiting.append(name)
        if name == "tensorflow" or self._patches is not None or is_loaded("tensorflow"):
            waiting, self._waiting = self._waiting, []
            self._patch(waiting)

    def _patch(self, names: List[str]) -> None:
        if self._patches is None:
            from tf_lossscale._recorder.patches import Patches

            self._patches = Patches(self.file, self._with_norm)
        for name in names:
            self._patches.patch_module(name, sys.modules[name])

    def end(self) -> List[str]:
        """Restores the classes, and writes the rest of the record.

        Returns:
          What is missing in the record, a sentence each.
        """
        unsubscribe(self)
        complaints: List[str] = []
        if self._patches is not None:
            self._patches.undo()
            complaints = self._patches.complaints() if self.file.is_of_this_process else []
        self.file.close()
        has_refused = self._patches is not None and self._patches.has_refused
        if not (complaints or self.file.steps or self.file.is_lazy or has_refused):
            complaints.append(
                f"No step was recorded in {self.file.path}: no loss-scale optimizer made one in a "
                "graph or function that was built after recording began."
            )
        return complaints if self.file.is_of_this_process else []


_recording: Optional[_Recording] = None
_lock = threading.RLock()


def start(path: str, norm: bool = True, lazy: bool = False, held: Optional[int] = None) -> None:
    """Starts to record the steps of this process.

    Args:
      path: the file, which is replaced.
      norm: whether to record the norm of the gradients.
      lazy: whether the file is created only with the first step.
      held: the descriptor of the file, if this process has locked it already.

    Raises:
      OSError: the file cannot be written.
      RecordingError: this process records already, or another one records to the file.
    """
    global _recording
    with _lock:
        if _recording is not None:
            raise RecordingError(
                f"This process is already recording to {_recording.file.path}: call stop() first."
            )
        recording = _Recording(RecordFile(path, lazy, held), norm)
        recording.begin()
        _recording = recording
        atexit.register(_stop_at_exit)


def stop() -> None:
    """Ends the recording, and writes the rest of it; does nothing without a recording.

    Warns of steps that are missing in the record.
    """
    for complaint in _stop():
        warnings.warn(complaint, RuntimeWarning, stacklevel=3)


def _stop() -> List[str]:
    global _recording
    with _lock:
        recording, _recording = _recording, None
        atexit.unregister(_stop_at_exit)
        return [] if recording is None else recording.end()


def _stop_at_exit() -> None:
    for complaint in _stop():
        print(f"tf-lossscale: {complaint[0].lower()}{complaint[1:]}", file=sys.stderr)
