"""Recordings of what a test does, and an optimizer for those that need no more than one."""

import os
from typing import Any, List

import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._recording.reading import read_record
from tf_lossscale._recording.record import OptimizerRecord, RunHeader

tf1 = tf.compat.v1


class Recording:
    """Records a `with` block, and reads the record if the block raises no error.

    Attributes:
      path: the file.
      header: the description of the run.
      optimizers: the steps of each optimizer.
    """

    header: RunHeader
    optimizers: List[OptimizerRecord]

    def __init__(self, folder: Any, **options: Any) -> None:
        os.makedirs(str(folder), exist_ok=True)
        self.path = os.path.join(str(folder), "record.jsonl")
        self._options = options

    def __enter__(self) -> "Recording":
        tfls.recording.start(self.path, **self._options)
        return self

    def __exit__(self, *error: Any) -> None:
        tfls.recording.stop()
        if error[0] is None:
            record = read_record(self.path)
            self.header, self.optimizers = record.header, record.optimizers

    @property
    def record(self) -> OptimizerRecord:
        """The steps of the only optimizer."""
        (record,) = self.optimizers
        return record


def v1_optimizer(inner: Any = None, scale: float = 8.0) -> Any:
    """Returns our optimizer with a dynamic loss scale that grows after three steps."""
    namespace = tfls.compat.v1.mixed_precision
    return namespace.MixedPrecisionLossScaleOptimizer(
        inner or tf1.train.GradientDescentOptimizer(0.5), namespace.DynamicLossScale(scale, 3)
    )


def v1_variable() -> Any:
    """Returns a variable with the value 1 in the graph of a Session."""
    return tf1.get_variable("weight", initializer=1.0, use_resource=True)
