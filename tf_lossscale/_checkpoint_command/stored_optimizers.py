"""Describes the optimizers in a TensorFlow checkpoint, and what Keras 3 can take from them."""

import collections
from typing import Iterator, List

from tf_lossscale._checkpoint.finding import StoredOptimizer
from tf_lossscale._checkpoint.locate import CheckpointError
from tf_lossscale._keras.keras2_checkpoints import Layout
from tf_lossscale._restore import object_files
from tf_lossscale._restore.optimizer_state import OptimizerState, optimizers_in, state_of
from tf_lossscale._restore.optimizers import classes_with
from tf_lossscale._restore.stored import RestoreError, Stored, Tensor
from tf_lossscale._types import Config, Json

_LAYOUTS = {
    Layout.INNER_IS_CHILD: "OptimizerV2 of tf.keras, TensorFlow 1.14 to 2.2",
    Layout.OPTIMIZER_V2: "OptimizerV2 of tf.keras, the `legacy` optimizers from TensorFlow 2.11 on",
    Layout.NEW: "a new-style optimizer of tf.keras, TensorFlow 2.11 to 2.15 or tf-keras",
    Layout.KERAS_3: "an optimizer of Keras 3",
}


def described(prefix: str) -> Iterator[StoredOptimizer]:
    """Yields what a checkpoint with objects has of each optimizer; raises CheckpointError."""
    try:
        stored = object_files.read(prefix)
        for number in optimizers_in(stored):
            yield _described(stored, state_of(stored, number))
    except RestoreError as error:
        raise CheckpointError(str(error)) from error


def _described(stored: Stored, state: OptimizerState) -> StoredOptimizer:
    counts = collections.Counter(slot.name for slot in state.slots)
    return StoredOptimizer(
        path=stored.path_of(state.node),
        written_by=_LAYOUTS[state.layout],
        classes=tuple(classes_with(state.classes, counts)),
        iterations=_number(stored, state.iterations),
        slots=dict(sorted(counts.items())),
        hyperparameters=_hyperparameters(stored, state),
        keras3=_for_keras_3(stored, state),
    )


def _hyperparameters(stored: Stored, state: OptimizerState) -> Config:
    values = {name: _number(stored, value) for name, value in sorted(state.hyperparameters.items())}
    return {name: value for name, value in values.items() if value is not None}


def _number(stored: Stored, value: Json) -> Json:
    """Returns a number, or a tensor of shape `[]` as one; None for anything else."""
    if not isinstance(value, Tensor):
        return value
    if value.shape:
        return None
    (read,) = stored.read([value])
    # The shortest number that is the same float32, as Keras shows it: 0.9, not 0.8999999761581421.
    return float(str(read)) if value.dtype == "float32" else read.item()


def _for_keras_3(stored: Stored, state: OptimizerState) -> str:
    if state.layout is Layout.KERAS_3:
        return "tf.train.Checkpoint restores it"
    call = f"tf_lossscale.checkpoints.restore({stored.path!r}, model, optimizer)"
    found: List[str] = [] if state.iterations is None else ["iterations"]
    found += [] if not state.slots else ["slots"]
    found += [] if not state.hyperparameters else ["hyperparameters"]
    found += [] if state.scale is None else ["loss scale"]
    if not found:
        return "nothing of it is in the file"
    *first, last = found
    words = f"{', '.join(first)} and {last}" if first else last
    return f"{words}, by {call}"
