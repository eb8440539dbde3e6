"""The callback that reads the counts while Keras trains."""

import warnings
from typing import Any, Dict, Optional

from tf_lossscale._monitoring.reader import Reader
from tf_lossscale._monitoring.scalars import ScalarWriter
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import keras_family

__all__ = ["make_callback"]


def make_callback(reader: Reader, log_dir: Optional[str]) -> Any:
    """Returns a callback for the Keras of the optimizer.

    Args:
      reader: reads the counters.
      log_dir: a folder for TensorBoard scalars, or None.

    Raises:
      TypeError: the optimizer is not a Keras optimizer.
      ValueError: the folder cannot be written to.
    """
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
        self._writer = ScalarWriter(log_dir)
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
        """Closes the event file; warns if no step was counted."""
        self._writer.flush()
        if self._batches and self._read() is None:
            warnings.warn(
                "The Monitor has counted no step of this fit(). Create it before the first fit(), "
                "with the optimizer that the model trains with: model.optimizer.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _read(self) -> Any:
        reading = self._reader.read_or_none()
        if reading is not None:
            step = reading.values.steps
            if tf.executing_eagerly():
                step = int(self._reader.optimizer.iterations)
            scalars = {"loss_scale": reading.scale, "skipped_steps": float(reading.values.skipped)}
            self._writer.write(step, scalars)
            self._writer.flush()
        return reading
