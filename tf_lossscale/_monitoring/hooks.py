"""Reads the counts while Keras, a monitored Session or an Estimator trains; writes scalars."""

import warnings
import weakref
from typing import Any, Dict, Optional

from tf_lossscale._monitoring.reader import Reader, Reading
from tf_lossscale._monitoring.watcher import name_of
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras import keras_family

__all__ = ["MonitorHook", "ScalarWriter", "make_callback"]


class ScalarWriter:
    """Writes an event file, in eager mode and in graphs alike; needs no TensorBoard.

    The tags of the scalars begin with the name of the optimizer, and with a number where another
    optimizer of that name writes to the same folder.
    """

    def __init__(self, optimizer: Any, log_dir: Optional[Any]) -> None:
        self.name = ""
        self._writer: Any = None
        self._last: Any = None
        if log_dir is None:
            return
        self._optimizer = optimizer
        self._folder = str(log_dir)
        others = [each for each in _writers if each._folder == self._folder]
        taken = {each.name for each in others if each._optimizer is not optimizer}
        name = name_of(optimizer)
        numbered = [name, *(f"{name}_{number}" for number in range(1, len(taken) + 1))]
        self.name = next(each for each in numbered if each not in taken)
        try:
            tf.io.gfile.makedirs(self._folder)
            # In a graph, because this class refuses eager mode, although it needs no graph.
            with tf.Graph().as_default():
                self._writer = tf1.summary.FileWriter(self._folder)
        except (OSError, tf.errors.OpError) as error:
            raise ValueError(
                f"No TensorBoard scalars can be written to log_dir={self._folder!r}: {error}. Pass "
                "a folder that this process may write to, or log_dir=None."
            ) from error
        _writers.add(self)

    def write(self, step: int, reading: Reading) -> None:
        """Writes what was read, if it was not written for this step already."""
        values = {"loss_scale": reading.scale, "skipped_steps": float(reading.values.skipped)}
        # The values are compared, too: a global step remains the same while steps are skipped.
        if self._writer is None or self._last == (step, values):
            return
        self._last = (step, values)
        scalars = [
            tf1.Summary.Value(tag=f"{self.name}/{tag}", simple_value=value)
            for tag, value in values.items()
        ]
        self._writer.add_summary(tf1.Summary(value=scalars), step)
        self._writer.flush()  # so that TensorBoard shows it now

    def close(self) -> None:
        """Closes the file; `write` does nothing afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            _writers.discard(self)


_writers: "weakref.WeakSet[ScalarWriter]" = weakref.WeakSet()


def make_callback(reader: Reader, log_dir: Optional[str]) -> Any:
    """Returns a callback for the Keras of the optimizer."""
    family = keras_family(reader.optimizer)
    if family is None:
        raise TypeError(
            f"{type(reader.optimizer).__name__} is not a Keras optimizer, so fit() cannot use it. "
            "Use monitor.session_hook() in a monitored Session or an Estimator, or call "
            "monitor.after_step() in your loop."
        )
    base = family.keras.callbacks.Callback
    return type("MonitorCallback", (_Reads, base), {"__module__": __name__})(reader, log_dir)


class _Reads:
    """The methods of the callback; its class also derives from the `Callback` of one Keras."""

    # Keras 2 converts the logs of each batch for callbacks without this, and waits for the device.
    _supports_tf_logs = True

    def __init__(self, reader: Reader, log_dir: Optional[str]) -> None:
        super().__init__()
        self._reader = reader
        self._writer = ScalarWriter(reader.optimizer, log_dir)
        self._batches = 0

    def on_train_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Reads the counts, if it is time."""
        self._batches += 1
        if self._batches % self._reader.every == 0:
            self._read()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Reads the counts, and adds them to the logs."""
        reading = self._read()
        if reading is not None and logs is not None:
            logs["loss_scale"] = reading.scale
            logs["skipped_steps"] = reading.values.skipped

    def on_train_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """Reads the counts for the last time; warns if no step was counted."""
        if self._batches and self._read() is None:
            warnings.warn(
                "The Monitor has counted no step of this fit(). Create it before the first fit(), "
                "with the optimizer that the model trains with: model.optimizer.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _read(self) -> Optional[Reading]:
        reading = self._reader.read_or_none()
        if reading is not None:
            step = reading.values.steps
            if tf.executing_eagerly():
                step = int(self._reader.optimizer.iterations)
            self._writer.write(step, reading)
        return reading


class MonitorHook(tf1.train.SessionRunHook):
    """Reads the counts every few calls of `run`, in a call of its own."""

    def __init__(self, reader: Reader, log_dir: Optional[str]) -> None:
        self._reader = reader
        self._writer = ScalarWriter(reader.optimizer, log_dir)
        self._runs = 0
        self._global_step: Any = None

    def begin(self) -> None:
        """Looks up the global step, before the graph is finalized."""
        self._global_step = tf1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reads the counts, if it is time."""
        self._runs += 1
        if self._runs % self._reader.every == 0:
            self._read(run_context.session)

    def end(self, session: Any) -> None:
        """Reads the counts for the last time."""
        self._read(session)
        self._writer.close()

    def _read(self, session: Any) -> None:
        # None in the replicas of an Estimator whose optimizers do not make the step.
        reading = self._reader.read_or_none(session)
        if reading is None:
            return
        step = reading.values.steps
        if self._global_step is not None:
            step = int(session.run(self._global_step))
        self._writer.write(step, reading)
