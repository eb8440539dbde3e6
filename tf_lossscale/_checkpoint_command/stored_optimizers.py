"""Describes the optimizers in a file, and what Keras 3 can take from them.

Nothing here needs TensorFlow, which `.h5` files are read without.
"""

import collections
from typing import Iterator, List

import numpy as np

from tf_lossscale._checkpoint.finding import StoredOptimizer
from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._checkpoint.locate import CheckpointError
from tf_lossscale._restore.optimizer_state import OptimizerState, optimizers_in, state_of
from tf_lossscale._restore.slots import classes_with
from tf_lossscale._restore.stored import RestoreError, Stored, Tensor
from tf_lossscale._types import Config, Json

_LAYOUTS = {
    Layout.INNER_IS_CHILD: "OptimizerV2 of tf.keras, TensorFlow 1.14 to 2.2",
    Layout.OPTIMIZER_V2: "OptimizerV2 of tf.keras, the `legacy` optimizers from TensorFlow 2.11 on",
    Layout.NEW: "a new-style optimizer of tf.keras, TensorFlow 2.11 to 2.15 or tf-keras",
    Layout.KERAS_3: "an optimizer of Keras 3",
}


def described(stored: Stored) -> Iterator[StoredOptimizer]:
    """Yields what a file has of each optimizer; raises CheckpointError."""
    try:
        states = [state_of(stored, number) for number in optimizers_in(stored)]
        for state in states:
            yield _described(stored, state)
        known = set().union(*(state.nodes for state in states))
        for number, node in enumerate(stored.nodes):
            if node.slots and number not in known:
                yield _of_v1(stored, number)
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


def _of_v1(stored: Stored, number: int) -> StoredOptimizer:
    """Describes an optimizer of `tf.train`, or another one that has no counter of its own."""
    node = stored.nodes[number]
    tensors = {name: stored.nodes[child].tensor for name, child in node.children.items()}
    values = {name: _number(stored, tensor) for name, tensor in sorted(tensors.items()) if tensor}
    counts = collections.Counter(slot.name for slot in node.slots)
    return StoredOptimizer(
        path=stored.path_of(number),
        written_by="an optimizer of tf.train",
        classes=(),
        iterations=None,
        slots=dict(sorted(counts.items())),
        hyperparameters={name: value for name, value in values.items() if value is not None},
        keras3="tf.train.Checkpoint restores it into the same class, as tf.compat.v1.train has it",
    )


def _hyperparameters(stored: Stored, state: OptimizerState) -> Config:
    values = {name: _number(stored, value) for name, value in sorted(state.hyperparameters.items())}
    found = {name: value for name, value in values.items() if value is not None}
    configured = {name: _shortened(value) for name, value in stored.config.items()}
    return {**configured, **found}  # the former in HDF5 files


def _shortened(value: Json) -> Json:
    """Returns the shortest number that is the same float32, as Keras shows it: 0.9."""
    if not isinstance(value, float):
        return value
    shortest = float(str(np.float32(value)))
    return shortest if np.float32(shortest) == np.float32(value) else value


def _number(stored: Stored, value: Json) -> Json:
    """Returns a number, or a tensor of shape `[]` as one; None for anything else."""
    if not isinstance(value, Tensor):
        return value
    if value.shape:
        return None
    (read,) = stored.read([value])
    return _shortened(float(read)) if value.dtype == "float32" else read.item()


def _for_keras_3(stored: Stored, state: OptimizerState) -> str:
    """Returns what of an optimizer Keras 3 can restore, and by which call."""
    if state.layout is Layout.KERAS_3:
        return "tf.train.Checkpoint restores it"
    call = f"tf_lossscale.checkpoints.restore({stored.path!r}, model, optimizer)"
    found: List[str] = [] if state.iterations is None else ["iterations"]
    found += [] if not state.slots else ["slots"]
    found += [] if not (state.hyperparameters or stored.config) else ["hyperparameters"]
    found += [] if state.scale is None else ["loss scale"]
    if not found:
        return "nothing of it is in the file"
    *first, last = found
    words = f"{', '.join(first)} and {last}" if first else last
    return f"{words}, by {call}"
