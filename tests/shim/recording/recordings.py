"""Recordings of what a test does, and an optimizer for those that need no more than one."""

import os
from typing import Any, Dict, List

import numpy as np
import pytest
import replicated
import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._records.format import OptimizerRecord, RunHeader
from tf_lossscale._records.reading import read_record

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

    def __init__(self, folder: Any, **options: Any):
        os.makedirs(str(folder), exist_ok=True)
        self.path = os.path.join(str(folder), "record.jsonl")
        self._options = options

    def __enter__(self) -> "Recording":
        tfls.recording.start(self.path, **self._options)
        return self

    def __exit__(self, *error: Any):
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


def check_steps(run: Dict[str, Any], what: str, count: int, momentum: float = 0.5):
    """Asserts that a record has what `replicated.py` saw, and that recording changed nothing."""
    record, rows = run["record"], run["rows"]
    scales = [replicated.SCALE, *(row["scales"][0] for row in rows[:-1])]
    assert record["scales"] == scales, what
    weights = [str(row["weights"]) for row in rows]  # of a NaN, too
    # What precedes the first step is not shown; it is applied in all cases.
    changed = [True, *(weight != other for weight, other in zip(weights, weights[1:]))]
    assert record["applied"] == changed, what
    if record["rule"] != "fixed":
        assert record["finite"] == record["applied"], what
    losses = [row["loss"] for row in rows]
    np.testing.assert_allclose(record["loss"], losses, rtol=1e-6, err_msg=what)
    assert run["changed"] == [], what
    steps = replicated.expected(count, momentum)
    assert record["replicas"] == count, what
    assert record["known"], what
    assert bool(record["xla"]) is what.endswith(":xla"), what
    assert (record["rule"] == "fixed") is what.startswith("fixed"), what
    assert record["shapes"] == list(replicated.SHAPES.values()), what
    # Those of the summed gradients.
    assert record["bad"] == [step.bad for step in steps], what
    assert record["norm"] == [step.norm and pytest.approx(step.norm) for step in steps], what
