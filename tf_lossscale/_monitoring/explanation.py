"""Explains skipped steps in `fit`: looks at the layers while it trains on one more batch."""

import warnings
from typing import Optional

from tf_lossscale._monitoring.layers import FirstNonfinite
from tf_lossscale._monitoring.watcher import Reading
from tf_lossscale._types import Model
from tf_lossscale._versions.base import has, tf
from tf_lossscale._versions.layers import NextBatch
from tf_lossscale._versions.releases import Since


class Explanation:
    """Looks at one batch in each series of at least `after` skipped steps.

    Raises:
      NotImplementedError: `fit` has no function that could be replaced for one batch.
    """

    def __init__(self, after: int) -> None:
        if not (tf.executing_eagerly() and has(Since.FIT_READS_TRAIN_FUNCTION)):
            raise NotImplementedError(
                "explain=True needs TensorFlow 2.4 or later in eager mode. Call "
                "tf_lossscale.monitoring.find_nonfinite_layer(model, inputs) with a batch instead."
            )
        self._after = after
        self._batch: Optional[NextBatch] = None
        self._found = FirstNonfinite()
        self._is_explained = False  # this series of skipped steps
        self._skipped = 0

    @property
    def has_looked(self) -> bool:
        """Whether a batch was looked at, of which no reading has been seen yet."""
        return self._batch is not None and self._batch.has_run

    def see(self, reading: Reading, model: Model) -> None:
        """Looks at the next batch if this series of skipped steps is long; warns afterwards."""
        if self.has_looked:
            self._batch = None
            self._is_explained = True
            self._warn(self._found, reading)
        if reading.in_a_row < self._after:
            self._is_explained = False
        elif not self._is_explained and self._batch is None:
            self._found, self._skipped = FirstNonfinite(), reading.in_a_row
            self._batch = NextBatch(model, self._found.called)

    def stop(self) -> None:
        """Does not look at the next batch any more."""
        if self._batch is not None:
            self._batch.cancel()
            self._batch = None

    def _warn(self, found: FirstNonfinite, reading: Reading) -> None:
        """Warns which layer was first, or what else the batch has shown."""
        start = f"{self._skipped} steps in a row were skipped, so the next one was looked at."
        if found.layer is not None:
            message = f"{start} {found.layer}"
        elif not found.calls:
            message = (
                f"{start} It called no Keras layer, so tf.debugging.enable_check_numerics() helps "
                "to find the operation."
            )
        elif reading.in_a_row == 0:
            message = f"{start} It was applied, and the outputs of all its layers were finite."
        else:
            of = "" if reading.bad is None else f", from the gradient of {reading.bad} on"
            message = (
                f"{start} The outputs of all its layers were finite, so look at the loss, and at "
                f"the backward pass{of}."
            )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
