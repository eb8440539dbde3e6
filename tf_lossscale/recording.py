"""Records the steps of your own training, for `tf-lossscale compare`.

    import tf_lossscale as tfls

    tfls.recording.start("now.jsonl")    # before the optimizer makes its first step
    train()
    tfls.recording.stop()

`tf-lossscale record FILE SCRIPT` records an unmodified script. This module does not import
TensorFlow.
"""

import os
from typing import Union

from tf_lossscale._recorder import session
from tf_lossscale._records.destination import Destination, RecordingError

__all__ = ["RecordingError", "start", "stop"]


def start(path: "Union[str, os.PathLike[str]]", norm: bool = True, overwrite: bool = False) -> None:
    """Records each step of every loss-scale optimizer of this process from now on.

    The optimizers of TensorFlow, Keras and this package are recorded, if they build or make their
    step after this call, or have built it during an earlier recording. Checkpoint keys
    and random numbers are the same as without it. So are the weights, except for their last bits
    where TensorFlow optimizes a whole graph: with XLA, and on TensorFlow 2.4 in a `tf.function`
    with two optimizers.

    Args:
      path: the file of the record. It appears with the first step.
      norm: whether to record the norm of the gradients and their first non-finite variable, which
        takes one more pass over all gradients.
      overwrite: whether a record in this file may be replaced.

    Raises:
      RecordingError: this process is already recording, another one records to the file, or the
        file exists.
      OSError: the file cannot be written.
    """
    session.check_not_recording()
    destination = Destination(os.fspath(path), overwrite)
    destination.hold()
    session.start(destination, norm)


def stop() -> None:
    """Ends the recording and writes the rest of it; without a recording, does nothing.

    Warns (`RuntimeWarning`) if no step was recorded, or if steps seem to be missing because they
    were built before the recording began.
    """
    session.stop()
